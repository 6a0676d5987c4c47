"""Take other people's patches into the series, as commits after it, in the order given.

All or nothing: where one does not fit, nothing is written, and the reason is told for each. Exit
code 0: all are in, or would be; 1: some were left out.
"""

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from scripts import (
    adopt,
    given,
    header,
    lock,
    origin,
    patched,
    pending,
    postconditions,
    series,
    source,
    worktree,
)
from scripts.adopt import Answer
from scripts.errors import TreeError, UsageError
from scripts.git import Repository
from scripts.given import Terms
from scripts.header import Unreadable
from scripts.level import Level
from scripts.misfit import Reason
from scripts.patch import STATUSES, Patch
from scripts.patched import Patched
from scripts.report import Outcome
from scripts.verbs.apply import add_route
from scripts.workspace import Workspace


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("patches", nargs="+", type=Path, metavar="PATCH", help="patch files")
    parser.add_argument("--status", help="Upstream-Status of those that say none (Pending)")
    parser.add_argument("--drop-when", help="when those that do not say it can be dropped")
    parser.add_argument("--author", help='"Name <address>" of those that name none')
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--dry-run", action="store_true", help="write nothing, say what would be")
    which.add_argument(
        "--skip-failing", action="store_true", help="take in those that fit, and exit with 1"
    )
    add_reading(parser)


def add_reading(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-p", "--strip", type=int, metavar="N", help="so many leading folders of the names go"
    )
    parser.add_argument("--directory", help="the folder of the tree that the names are below")
    parser.add_argument(
        "--accept",
        nargs="+",
        default=[],
        metavar="PATCH",
        help="patches whose lines are right where they are, though they stand there twice",
    )
    parser.add_argument(
        "--repository",
        type=Path,
        metavar="PATH",
        help="a clone of upstream with its history: the commits that a patch was made after",
    )
    add_route(parser)


def run(arguments: argparse.Namespace, workspace: Workspace) -> Outcome:
    pending.refuse(workspace)
    terms = _terms(arguments)
    if not arguments.dry_run:
        _refuse_work(workspace)
    below, answers = attempt(arguments, terms, workspace)
    lost = [one for one in answers if one.misfit]
    whole = adopt.result(below, answers, workspace)
    written = not arguments.dry_run and (not lost or arguments.skip_failing)
    if written and len(lost) < len(answers):
        adopt.write(whole.series, workspace)
        if workspace.tree.exists():
            worktree.check_out(whole, workspace)
    return Outcome(
        data=describe(answers, below) | {"written": written},
        shown=Group(*show(answers, below, written=written)),
        exit_code=1 if lost else 0,
    )


def attempt(
    arguments: argparse.Namespace, terms: Terms, workspace: Workspace
) -> tuple[Patched, tuple[Answer, ...]]:
    """The series as it is, and what becomes of each patch on top of it."""
    base = source.obtain(lock.load(workspace.lock), workspace, arguments.route)
    below = patched.apply(base, series.load(workspace.patchset), workspace)
    handed = given.read(arguments.patches, base.store)
    with origin.at_hand(base.lock, base.store, workspace, clone(arguments, workspace)) as hand:
        return below, adopt.attempt(below, handed, terms, hand, workspace)


def clone(arguments: argparse.Namespace, workspace: Workspace) -> Repository | None:
    """The repository that --repository names."""
    if arguments.repository is None:
        return None
    path: Path = arguments.repository.resolve()
    git_dir = path / ".git" if (path / ".git").exists() else path
    if not (git_dir / "HEAD").exists():
        raise UsageError(f"{path} is no git repository")
    return Repository(git_dir=git_dir, environment=workspace.environment)


def _terms(arguments: argparse.Namespace) -> Terms:
    author = None
    if arguments.author is not None:
        try:
            author = header.author(arguments.author)
        except Unreadable as error:
            raise UsageError(f"--author: {error}") from error
        if not author[1] or author[0] == author[1]:
            raise UsageError(f"--author {arguments.author!r} is not of the form Name <address>")
    if arguments.status is not None and arguments.status.split(" ")[0] not in STATUSES:
        raise UsageError(f"--status begins with one of {', '.join(STATUSES)}")
    return Terms(
        status=arguments.status,
        drop_when=arguments.drop_when,
        author=author,
        level=strip_level(arguments),
        accepted=accepted(arguments),
    )


