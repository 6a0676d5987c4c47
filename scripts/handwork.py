"""A rebase in build/sglang that waits for a person: an ordinary one, of git's own.

The conflict style shows the base too, and what was resolved once is remembered in the cache
(git-rerere(1)), so that it is resolved again on the next try.
"""

import shlex
import tempfile
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from scripts import files, markers, source, todo, worktree
from scripts.errors import CommandFailed, TreeError, raise_all
from scripts.git import CommitId, Repository
from scripts.patched import Patched
from scripts.source import Base
from scripts.workspace import Workspace

NEW = "refs/sglang-sm120/new"
_STOOD = "sglang-sm120-stood-at"
_REMEMBERED = "using previous resolution"  # git's words where rerere(1) has settled a file
_EXECUTED = "execution failed"  # and where a command of the todo list ended with an error
_ON = "nox -s bump -- --continue (or --abort)"
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
    """Where a rebase stands still: the title of the commit that is due, and the files to resolve.

    Between two commits the title is the line of git's todo list.
    """

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
        with tempfile.NamedTemporaryFile("w", suffix=".todo") as plan:
            plan.writelines(rows or ["noop\n"])
            plan.flush()
            options = ("--interactive", "--empty=keep", "--no-autosquash", "--no-autostash")
            return _proceed(
                repo,
                workspace,
                *("rebase", "--quiet", *options, "--onto", NEW, worktree.BASE, worktree.BRANCH),
                sequence_editor=shlex.join(["cp", plan.name]),
            )


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

    Raises TreeError where one is not, where edits are not added or have conflict markers, and
    where the rebase stands still for another reason than a conflict.
    """
    repo = worktree.repository(tree, workspace)
    if not todo.under_way(repo):
        return None
    stop = _stop(repo)
    if stop.unmerged:
        raise TreeError(
            f"{stop.title!r} is not resolved: {', '.join(stop.unmerged)}",
            then=f"edit them in {tree}, `git add` them there, and run "
            "`nox -s bump -- --continue` (or --abort)",
        )
    loose = repo.run("diff", "--name-only", "-z").decode(errors="surrogateescape").split("\0")[:-1]
    if loose:
        raise TreeError(
            f"edits in {tree} are in no commit, and not added to one: {', '.join(loose)}",
            then=f"`git add` or `git restore` them there, and run {_ON}",
        )
    left = markers.staged(repo)
    if left:
        raise TreeError(
            f"conflict markers were left for {stop.title!r}: {', '.join(left)}",
            then=f"take them out in {tree}, `git add` the files there, and run {_ON}",
        )
    if _thrown_away(repo):
        raise TreeError(
            f"nothing is left of {stop.title!r} after a git reset or stash in {tree}",
            then="git stash pop there, or resolve it anew; to leave it out, git rebase --skip; "
            f"then {_ON}",
        )
    return _proceed(repo, workspace, "rebase", "--continue")


def _thrown_away(repo: Repository) -> bool:
    """Whether what the rebase stopped for was reset, so that --continue would drop it unasked.

    A reset takes the message away that git has for the commit; so does a commit, which moves HEAD.
    """
    if todo.command(repo) != "pick" or todo.is_due(repo) or (repo.git_dir / "MERGE_MSG").exists():
        return False
    if repo.run("diff", "--cached", "--name-only"):
        return False
    return repo.run("log", "-1", "--walk-reflogs", "--format=%gs", "HEAD").startswith(b"rebase (")


def is_ours(tree: Path, workspace: Workspace) -> bool:
    """Whether `tree` is a work tree that start() made."""
    if not (tree / ".git").is_dir():
        return False
    return worktree.repository(tree, workspace).resolve(NEW) is not None


def _proceed(
    repo: Repository, workspace: Workspace, *args: str, sequence_editor: str = "true"
) -> Stop | None:
    """Run git rebase, and on as long as what was remembered resolves every conflict.

    None where it is at its end. Raises TreeError where it stands still for anything but a conflict.
    """
    settings = {"GIT_EDITOR": "true", "GIT_SEQUENCE_EDITOR": sequence_editor}
    while True:
        said = None
        try:
            repo.run(*args, settings=settings)
        except CommandFailed as error:
            said = _plain(error.output)
        if said is None and not todo.under_way(repo):
            return None
        stop = _stop(repo) if todo.under_way(repo) else None
        if stop is not None and stop.unmerged:
            return stop
        if stop is None or not (said and _REMEMBERED in said) or todo.command(repo) == "edit":
            raise _stands_still(repo, stop, said)
        workspace.say(f"{stop.title!r} was resolved before, in the same way as now")
        args = ("rebase", "--continue")


def _plain(said: str) -> str:
    """What git said, without its hints and what it does to a terminal."""
    lines = said.replace("\x1b[K", "").split("\n")
    return "\n".join(line for line in lines if line.strip() and not line.startswith("hint:"))


def _stands_still(repo: Repository, stop: Stop | None, said: str | None) -> TreeError:
    """Why a rebase that has no conflict did not go on; `said` is what git said of an error."""
    place = repo.work_tree
    if stop is None:
        return TreeError(f"git rebase failed in {place}:\n{said}", then="nox -s bump -- --abort")
    command = todo.command(repo)
    if command == "edit" and (said is None or _REMEMBERED in said):
        return TreeError(
            f"stopped for you to edit {stop.title!r} in {place}",
            then=f"change the files there, `git commit --all --amend`, and run {_ON}",
        )
    if said is None:
        return TreeError(
            f"stopped at `{command}` in {place}, as the rebase's todo list says",
            then=f"do there what it is for, and run {_ON}",
        )
    if command.startswith("exec") and _EXECUTED in said:
        return TreeError(
            f"`{todo.last(repo)}` of the rebase's todo list failed in {place}:\n{said}",
            then=f"mend and commit it there, and run {_ON}, which goes on behind it",
        )
    return TreeError(
        f"git rebase failed in {place}:\n{said}", then=f"see to it there, and run {_ON}"
    )


def _stop(repo: Repository) -> Stop:
    """Where a rebase that is under way stands; it is written down if a person decides there."""
    said = repo.run("diff", "--name-only", "--diff-filter=U", "-z")
    unmerged = tuple(said.decode(errors="surrogateescape").split("\0")[:-1])
    commit = repo.resolve("REBASE_HEAD")
    if commit is None:
        return Stop(title=todo.last(repo), unmerged=unmerged)
    if not todo.is_due(repo):
        with (repo.git_dir / _STOOD).open("a") as log:
            log.write(f"{commit}\n")
    return Stop(title=_title(repo, commit), unmerged=unmerged)


def _title(repo: Repository, commit: CommitId) -> str:
    return repo.run("show", "-s", "--format=%s", commit).decode(errors="replace").strip()


def stood_at(tree: Path) -> frozenset[CommitId]:
    """The commits at which the rebase in `tree` stood still, so that a person decided on them."""
    try:
        return frozenset(map(CommitId, (tree / ".git" / _STOOD).read_text().split()))
    except FileNotFoundError:
        return frozenset()


def commits(tree: Path, new: Base, workspace: Workspace) -> tuple[CommitId, ...]:
    """The commits of a finished rebase, oldest first, now in the object store too.

    Raises TreeError where they do not stand on the new base, one of them has conflict markers, or
    work lies beside them.
    """
    repo = worktree.repository(tree, workspace)
    head = repo.resolve("HEAD")
    listed = repo.run("rev-list", "--reverse", "--topo-order", f"{NEW}..HEAD").decode().split()
    below = repo.resolve(f"{listed[0]}^") if listed else head
    if below == repo.resolve(NEW):
        _refuse_markers(repo)
    problem = _unfinished(repo)
    if problem is None and (below != repo.resolve(NEW) or _merges(repo)):
        problem = "is not one line on the new base"
    if problem is not None:
        raise TreeError(f"{tree} {problem}", then=f"git status there, put it right, and run {_ON}")
    worktree.hand_in(tree, new.store, workspace)
    return tuple(CommitId(commit) for commit in listed)


def _unfinished(repo: Repository) -> str | None:
    """What in a tree without a rebase is not done yet, in words; files of its own are let be."""
    for name, what in (("rebase-apply", "git am"), ("BISECT_START", "bisection")):
        if (repo.git_dir / name).exists():
            return f"has an unfinished {what}"
    said = repo.run("status", "--porcelain", "-z", "--no-renames", "--untracked-files=no")
    rows = said.decode(errors="surrogateescape").split("\0")[:-1]
    return f"has changes that are not committed: {', '.join(rows)}" if rows else None


def _refuse_markers(repo: Repository) -> None:
    """Raise TreeError where a commit on the new base brings in conflict markers."""
    found = markers.committed(repo, NEW)
    if not found:
        return
    what = []
    for commit, places in found.items():
        where = f"{_title(repo, commit)!r} ({commit[:12]})"
        what.append(f"conflict markers were left in {where}: {', '.join(places)}")
    first = next(iter(found))
    amend = "take them out, `git commit --all --amend`"
    if first == repo.resolve("HEAD"):
        raise_all(TreeError, what, then=f"in {repo.work_tree}: {amend}; then {_ON}")
    raise_all(
        TreeError,
        what,
        then=f"in {repo.work_tree}: `git rebase -i {first[:12]}^`, `edit` for that commit, {amend} "
        f"when it stops there, `git rebase --continue`; then {_ON}",
    )


def _merges(repo: Repository) -> bool:
    return bool(repo.run("rev-list", "--merges", f"{NEW}..HEAD"))
