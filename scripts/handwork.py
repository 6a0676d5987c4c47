"""A rebase in build/sglang that waits for a person: an ordinary one, of git's own.

The conflict style shows the base too, and what was resolved once is remembered in the cache
(git-rerere(1)), so that it is resolved again on the next try.
"""

import shlex
import tempfile
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from scripts import files, source, worktree
from scripts.errors import CommandFailed, TreeError
from scripts.git import CommitId, Repository
from scripts.patched import Patched
from scripts.source import Base
from scripts.workspace import Workspace

NEW = "refs/sglang-sm120/new"
_STOOD = "sglang-sm120-stood-at"
_SETTINGS = {
    "merge.conflictStyle": "diff3",
    "rerere.enabled": "true",
    "rerere.autoupdate": "true",
    "core.autocrlf": "false",
    "core.attributesFile": "/dev/null",
    "commit.gpgSign": "false",
    "rebase.updateRefs": "false",
    "advice.skippedCherryPicks": "false",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """Where a rebase stands still: the commit that is being applied, and the files to resolve."""

    commit: CommitId
    title: str
    unmerged: tuple[str, ...]


def start(
    old: Patched, new: Base, tree: Path, workspace: Workspace, *, leave: Collection[str] = ()
) -> Stop | None:
    """Make `tree`, a free path, and rebase `old` in it onto `new` up to the first conflict.

    `leave` are the numbers of the patches that are left out. None where nothing stopped it.
    """
    source.complete(new)
    rows = [
        f"pick {commit} {patch.title}\n"
        for patch, commit in zip(old.series.patches, old.commits, strict=True)
        if patch.number not in leave
    ]
    with files.replacing(tree) as made:
        worktree.make(old, made, workspace)
        repo = worktree.repository(made, workspace)
        worktree.take(repo, new.store, 1, f"{new.commit}:{NEW}")
        _set_up(repo, workspace)
        with tempfile.NamedTemporaryFile("w", suffix=".todo") as todo:
            todo.writelines(rows or ["noop\n"])
            todo.flush()
            options = ("--interactive", "--empty=keep", "--no-autosquash", "--no-autostash")
            _git(
                repo,
                *("rebase", "--quiet", *options, "--onto", NEW, worktree.BASE, worktree.BRANCH),
                sequence_editor=shlex.join(["cp", todo.name]),
            )
        return _as_far_as_it_goes(made, workspace)


def _set_up(repo: Repository, workspace: Workspace) -> None:
    for key, value in _SETTINGS.items():
        repo.run("config", key, value)
    (repo.git_dir / "info").mkdir(exist_ok=True)
    (repo.git_dir / "info" / "attributes").write_text("*.py diff=python\n")
    remembered = workspace.cache / "rr-cache"
    remembered.mkdir(parents=True, exist_ok=True)
    (repo.git_dir / "rr-cache").symlink_to(remembered)


def go_on(tree: Path, workspace: Workspace) -> Stop | None:
    """Continue a rebase in which every conflict is resolved; None where it is at its end.

    Raises TreeError where one is not, or where conflict markers were left.
    """
    stop = _stop(tree, workspace)
    if stop is not None and stop.unmerged:
        raise TreeError(
            f"{stop.title!r} is not resolved: {', '.join(stop.unmerged)}",
            then=f"edit them in {tree}, `git add` them there, and run "
            "`nox -s bump -- --continue` (or --abort)",
        )
    if stop is not None:
        refuse_markers(tree, workspace)
        _git(worktree.repository(tree, workspace), "rebase", "--continue")
        stop = _as_far_as_it_goes(tree, workspace)
    if stop is None:
        refuse_markers(tree, workspace)
    return stop


def is_ours(tree: Path, workspace: Workspace) -> bool:
    """Whether `tree` is a work tree that start() made."""
    if not (tree / ".git").is_dir():
        return False
    return worktree.repository(tree, workspace).resolve(NEW) is not None


def refuse_markers(tree: Path, workspace: Workspace) -> None:
    """Raise TreeError where a file that differs from the new base holds conflict markers."""
    repo = worktree.repository(tree, workspace)
    said = repo.run("diff", "--check", "--cached", NEW, accept=(0, 2)).decode(errors="replace")
    found = [line for line in said.splitlines() if "leftover conflict marker" in line]
    if found:
        raise TreeError(
            f"conflict markers were left: {', '.join(found)}",
            then="take them out, commit (git commit --amend), and run this again",
        )


def _as_far_as_it_goes(tree: Path, workspace: Workspace) -> Stop | None:
    """Go on as long as what was remembered resolves every conflict."""
    repo = worktree.repository(tree, workspace)
    seen: set[CommitId] = set()
    while (stop := _stop(tree, workspace)) and not stop.unmerged:
        if stop.commit in seen:
            break
        seen.add(stop.commit)
        workspace.say(f"{stop.title!r} was resolved before, in the same way as now")
        _git(repo, "rebase", "--continue")
    return stop


def _git(repo: Repository, *args: str, sequence_editor: str = "true") -> None:
    """Run git rebase, which exits with 1 where it stops for a person."""
    settings = {"GIT_EDITOR": "true", "GIT_SEQUENCE_EDITOR": sequence_editor}
    try:
        repo.run(*args, settings=settings, accept=(0, 1))
    except CommandFailed as error:
        raise TreeError(
            f"git rebase failed in {repo.work_tree}:\n{error.output}",
            then="nox -s bump -- --abort",
        ) from error


def _stop(tree: Path, workspace: Workspace) -> Stop | None:
    """Where the rebase in `tree` stands; None where it is finished."""
    if not (tree / ".git" / "rebase-merge").exists():
        return None
    repo = worktree.repository(tree, workspace)
    commit = repo.resolve("REBASE_HEAD")
    if commit is None:
        raise TreeError(f"{tree} has a rebase that stands at no commit", then="git status there")
    title = repo.run("show", "-s", "--format=%s", commit).decode(errors="replace").strip()
    with (tree / ".git" / _STOOD).open("a") as log:
        log.write(f"{commit}\n")
    said = repo.run("diff", "--name-only", "--diff-filter=U", "-z")
    unmerged = said.decode(errors="surrogateescape").split("\0")[:-1]
    return Stop(commit=commit, title=title, unmerged=tuple(unmerged))


def stood_at(tree: Path) -> frozenset[CommitId]:
    """The commits at which the rebase in `tree` stood still, so that a person decided on them."""
    try:
        return frozenset(map(CommitId, (tree / ".git" / _STOOD).read_text().split()))
    except FileNotFoundError:
        return frozenset()


def commits(tree: Path, new: Base, workspace: Workspace) -> tuple[CommitId, ...]:
    """The commits of a finished rebase, oldest first, now in the object store too.

    Raises TreeError where they do not stand on the new base, or work lies beside them.
    """
    repo = worktree.repository(tree, workspace)
    head = repo.resolve("HEAD")
    listed = repo.run("rev-list", "--reverse", "--topo-order", f"{NEW}..HEAD").decode().split()
    dirty = repo.run("status", "--porcelain", "-z", "--untracked-files=no").decode()
    below = repo.resolve(f"{listed[0]}^") if listed else head
    if dirty or below != repo.resolve(NEW) or _merges(repo):
        what = "has changes that are not committed" if dirty else "is not one line on the new base"
        raise TreeError(f"{tree} {what}", then="git status there; or nox -s bump -- --abort")
    worktree.hand_in(tree, new.store, workspace)
    return tuple(CommitId(commit) for commit in listed)


def _merges(repo: Repository) -> bool:
    return bool(repo.run("rev-list", "--merges", f"{NEW}..HEAD"))
