"""The commits of build/sglang taken back into patchset/."""

from dataclasses import dataclass

from scripts import export, files, lineage, patched, swap, worktree
from scripts.errors import SeriesError, TreeError
from scripts.git import CommitId
from scripts.patched import Patched
from scripts.series import Series
from scripts.source import Base
from scripts.workspace import Workspace


@dataclass(frozen=True, slots=True, kw_only=True)
class Refreshed:
    """The series as it is now, and how its patches differ from those before, by file name."""

    patched: Patched
    new: tuple[str, ...]
    changed: tuple[str, ...]
    gone: tuple[str, ...]
    reordered: bool


def commits(base: Base, workspace: Workspace) -> tuple[CommitId, ...]:
    """The commits of build/sglang on `base`, oldest first, now in the object store too.

    Raises TreeError where the tree is not there, on another base, or has work that is no commit.
    """
    tree = workspace.tree
    if not (tree / ".git").is_dir():
        raise TreeError(f"{tree} is not there", then="nox -s apply")
    unfinished = worktree.unfinished(tree, workspace)
    if unfinished:
        raise TreeError(
            f"{tree} {unfinished}", then=f"git status in {tree}: commit, stash or finish it first"
        )
    repo = worktree.repository(tree, workspace)
    below = repo.resolve(worktree.BASE)
    if below != base.commit:
        raise TreeError(
            f"{tree} is on {below or 'no base of ours'}, upstream.lock gives {base.commit} "
            f"by the {base.route} route",
            then="nox -s apply, which keeps what you did there; or --route, if it was made by "
            "the other route",
        )
    span = f"{below}..HEAD"
    listed = repo.run("rev-list", "--reverse", "--topo-order", span).decode().split()
    one_line = len(repo.run("rev-list", "--first-parent", span).decode().split()) == len(listed)
    if not one_line or repo.run("merge-base", below, "HEAD").decode().strip() != below:
        raise TreeError(
            f"{tree} is not one line of commits on {below[:12]}",
            then="git rebase them into one line there, and run this again",
        )
    worktree.hand_in(tree, base.store, workspace)
    return tuple(CommitId(commit) for commit in listed)


def series(base: Base, known: Series, workspace: Workspace) -> Series:
    """What build/sglang holds as a series; a commit that was a patch keeps its file name.

    Raises TreeError, also where patchset/ has changed since the tree was made from it, and
    SeriesError where a message lacks what the series asks for.
    """
    made = commits(base, workspace)
    fresh = Series(patches=lineage.patches(base.store, base.commit, made, known.patches))
    if fresh != known:
        _refuse_stale(base, known, workspace)
    return fresh


def _refuse_stale(base: Base, known: Series, workspace: Workspace) -> None:
    """Raise TreeError where build/sglang was made from another series than `known`."""
    repo = worktree.repository(workspace.tree, workspace)
    applied = repo.resolve(worktree.APPLIED)
    if applied == patched.apply(base, known, workspace).commit:
        return
    what = f"{workspace.tree} was made from another series than patchset/ holds now"
    if applied == repo.resolve("HEAD"):
        raise TreeError(f"{what}, and has nothing of its own", then="nox -s apply")
    raise TreeError(
        f"{what}, and has commits of its own, which would undo what patchset/ has gained",
        then="nox -s apply -- --force, which sets the folder aside; then `git fetch` from there "
        "into build/sglang, and git cherry-pick yours",
    )


def refresh(base: Base, known: Series, workspace: Workspace) -> Refreshed:
    """Make patchset/ what build/sglang holds. Raises as series() does."""
    with files.exclusive(workspace.build):
        fresh = series(base, known, workspace)
        result = patched.apply(base, fresh, workspace)
        order = files.text(workspace.patchset / "series", SeriesError)
        gone = [one.name for one in known.patches if one.name not in _names(fresh)]
        contents: dict[str, bytes | None] = {**dict.fromkeys(gone), **export.files(fresh, order)}
        swap.replace({f"patchset/{name}": new for name, new in contents.items()}, workspace)
        worktree.stand_on(result, workspace)
    return difference(known, result)


def difference(known: Series, result: Patched) -> Refreshed:
    """How the series of `result` differs from the one that was known."""
    before = {one.name: one.content for one in known.patches}
    fresh = result.series
    kept = [one for one in fresh.patches if one.name in before]
    return Refreshed(
        patched=result,
        new=tuple(one.name for one in fresh.patches if one.name not in before),
        changed=tuple(one.name for one in kept if one.content != before[one.name]),
        gone=tuple(one.name for one in known.patches if one.name not in _names(fresh)),
        reordered=[one.name for one in kept]
        != [one.name for one in known.patches if one.name in _names(fresh)],
    )


def _names(series: Series) -> set[str]:
    return {one.name for one in series.patches}
