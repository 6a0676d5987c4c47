"""Move upstream.lock to another tag, branch or commit, and rebase the series.

A conflict leaves build/sglang as an ordinary git rebase: resolve it there, `git add`, and run this
with --continue; --abort gives it up. Exit code 0: done, or would be; 1: a person has to look at it.
"""

import argparse
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from rich.console import Group
from rich.prompt import Confirm
from rich.table import Table
from rich.text import Text

from scripts import bump, culprit, landing, lock, revision, span, target
from scripts.bump import Bump, Job
from scripts.culprit import Culprit
from scripts.errors import SourceError, UsageError
from scripts.judgement import Answers, Judgement
from scripts.objection import Kind
from scripts.rebase import WANTS_A_PERSON, Carried, Fate
from scripts.report import Outcome
from scripts.shelf import Shelf
from scripts.source import Route
from scripts.span import Step
from scripts.verbs.apply import add_route
from scripts.verbs.culprit import describe, describe_step, words
from scripts.workspace import Workspace


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("revision", nargs="?", help="a tag, a branch, or all 40 digits of a commit")
    parser.add_argument("--version", help="the version of a commit that is no release")
    add_answers(parser)
    add_route(parser)


def add_answers(parser: argparse.ArgumentParser) -> None:
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--dry-run", action="store_true", help="say what would come of it")
    which.add_argument(
        "--continue", dest="go_on", action="store_true", help="go on after a conflict is resolved"
    )
    which.add_argument("--abort", action="store_true", help="give up the bump that is under way")
    parser.add_argument(
        "--retire",
        nargs="*",
        metavar="NUMBER",
        help="take these patches out of the series (none: all that upstream has as they are)",
    )
    parser.add_argument(
        "--accept",
        nargs="+",
        default=[],
        metavar="NUMBER",
        help="patches whose edits are right in another symbol, or beside upstream's own",
    )
    parser.add_argument(
        "--write-gates",
        action="store_true",
        help="bring patchset/gates.toml up to date with the new tree, and stop there",
    )


def run(arguments: argparse.Namespace, workspace: Workspace) -> Outcome:
    if arguments.abort:
        bump.abort(workspace)
        return Outcome(data={"aborted": True}, shown=Text("the bump is given up; all is as before"))
    if arguments.go_on:
        done = _go_on(bump.waiting(workspace, answers(arguments)), arguments)
        return show(done, arguments, Reasons())
    if arguments.revision is None:
        raise UsageError("bump needs a revision", then="nox -s bump -- v0.5.19")
    bump.refuse_unfinished(workspace)
    old = lock.load(workspace.lock)
    new = target.find(arguments.revision, old, workspace, version=arguments.version)
    if (new.commit, new.version, new.requested_revision) == (
        old.commit,
        old.version,
        old.requested_revision,
    ):
        line = f"upstream.lock is at {old.requested_revision} ({old.commit}) already"
        return Outcome(data={"done": False, "same": True}, shown=Text(line))
    new = replace(new, revision=_free(new, workspace))
    if new.commit_time < old.commit_time:
        workspace.say(f"{new.requested_revision} is older than {old.requested_revision}")
    job = Job(
        old=old,
        new=new,
        route=arguments.route,
        answers=answers(arguments),
        workspace=workspace,
    )
    done = start(job, arguments)
    return show(done, arguments, reasons(done.judgement, workspace))


def answers(arguments: argparse.Namespace) -> Answers:
    """What was decided on the command line."""
    return Answers(
        all_landed=arguments.retire == [],
        retired=frozenset(arguments.retire or ()),
        accepted=frozenset(arguments.accept),
    )


def start(job: Job, arguments: argparse.Namespace) -> Bump:
    """Begin a bump, and ask about landed patches where there is someone to ask."""
    dry = arguments.dry_run or arguments.write_gates
    done = bump.run(job, dry=dry)
    if arguments.write_gates:
        bump.write_gates(done.judgement, job.workspace)
    elif not dry and _confirmed(done):
        done = bump.run(replace(job, answers=replace(job.answers, all_landed=True)))
    return done


@dataclass(frozen=True, slots=True)
class Reasons:
    """What upstream's history says of patches, by number; empty where it cannot be had."""

    culprits: Mapping[str, Culprit] = field(default_factory=dict)
    reverted: Mapping[str, Step] = field(default_factory=dict)


def reasons(judgement: Judgement, workspace: Workspace) -> Reasons:
    """The upstream commits behind each conflict, and those that had a patch for a while."""
    rebased = judgement.rebased
    if rebased.new.route is not Route.GIT:
        workspace.say("which upstream commits are behind it is not known: wheels have no history")
        return Reasons()
    try:
        way = span.between(rebased.old.base, rebased.new, workspace)
        reverted = landing.reverted(rebased, way, workspace)
        failed = [one.before.number for one in rebased.carried if one.fate in WANTS_A_PERSON]
        culprits = {}
        with workspace.progress("find the commits behind it", len(failed)) as advance:
            for count, number in enumerate(failed, 1):
                found = culprit.find(rebased.old, way, number, workspace)
                if found is not None:
                    culprits[number] = found
                advance(count)
    except SourceError as error:
        workspace.say(f"which upstream commits are behind it is not known: {error}")
        return Reasons()
    return Reasons(culprits=culprits, reverted=reverted)


