"""build/sglang: the patched commit checked out, for people to read, edit and install from."""

import re
from collections.abc import Sequence
from pathlib import Path

from scripts import files, source
from scripts.errors import CommandFailed, TreeError
from scripts.git import CommitId, Repository
from scripts.patched import Patched
from scripts.workspace import Workspace

BRANCH = "patched"
BASE = "refs/sglang-sm120/base"
APPLIED = "refs/sglang-sm120/applied"


def check_out(patched: Patched, workspace: Workspace, *, force: bool = False) -> bool:
    """Make build/sglang hold the patched commit; False where it did already.

    What a person did there is never lost: edits, commits and unfinished rebases raise TreeError,
    and with `force` the old tree is set aside and not removed.
    """
    with files.exclusive(workspace.build):
        tree = workspace.tree
        if is_there(tree):
            problem = work_at_risk(tree, workspace)
            if problem is None and _applied(tree, workspace) == patched.commit:
                return False
            if problem is not None and not force:
                raise TreeError(
                    f"{tree} {problem}",
                    then="keep your work (git commit, git stash, git rebase --abort), or run "
                    "`nox -s apply -- --force`, which sets the folder aside",
                )
        with (
            workspace.progress("check out the patched tree"),
            files.replacing(tree) as new,
        ):
            make(patched, new, workspace)
            clear(workspace)
        return True


def is_there(tree: Path) -> bool:
    """Whether anything stands there, be it a link that leads nowhere."""
    return tree.is_symlink() or tree.exists()


def clear(workspace: Workspace, *kept: str, given_up: bool = False) -> None:
    """Take build/sglang away: it is removed if nothing is lost by that, else set aside and named.

    The commits of the revisions `kept` are elsewhere too; `given_up` says that the rebase there,
    with what it left in the tree, is not wanted any more.
    """
    tree = workspace.tree
    if not is_there(tree):
        return
    problem = work_at_risk(tree, workspace, *kept, given_up=given_up) or _ignored(tree, workspace)
    if problem is None:
        files.remove(tree)
    else:
        workspace.say(f"{tree.name} {problem}; it was set aside as {files.set_aside(tree)}")


def repository(tree: Path, workspace: Workspace) -> Repository:
    """The repository of a checked-out tree."""
    return Repository(git_dir=tree / ".git", work_tree=tree, environment=workspace.environment)


def work_at_risk(
    tree: Path, workspace: Workspace, *kept: str, given_up: bool = False
) -> str | None:
    """What would be lost if `tree` were replaced, in words; None where nothing would.

    `kept` and `given_up` are as clear() takes them.
    """
    if tree.is_symlink() or not tree.is_dir():
        return "is a link or a file, and no folder"
    if not (tree / ".git").is_dir():
        return "is not a work tree of ours" if any(tree.iterdir()) else None
    repo = repository(tree, workspace)
    try:
        problem = _untracked(repo) if given_up else unfinished(tree, workspace)
        return problem or _beside(repo, () if given_up else ("HEAD",), (APPLIED, *kept))
    except CommandFailed as error:
        return f"cannot be read: {error.output}"


def _beside(repo: Repository, heads: Sequence[str], kept: Sequence[str]) -> str | None:
    """Work that is in no file of the tree, in words."""
    if repo.run("for-each-ref", "refs/stash"):
        return "has a stash"
    refs = ("--exclude=refs/sglang-sm120/*", "--glob=*", *heads)
    extra = repo.run("rev-list", *refs, "--not", *kept, "--").splitlines()
    if extra:
        return f"has {len(extra)} commits that patchset/ does not have"
    if any((repo.git_dir / "worktrees").glob("*")):
        return "has other work trees (git worktree list)"
    return None


