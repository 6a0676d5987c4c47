"""Upstream's history in a clone: which commit made a file what a patch expects, which ended it."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from scripts.errors import CommandFailed
from scripts.git import BlobId, CommitId, Objects, Repository
from scripts.lock import Lock

_RAW = re.compile(rb":\d+ \d+ ([0-9a-f]{40}) ([0-9a-f]{40}) [A-Z]\d*\t(.*)")
_MAIN = ("HEAD", "--branches=main", "--branches=master", "--remotes=origin/main")
_PINS = ("--glob=refs/pins/git/*",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A commit that changed a file from one blob to another."""

    commit: CommitId
    day: str
    title: str
    path: str
    before: BlobId
    after: BlobId

    def __str__(self) -> str:
        return f"{self.commit[:12]} ({self.day}, {self.title})"


@dataclass(frozen=True, kw_only=True)
class Past:
    """What is behind the pinned commit, and behind the main branch of a clone.

    Where `whole` is false, `clone` is the object store: it has the history, if any, that the search
    for a culprit has brought there.
    """

    lock: Lock
    clone: Repository
    whole: bool = True
    _steps: dict[str, tuple[Step, ...]] = field(default_factory=dict)

    def look_up(self, paths: Collection[str]) -> None:
        """Read the history of all of `paths` at once, which takes as long as that of one."""
        fresh = sorted(set(paths) - set(self._steps))
        if fresh:
            self._steps.update(dict.fromkeys(fresh, ()))
            for step in self._history(fresh):
                self._steps[step.path] = (*self._steps.get(step.path, ()), step)

    def steps(self, path: str) -> tuple[Step, ...]:
        """The commits that changed `path`, the newest first."""
        self.look_up([path])
        return self._steps.get(path, ())

    def is_here(self, step: Step) -> bool:
        """Whether the pinned commit has a step behind it, or is it."""
        words = ("merge-base", "--is-ancestor", step.commit, self.lock.commit)
        try:
            self.clone.run(*words)
        except CommandFailed:
            return False
        return True

    def content(self, digits: str) -> bytes | None:
        """The only blob whose id begins so; None where there is none, or several."""
        try:
            return self.clone.run("cat-file", "blob", digits)
        except CommandFailed:
            return None

    def read(self, blob: BlobId) -> bytes | None:
        """A blob's content; None where it is not here, which git itself takes long to find out."""
        try:
            return self._objects.read(blob)
        except KeyError:
            return None

    @cached_property
    def _objects(self) -> Objects:
        return self.clone.objects()

    def namesake(self, title: str, paths: Sequence[str]) -> Step | None:
        """The commit behind the pinned one that changed one of `paths` and has the same title."""
        wanted = _plain(title)
        for step in (step for path in paths for step in self.steps(path)):
            if wanted and wanted == _plain(step.title) and self.is_here(step):
                return step
        return None

    def landed(self, wanted: Mapping[str, tuple[str, str]]) -> Step | None:
        """The commit behind the pinned one that changed every path between these very blobs."""
        common: set[CommitId] | None = None
        step: Step | None = None
        for path, (before, after) in wanted.items():
            same = [
                one
                for one in self.steps(path)
                if one.before.startswith(before) and one.after.startswith(after)
            ]
            common = {one.commit for one in same} & (common or {one.commit for one in same})
            if not common:
                return None
            step = next(one for one in same if one.commit in common)
        return step if step and self.is_here(step) else None

    def story(self, wanted: Mapping[str, str]) -> str | None:
        """When each path was the blob that begins with these digits, as a clause; None: never."""
        made = [step for path, digits in wanted.items() if (step := self._made(path, digits))]
        if not made or len(made) < len(wanted):
            return None
        here = self.lock.requested_revision
        later = [step for step in made if not self.is_here(step)]
        if later:
            return f"made for upstream after commit {self._last(later)}, not in {here}"
        for step in made:
            gone = self._replaced(step.path, wanted[step.path])
            if gone is not None:
                return f"made for upstream before commit {gone}, which is in {here}"
        return None

    def _made(self, path: str, digits: str) -> Step | None:
        return next((step for step in self.steps(path) if step.after.startswith(digits)), None)

    def _replaced(self, path: str, digits: str) -> Step | None:
        gone = (step for step in self.steps(path) if step.before.startswith(digits))
        return next((step for step in gone if self.is_here(step)), None)

    def _history(self, paths: Sequence[str]) -> Iterator[Step]:
        """The changes of `paths`; a shallow clone's oldest commits only seem to be any."""
        tips = list(_MAIN if self.whole else _PINS)
        if self.clone.resolve(self.lock.commit):
            tips.append(self.lock.commit)
        shape = ("--format=%x00%H%x09%cs%x09%s", "--raw", "--no-abbrev", "--no-renames")
        plainly = ("-c", "log.showRoot=false", "--literal-pathspecs")
        said = self.clone.run(*plainly, "log", *shape, *tips, "--", *paths)
        return _parsed(said)

    def _last(self, steps: Sequence[Step]) -> Step:
        """The one of `steps` that has the others behind it."""
        words = ("rev-list", "--topo-order", *(step.commit for step in steps))
        commits = self.clone.run(*words, "--max-count=1").decode().split()
        return next(step for step in steps if step.commit == commits[0])


def _plain(title: str) -> str:
    """A title without tags before it and pull requests behind it, in one case."""
    bare = re.sub(r"^(?:\[[^]]*\]\s*)+|(?:\s*\(#\d+\))+$", "", title.strip())
    return bare.casefold()


def _parsed(said: bytes) -> Iterator[Step]:
    for part in said.split(b"\0")[1:]:
        head, _, rows = part.partition(b"\n")
        commit, day, title = head.decode(errors="replace").split("\t", 2)
        for before, after, path in _RAW.findall(rows):
            yield Step(
                commit=CommitId(commit),
                day=day,
                title=title,
                path=path.decode(errors="surrogateescape"),
                before=BlobId(before.decode()),
                after=BlobId(after.decode()),
            )