def _go_on(job: Job, arguments: argparse.Namespace) -> Bump:
    done = bump.go_on(job)
    if arguments.write_gates and not done.done:
        bump.write_gates(done.judgement, job.workspace)
    return done


def _confirmed(done: Bump) -> bool:
    landed = [one for one in done.judgement.objections if one.kind is Kind.LANDED]
    if done.done or done.stop or not landed or len(landed) < len(done.judgement.objections):
        return False
    numbers = ", ".join(one.patch for one in landed)
    return sys.stdin.isatty() and Confirm.ask(f"Upstream has {numbers}. Retire?", default=False)


def _free(new: lock.Lock, workspace: Workspace) -> int:
    shelf = Shelf(folder=workspace.index, project=new.name)
    return revision.free(new, shelf.catalog().versions)


def show(done: Bump, arguments: argparse.Namespace, reasons: Reasons) -> Outcome:
    """What came of a bump, for people and for machines."""
    judgement = done.judgement
    return Outcome(
        data=_data(done, reasons),
        shown=Group(
            _table(judgement),
            *_objections(judgement, reasons),
            *_reverted(reasons),
            *_gates(judgement),
            _end(done, wrote=arguments.write_gates),
        ),
        exit_code=1 if judgement.objections else 0,
    )


def _data(done: Bump, reasons: Reasons) -> dict[str, object]:
    judgement = done.judgement
    return {
        "done": done.done,
        "waits": done.stop is not None,
        "from": _place(judgement.old),
        "to": _place(judgement.new),
        "route": str(judgement.rebased.new.route),
        "patches": [_row(one, reasons) for one in judgement.rebased.carried],
        "objections": [
            {"patch": one.patch, "kind": str(one.kind), "what": one.what, "then": one.then}
            for one in judgement.objections
        ],
        "gates": judgement.gates
        and {
            "new": len(judgement.gates.new),
            "moved": len(judgement.gates.moved),
            "vanished": len(judgement.gates.vanished),
        },
    }


def _place(pinned: lock.Lock) -> dict[str, str]:
    return {
        "revision": pinned.requested_revision,
        "version": pinned.distribution_version,
        "commit": pinned.commit,
    }


def _row(one: Carried, reasons: Reasons) -> dict[str, object]:
    found = reasons.culprits.get(one.before.number)
    step = reasons.reverted.get(one.before.number)
    return {
        "name": one.before.name,
        "title": one.before.title,
        "fate": str(one.fate),
        "unsettled": list(one.unsettled),
        "culprit": found and describe(found)["culprit"],
        "reverted": step and describe_step(step),
        "conflicts": [{"path": c.path, "kind": c.kind, "what": c.what} for c in one.conflicts],
    }


_COLOURS = {Fate.CONFLICT: "red", Fate.LANDED: "yellow", Fate.LANDED_MODIFIED: "yellow"}


def _table(judgement: Judgement) -> Table:
    old, new = judgement.old, judgement.new
    title = f"{old.requested_revision} ({old.commit[:12]}) to {new.requested_revision} "
    table = Table("patch", "title", "", title=f"{title}({new.commit[:12]})")
    for one in judgement.rebased.carried:
        below = f" (given {', '.join(one.unsettled)})" if one.unsettled else ""
        fate = Text(f"{one.fate}{below}", style=_COLOURS.get(one.fate, ""))
        table.add_row(one.before.number, one.before.title, fate)
    return table


def _objections(judgement: Judgement, reasons: Reasons) -> list[Text]:
    texts = []
    for one in judgement.objections:
        found = reasons.culprits.get(one.patch)
        since = f"\n  since: {words(found.step)}" if found else ""
        texts.append(
            Text(f"{one.patch or 'tree'}: {one.kind}: {one.what}{since}\n  next: {one.then}")
        )
    return texts


def _reverted(reasons: Reasons) -> list[Text]:
    return [
        Text(f"{number}: upstream had it after {words(step)}, and has it no more: it is kept")
        for number, step in reasons.reverted.items()
    ]


def _gates(judgement: Judgement) -> list[Text]:
    if judgement.gates is None:
        return []
    seen = judgement.gates
    lines = [f"new gate: {gate.path}:{gate.line} {gate.condition}" for gate in seen.new]
    lines += [
        f"moved gate: {known.key[0]} {known.key[1]} is now {gate.path}:{gate.line} {gate.symbol}"
        for known, gate in seen.moved
    ]
    lines += [f"vanished gate: {known.key[0]} {known.key[1]}" for known in seen.vanished]
    return [Text(line) for line in lines]


def _end(done: Bump, *, wrote: bool) -> Text:
    new = done.judgement.new
    if wrote and not done.done:
        return Text(
            f"patchset/gates.toml has the gates of {new.requested_revision} now: set the `status` "
            "of each undecided one, and run this again without --write-gates"
        )
    if done.done:
        return Text(
            f"upstream.lock and patchset/ are at {new.requested_revision}, "
            f"{new.distribution_version}; look at `git diff`, then nox -s build_wheel"
        )
    if done.stop is not None:
        files = ", ".join(done.stop.unmerged)
        return Text(
            f"stopped at {done.stop.title!r}; resolve {files} in build/sglang, `git add` there,\n"
            "  then nox -s bump -- --continue (or --abort)"
        )
    if done.judgement.objections:
        return Text("a person has to look at this; nothing was changed")
    return Text("this would go through; nothing was changed")