def accepted(arguments: argparse.Namespace) -> frozenset[str]:
    """The labels that --accept may mean: a file's name, or a path where there are namesakes."""
    paths = [Path(one) for one in arguments.accept]
    return frozenset(label for path in paths for label in (path.name, str(path)))


def strip_level(arguments: argparse.Namespace) -> Level | None:
    """The level that --strip and --directory ask for; None where they leave it open."""
    if arguments.strip is None and arguments.directory is None:
        return None
    if arguments.strip is None or arguments.strip < 0:
        raise UsageError("--directory needs --strip, and that is 0 or more")
    folder = (arguments.directory or "").strip("/")
    return Level(strip=arguments.strip, folder=f"{folder}/" if folder else "")


def _refuse_work(workspace: Workspace) -> None:
    tree = workspace.tree
    problem = worktree.work_at_risk(tree, workspace) if worktree.is_there(tree) else None
    if problem is not None:
        raise TreeError(
            f"{tree} {problem}", then="nox -s refresh, which takes your commits into patchset/"
        )


def describe(answers: Sequence[Answer], below: Patched) -> dict[str, object]:
    """What became of each patch, for machines."""
    return {
        "revision": below.base.lock.requested_revision,
        "one_reason": one_reason(answers),
        "patches": [
            {
                "given": one.given.label,
                "becomes": one.patch.name if one.patch else None,
                "title": one.patch.title if one.patch else None,
                "notes": list(one.notes),
                "reason": str(one.misfit.reason) if one.misfit else None,
                "what": one.misfit.what if one.misfit else None,
                "next": one.misfit.then if one.misfit else None,
            }
            for one in answers
        ],
    }


def one_reason(answers: Sequence[Answer]) -> str | None:
    """The reason that several patches share, where all of them fail for it."""
    lost = [one.misfit for one in answers if one.misfit]
    roots = [one for one in lost if one.reason is not Reason.BEHIND]
    said = {one.what.partition("\n")[0].partition(":")[0] for one in roots}
    reasons = {one.reason for one in roots}
    if len(lost) == len(answers) > 1 and len(said) == 1 and reasons == {Reason.RELEASE}:
        return f"all {len(lost)} fail for one reason: {said.pop()}"
    return None


def show(answers: Sequence[Answer], below: Patched, *, written: bool) -> Iterator[RenderableType]:
    """What became of each patch, for people."""
    lost = [one for one in answers if one.misfit]
    table = Table(title=f"on {below.base.lock.requested_revision}")
    for column in ("patch", "becomes", "notes"):
        table.add_column(column, overflow="fold")
    for one in answers:
        becomes = one.patch.name if one.patch else f"({one.misfit.reason})" if one.misfit else ""
        table.add_row(one.given.label, becomes, "\n".join(one.notes))
    yield table
    shared = one_reason(answers)
    if shared:
        yield Text(shared)
    for one in lost:
        if one.misfit and not shared:
            then = f"\n  next: {one.misfit.then}" if one.misfit.then else ""
            yield Text(f"{one.given.label}: {one.misfit.reason}: {one.misfit.what}{then}")
    fresh = [one.patch for one in answers if one.patch]
    if written or not lost:
        yield from _to_do(fresh)
    count = f"{len(fresh)} of {len(answers)} patches"
    yield Text(f"{count} {'are in' if written else 'fit; patchset/ is as it was'}")


def _to_do(fresh: Sequence[Patch]) -> Iterator[Text]:
    unsaid = [one.number for one in given.unproved(fresh)]
    if unsaid:
        yield Text(
            f"Drop-When of {', '.join(unsaid)} was not said: reword them (git rebase in "
            "build/sglang, nox -s refresh), or adopt them with --drop-when"
        )
    bare = [one.number for one in fresh if postconditions.of(one) is None]
    if bare:
        yield Text(
            f"{', '.join(bare)} have no post-condition yet, which nox -s lint asks for: write a "
            "function in scripts/postconditions/ and list it in CONDITIONS by the patch's number"
        )
