"""build/sglang: the patched commit checked out, for people to read, edit and install from."""

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
        current = _applied(tree, workspace) if tree.exists() else None
        if tree.exists():
            problem = work_at_risk(tree, workspace)
            if problem is None and current == patched.commit:
                return False
            if problem is not None and not force:
                raise TreeError(
                    f"{tree} {problem}",
                    then="keep your work (git commit, git stash, git rebase --abort), or run "
                    "`nox -s apply -- --force`, which sets the folder aside",
                )
            if problem is not None:
                workspace.say(f"{tree.name} was set aside as {files.set_aside(tree)}")
        with (
            workspace.progress("check out the patched tree"),
            files.replacing(tree) as new,
        ):
            make(patched, new, workspace)
            files.remove(tree)
        return True


def repository(tree: Path, workspace: Workspace) -> Repository:
    """The repository of a checked-out tree."""
    return Repository(git_dir=tree / ".git", work_tree=tree, environment=workspace.environment)


def work_at_risk(tree: Path, workspace: Workspace) -> str | None:
    """What would be lost if `tree` were replaced, in words; None where nothing would."""
    if not (tree / ".git").is_dir():
        return "is not a work tree of ours" if any(tree.iterdir()) else None
    problem = unfinished(tree, workspace)
    if problem is not None:
        return problem
    repo = repository(tree, workspace)
    try:
        extra = repo.run("rev-list", "--branches", "--tags", "HEAD", "--not", APPLIED, "--")
        stashed = repo.run("for-each-ref", "refs/stash")
    except CommandFailed as error:
        return f"cannot be read: {error.output}"
    if extra:
        return f"has {len(extra.splitlines())} commits that patchset/ does not have"
    return "has a stash" if stashed else None


def unfinished(tree: Path, workspace: Workspace) -> str | None:
    """What in `tree` is no commit yet, in words; None where there is nothing."""
    for name, what in _UNFINISHED.items():
        if (tree / ".git" / name).exists():
            return f"has an unfinished {what}"
    repo = repository(tree, workspace)
    try:
        dirty = repo.run("status", "--porcelain", "-z", "--no-renames").decode(errors="replace")
    except CommandFailed as error:
        return f"cannot be read: {error.output}"
    rows = dirty.split("\0")[:-1]
    more = f" and {len(rows) - 5} more" if len(rows) > 5 else ""
    return f"has changes that are not committed: {', '.join(rows[:5])}{more}" if rows else None


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
