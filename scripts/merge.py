"""One commit carried to another base by a three-way merge, in the object store alone.

What git rebase does with each commit, without a work tree: git-merge-tree(1) merges what the
commit changed into the tree it is carried to, renames included.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from scripts.git import CommitId, Repository

_STAGE = re.compile(r"([0-7]{6}) ([0-9a-f]{40}) ([123])\t(.*)", re.DOTALL)
_ANY_DATE = {"GIT_AUTHOR_DATE": "@0 +0000", "GIT_COMMITTER_DATE": "@0 +0000"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Conflict:
    """Where a merge needs a person: the path, git's word for the kind, and its sentence."""

    path: str
    kind: str
    what: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Merged:
    """The tree that came out; with conflicts, one that holds conflict markers."""

    tree: str
    conflicts: tuple[Conflict, ...]


def carry(store: Repository, commit: CommitId, parent: CommitId, onto: str) -> Merged:
    """What `commit` changed since `parent`, merged into `onto` (a commit or a tree).

    Raises CommandFailed where a blob that the merge looks at is not in the store.
    """
    base = _stand_in(store, parent)
    ours, theirs = (_stand_in(store, side, base) for side in (onto, commit))
    said = store.run("merge-tree", "--write-tree", "-z", ours, theirs, accept=(0, 1))
    tree, *fields = said.decode(errors="surrogateescape").split("\0")
    return Merged(tree=tree, conflicts=tuple(_conflicts(fields)))


def _stand_in(store: Repository, treeish: str, *parents: str) -> str:
    """A commit of a tree, whose parents make git take the merge base that is meant."""
    words = [word for parent in parents for word in ("-p", parent)]
    made = store.run("commit-tree", f"{treeish}^{{tree}}", *words, settings=_ANY_DATE)
    return made.decode().strip()


def _conflicts(fields: list[str]) -> Iterator[Conflict]:
    """The output of `git merge-tree -z` after the tree: staged files, then messages."""
    unmerged: dict[str, None] = {}
    while fields and fields[0]:
        if found := _STAGE.fullmatch(fields.pop(0)):
            unmerged[found[4]] = None
    fields = fields[1:]
    told: dict[str, Conflict] = {}
    while fields and fields[0].isdigit():
        count = int(fields[0])
        paths, (kind, what) = fields[1 : 1 + count], fields[1 + count : 3 + count]
        fields = fields[3 + count :]
        if kind.startswith("CONFLICT"):
            for path in paths:
                told.setdefault(path, Conflict(path=path, kind=_word(kind), what=what.strip()))
    for path in unmerged:
        yield told.get(path, Conflict(path=path, kind="content", what="both sides changed it"))


def _word(kind: str) -> str:
    return kind.removeprefix("CONFLICT (").removesuffix(")")
