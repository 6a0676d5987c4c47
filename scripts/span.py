"""Upstream's commits on the way from one pinned commit to another.

SGLang tags its releases on branches of their own: on the way from one to the next, the commits of
the old branch are undone back to the fork, and those of the new line applied from there on.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from scripts import source
from scripts.errors import CommandFailed, SourceError
from scripts.git import NO_BLOB, BlobId, CommitId, Repository
from scripts.source import Base, Route
from scripts.workspace import Workspace

_PULL = re.compile(r"\(#(\d+)\)\s*$")
_RAW = re.compile(r"^:\d+ \d+ ([0-9a-f]{40}) ([0-9a-f]{40}) ", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One upstream commit on the way, and the commit whose tree is there after it.

    `undone` says that the way leads back over it. `pull` is the pull request that its subject ends
    with, None where it names none.
    """

    commit: CommitId
    there: CommitId
    undone: bool
    title: str
    when: datetime

    @property
    def pull(self) -> int | None:
        found = _PULL.search(self.title)
        return int(found[1]) if found else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """The way from one base to another, whose history is in the object store."""

    old: Base
    new: Base
    fork: CommitId

    def steps(self, paths: Sequence[str] = ()) -> tuple[Step, ...]:
        """The first-parent commits on the way, in order; with `paths`, those that touch one."""
        store = self.new.store
        back = _listed(store, f"{self.fork}..{self.old.commit}", paths)
        forth = _listed(store, f"{self.fork}..{self.new.commit}", paths)
        undone = [_step(row, undone=True) for row in back]
        return (*undone, *(_step(row, undone=False) for row in reversed(forth)))

    def bring(self, paths: Sequence[str]) -> None:
        """Bring every version of `paths` on the way into the store, in one fetch.

        Sent together they are differences, a few bytes each. Raises SourceError.
        """
        shape = ("--first-parent", "--format=", "--raw", "--no-abbrev", "--no-renames")
        ways = [f"{self.fork}..{end}" for end in (self.old.commit, self.new.commit)]
        said = [self.new.store.run("log", *shape, way, "--", *paths) for way in ways]
        changes = _RAW.findall(b"".join(said).decode(errors="replace"))
        blobs = {BlobId(blob) for change in changes for blob in change}
        source.bring(self.new, blobs - {NO_BLOB})

    def at(self, step: Step) -> Base:
        """Upstream as it is after a step."""
        return replace(self.new, commit=step.there, tree=self.new.store.tree(step.there))


def between(old: Base, new: Base, workspace: Workspace) -> Span:
    """The way from `old` to `new`; its history, without files, is fetched on first use.

    Raises SourceError where it cannot be had: by the wheel route there is none.
    """
    if Route.WHEEL in (old.route, new.route):
        raise SourceError("release wheels have no history", then="nox -s culprit -- --route git")
    store = new.store
    fork = _fork(store, old, new)
    if fork is None:
        source.deepen((old, new), workspace)
        fork = _fork(store, old, new)
    if fork is None:
        raise SourceError(
            f"{old.commit[:12]} and {new.commit[:12]} have no commit in common in the last "
            f"{source.MARGIN.days} days before the older one",
            then=f"git merge-base {old.commit} {new.commit}, in a full clone",
        )
    return Span(old=old, new=new, fork=fork)


def _fork(store: Repository, old: Base, new: Base) -> CommitId | None:
    try:
        found = store.run("merge-base", old.commit, new.commit)
    except CommandFailed:
        return None
    return CommitId(found.decode().strip())


def _listed(store: Repository, revisions: str, paths: Sequence[str]) -> list[list[str]]:
    shape = "--format=%H%x00%P%x00%ct%x00%s"
    said = store.run("log", "--first-parent", "--no-show-signature", shape, revisions, "--", *paths)
    return [row.split("\0") for row in said.decode(errors="replace").split("\n")[:-1]]


def _step(row: list[str], *, undone: bool) -> Step:
    commit, parents, when, title = row
    return Step(
        commit=CommitId(commit),
        there=CommitId(parents.split(" ")[0] if undone else commit),
        undone=undone,
        title=title,
        when=datetime.fromtimestamp(int(when), UTC),
    )