def unfinished(tree: Path, workspace: Workspace) -> str | None:
    """What in `tree` is no commit yet, in words; None where there is nothing."""
    for name, what in _UNFINISHED.items():
        if (tree / ".git" / name).exists():
            return f"has an unfinished {what}"
    repo = repository(tree, workspace)
    try:
        hidden = [row for row in _listed(repo, "ls-files", "-v", "-z") if not row.startswith("H ")]
        rows = _listed(repo, *_STATUS)
    except CommandFailed as error:
        return f"cannot be read: {error.output}"
    if rows:
        return f"has changes that are not committed: {_some(rows)}"
    return f"has files that git was told not to look at: {_some(hidden)}" if hidden else None


_STATUS = ("status", "--porcelain", "-z", "--no-renames", "--untracked-files=all")
_MADE = re.compile(r"(__pycache__|[^/]*\.egg-info|\.[a-z]+_cache)/|\.pyc$|(^|/)_version\.py$")


def _untracked(repo: Repository) -> str | None:
    rows = [row for row in _listed(repo, *_STATUS) if row.startswith("??")]
    return f"has files that are in no commit: {_some(rows)}" if rows else None


def _ignored(tree: Path, workspace: Workspace) -> str | None:
    """Files that git ignores and no build makes, in words."""
    if not (tree / ".git").is_dir():
        return None
    repo = repository(tree, workspace)
    rows = _listed(repo, *_STATUS, "--ignored=matching")
    kept = [row for row in rows if row.startswith("!!") and not _MADE.search(row)]
    return f"has files that git ignores: {_some(kept)}" if kept else None


def _listed(repo: Repository, *args: str) -> list[str]:
    return repo.run(*args).decode(errors="replace").split("\0")[:-1]


def _some(rows: Sequence[str]) -> str:
    more = f" and {len(rows) - 5} more" if len(rows) > 5 else ""
    return f"{', '.join(rows[:5])}{more}"


_UNFINISHED = {
    "rebase-apply": "git am or rebase",
    "rebase-merge": "git rebase",
    "MERGE_HEAD": "merge",
    "CHERRY_PICK_HEAD": "cherry-pick",
    "REVERT_HEAD": "revert",
    "BISECT_START": "bisection",
}


def _applied(tree: Path, workspace: Workspace) -> CommitId | None:
    if not (tree / ".git").is_dir():
        return None
    repo = repository(tree, workspace)
    applied = repo.resolve(APPLIED)
    return applied if applied == repo.resolve("HEAD") else None


def make(patched: Patched, new: Path, workspace: Workspace) -> None:
    """Check the patched commit out at `new`, a path that is free."""
    source.complete(patched.base)
    store = patched.base.store
    new.mkdir()
    repo = repository(new, workspace)
    repo.run("init", "--quiet", "--template=", f"--initial-branch={BRANCH}")
    depth = len(patched.commits) + 1
    take(repo, store, depth, f"{patched.commit}:{APPLIED}")
    repo.run("update-ref", BASE, patched.base.commit)
    repo.run("update-ref", f"refs/heads/{BRANCH}", patched.commit)
    repo.run("reset", "--quiet", "--hard", BRANCH)


def stand_on(patched: Patched, workspace: Workspace) -> None:
    """Let build/sglang, whose files are those of `patched`, stand on its commits."""
    repo = repository(workspace.tree, workspace)
    depth = len(patched.commits) + 1
    take(repo, patched.base.store, depth, f"+{patched.commit}:{APPLIED}")
    repo.run("reset", "--quiet", "--soft", APPLIED)


def hand_in(tree: Path, store: Repository, workspace: Workspace) -> None:
    """Bring the commits that `tree` stands on into the object store."""
    with files.exclusive(workspace.cache):
        store.run(
            *("fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--update-shallow"),
            *((tree / ".git").as_uri(), "+HEAD:refs/handwork"),
            settings={"GIT_ALLOW_PROTOCOL": "file"},
        )


def take(repo: Repository, store: Repository, depth: int, ref: str) -> None:
    """Fetch `ref` from the object store into a repository, `depth` commits of it."""
    repo.run(
        *("fetch", "--quiet", "--no-tags", "--no-write-fetch-head", f"--depth={depth}"),
        *(store.git_dir.as_uri(), ref),
        settings={"GIT_ALLOW_PROTOCOL": "file"},
    )
