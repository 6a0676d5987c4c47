"""The series as it would be without one of its patches, or up to one of them."""

import tempfile
from dataclasses import dataclass
from pathlib import Path

from scripts import files, patched
from scripts.errors import CommandFailed
from scripts.git import CommitId
from scripts.patch import Patch
from scripts.patched import Patched
from scripts.series import Series
from scripts.workspace import Workspace

TESTS = "test/"


@dataclass(frozen=True, slots=True, kw_only=True)
class Omission:
    """A tree without `patch`. `others` says that all the other patches are in it.

    Where a later one needs `patch` it is the series up to it, and `why` says which one does.
    """

    patch: Patch
    patched: Patched
    others: bool
    why: str


def up_to(whole: Patched, count: int) -> Patched:
    """The first `count` patches of a series that was applied whole."""
    series = Series(patches=whole.series.patches[:count])
    return patched.of_commits(whole.base, series, whole.commits[:count])


def without(whole: Patched, number: int, workspace: Workspace) -> Omission:
    """`whole` without what patch `number` (from 0) does outside test/.

    The others are merged three-way in the object store; tests are left out of all of them, since
    they run from a folder of their own.
    """
    patch = whole.series.patches[number]
    others = [one for one in whole.series.patches if one is not patch]
    with files.exclusive(workspace.cache), tempfile.TemporaryDirectory() as folder:
        settings = {"GIT_INDEX_FILE": str(Path(folder) / "index")}
        store = whole.base.store
        store.run("read-tree", whole.base.commit, settings=settings)
        options = ("--cached", "--3way", "--binary", "--whitespace=nowarn", f"--exclude={TESTS}*")
        for other in others:
            if all(path.startswith(TESTS) for change in other.changes for path in change.paths):
                continue
            try:
                store.run("apply", *options, "-", input=other.diff, settings=settings)
            except CommandFailed:
                return Omission(
                    patch=patch,
                    patched=up_to(whole, number),
                    others=False,
                    why=f"{other.number} needs it",
                )
        tree = store.run("write-tree", "--missing-ok", settings=settings).decode().strip()
        message = f"The series without {patch.name}\n".encode()
        date = {f"GIT_{who}_DATE": f"@{patch.date}" for who in ("AUTHOR", "COMMITTER")}
        made = store.run(
            *("commit-tree", tree, "-p", whole.base.commit), input=message, settings=date
        )
    series = Series(patches=tuple(others))
    commit = CommitId(made.decode().strip())
    return Omission(
        patch=patch,
        patched=patched.of_commits(whole.base, series, [commit]),
        others=True,
        why="the others merge without it",
    )
