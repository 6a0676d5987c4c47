"""Which release or commit a patch was made from: where the files that it changes are at hand.

At hand are the commits that the object store holds, the release wheels in the cache, and a clone of
upstream with its history where there is one. Nothing is fetched.
"""

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

from packaging.utils import InvalidWheelFilename, parse_wheel_filename

from scripts import fit, place, wheelfile
from scripts.errors import CommandFailed, WheelError
from scripts.git import BlobId, CommitId, Repository, Tree, blob_id
from scripts.level import FileEdit
from scripts.lock import Lock
from scripts.wheelfile import Wheel
from scripts.workspace import Workspace

_RAW = re.compile(rb":\d+ \d+ ([0-9a-f]{40}) ([0-9a-f]{40}) [A-Z]\d*\t(.*)")
_AS_WHEELS = re.compile(r"\S+ (\S+) as its release wheels have it")


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """A state of upstream: what people call it, and its files by path, None: not there."""

    name: str
    blob: Callable[[str], BlobId | None]
    read: Callable[[str], bytes | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A commit of upstream's history that changed a file from one blob to another."""

    commit: CommitId
    day: str
    title: str
    path: str
    before: BlobId
    after: BlobId

    def __str__(self) -> str:
        return f"{self.commit[:12]} ({self.day}, {self.title})"


@dataclass(frozen=True, slots=True, kw_only=True)
class AtHand:
    """What there is to look in. `past` is a clone with upstream's history."""

    lock: Lock
    store: Repository
    releases: Sequence[Release]
    past: Repository | None = None
    _steps: dict[str, tuple[Step, ...]] = field(default_factory=dict)

    def find(self, path: str, digits: str) -> BlobId | None:
        """The blob whose id begins with `digits` in the store, put there where it is elsewhere."""
        if len(digits) < 7 or not re.fullmatch("[0-9a-f]+", digits):
            return None
        found = _resolved(self.store, digits)
        if found:
            return found
        holding = (one for one in self.releases if (one.blob(path) or "").startswith(digits))
        content = next((one.read(path) for one in holding), None)
        if content is None and self.past and (blob := _resolved(self.past, digits)):
            content = self.past.run("cat-file", "blob", blob)
        if content is None:
            return None
        written = self.store.run("hash-object", "-w", "--stdin", input=content)
        return BlobId(written.decode().strip())

    def holding(self, wanted: Mapping[str, str]) -> tuple[str, ...]:
        """The releases in which every path of `wanted` is the blob that begins with its digits."""
        return self._where(
            lambda release: all(
                (release.blob(path) or "-").startswith(digits) for path, digits in wanted.items()
            )
        )

    def fitting(self, edits: Sequence[FileEdit]) -> tuple[str, ...]:
        """The releases in which every hunk of `edits` stands at the line that it names."""
        return self._where(
            lambda release: all(
                (content := release.read(edit.old)) is not None and _fits(edit, content)
                for edit in edits
                if edit.old
            )
        )

    def with_paths(self, paths: Sequence[str]) -> tuple[str, ...]:
        """The releases that have all of `paths`."""
        return self._where(lambda release: all(release.blob(path) for path in paths))

    def _where(self, holds: Callable[[Release], bool]) -> tuple[str, ...]:
        return tuple(dict.fromkeys(one.name for one in self.releases if holds(one)))

    def look_up(self, paths: Collection[str]) -> None:
        """Read the history of all of `paths` at once, which takes as long as that of one."""
        fresh = sorted(set(paths) - set(self._steps))
        if self.past is not None and fresh:
            self._steps.update(dict.fromkeys(fresh, ()))
            for step in _history(self.past, self.lock.commit, fresh):
                self._steps[step.path] = (*self._steps.get(step.path, ()), step)

    def steps(self, path: str) -> tuple[Step, ...]:
        """The commits that changed `path`, the newest first; none without a clone."""
        self.look_up([path])
        return self._steps.get(path, ())

    def namesake(self, title: str, paths: Sequence[str]) -> Step | None:
        """The commit behind the pinned one that changed one of `paths` and has the same title."""
        wanted = _plain(title)
        for step in (step for path in paths for step in self.steps(path)):
            if wanted and wanted == _plain(step.title) and self._is_here(step):
                return step
        return None

    def _is_here(self, step: Step) -> bool:
        return self.past is not None and _is_in(self.past, step.commit, self.lock.commit)

    def story(self, wanted: Mapping[str, str]) -> str | None:
        """What the history says of when the blobs of `wanted` were there, as a clause."""
        made = {path: self._made(path, digits) for path, digits in wanted.items()}
        return self._told([step for step in made.values() if step], wanted)

    def story_of_context(self, edits: Sequence[FileEdit]) -> str | None:
        """The same for diffs without index lines: the newest state in which every hunk fits."""
        found: dict[str, BlobId] = {}
        for edit in edits:
            for step in self.steps(edit.old) if edit.old and self.past else ():
                blobs = [one for one in (step.after, step.before) if one.strip("0")]
                fits = (one for one in blobs if self._past_fits(edit, one))
                if blob := next(fits, None):
                    found[step.path] = blob
                    break
        if len(found) < len([edit for edit in edits if edit.old]):
            return None
        return self.story(found)

    def _past_fits(self, edit: FileEdit, blob: BlobId) -> bool:
        assert self.past is not None
        return _fits(edit, self.past.run("cat-file", "blob", blob))

    def _made(self, path: str, digits: str) -> Step | None:
        return next((step for step in self.steps(path) if step.after.startswith(digits)), None)

    def _told(self, made: Sequence[Step], wanted: Mapping[str, str]) -> str | None:
        if not made or len(made) < len(wanted) or self.past is None:
            return None
        here = self.lock.requested_revision
        later = [step for step in made if not self._is_here(step)]
        if later:
            newest = _last(self.past, later)
            return f"made for upstream after commit {newest}, not in {here}"
        for step in made:
            gone = self._replaced(step.path, wanted[step.path])
            if gone is not None:
                return f"made for upstream before commit {gone}, which is in {here}"
        return None

    def _replaced(self, path: str, digits: str) -> Step | None:
        gone = (step for step in self.steps(path) if step.before.startswith(digits))
        return next((step for step in gone if self._is_here(step)), None)


def _plain(title: str) -> str:
    """A title without tags before it and pull requests behind it, in one case."""
    bare = re.sub(r"^(?:\[[^]]*\]\s*)+|(?:\s*\(#\d+\))+$", "", title.strip())
    return bare.casefold()


def _fits(edit: FileEdit, content: bytes) -> bool:
    return place.exact(fit.adapted(edit, content), place.lines(content))


def _resolved(repository: Repository, digits: str) -> BlobId | None:
    """The only blob of `repository` whose id begins so."""
    try:
        found = repository.run("rev-parse", "--verify", "--quiet", f"{digits}^{{blob}}")
    except CommandFailed:
        return None
    return BlobId(found.decode().strip())


def _is_in(repository: Repository, commit: CommitId, other: CommitId) -> bool:
    """Whether `other` has `commit` among its ancestors, or is it."""
    try:
        repository.run("merge-base", "--is-ancestor", commit, other)
    except CommandFailed:
        return False
    return True


def _last(repository: Repository, steps: Sequence[Step]) -> Step:
    """The one of `steps` that has the others behind it."""
    words = ("rev-list", "--topo-order", "--no-walk=sorted", *(step.commit for step in steps))
    first = repository.run(*words).decode().split()[0]
    return next(step for step in steps if step.commit == first)


def _history(past: Repository, pinned: CommitId, paths: Sequence[str]) -> Iterator[Step]:
    """The commits on the main branch of `past`, and behind `pinned`, that changed `paths`."""
    tips = ["HEAD", "--branches=main", "--branches=master", "--remotes=origin/main"]
    if past.resolve(pinned):
        tips.append(pinned)
    words = ("--format=%x00%H%x09%cs%x09%s", "--raw", "--no-abbrev", "--no-renames")
    said = past.run("log", *words, *tips, "--", *paths)
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


@contextmanager
def at_hand(
    lock: Lock, store: Repository, workspace: Workspace, past: Repository | None = None
) -> Iterator[AtHand]:
    """All there is to look in; the wheels are open within the block."""
    with ExitStack() as stack:
        releases = [*_wheels(lock, workspace, stack), *_pins(lock, store)]
        yield AtHand(lock=lock, store=store, releases=releases, past=past)


def _pins(lock: Lock, store: Repository) -> Iterator[Release]:
    rows = store.run("for-each-ref", "--format=%(objectname) %(subject)", "refs/pins").decode()
    for row in rows.splitlines():
        commit, _, title = row.partition(" ")
        found = _AS_WHEELS.fullmatch(title)
        name = found[1] if found else f"commit {commit[:12]} ({title})"
        if commit == lock.commit:
            name = lock.requested_revision
        yield _of_commit(name, store, CommitId(commit))


def _of_commit(name: str, store: Repository, commit: CommitId) -> Release:
    tree: Tree = {}

    def blob(path: str) -> BlobId | None:
        if not tree:
            tree.update(store.tree(commit))
        return tree[path].blob if path in tree else None

    def read(path: str) -> bytes | None:
        try:
            return store.objects().read(found) if (found := blob(path)) else None
        except KeyError:
            return None  # of a partial clone

    return Release(name=name, blob=blob, read=read)


def _wheels(lock: Lock, workspace: Workspace, stack: ExitStack) -> Iterator[Release]:
    """One wheel of each version in the cache: those of a version share their source."""
    versions = set()
    for path in sorted((workspace.cache / "wheels").glob(f"{lock.name}-*.whl")):
        try:
            version = str(parse_wheel_filename(path.name)[1])
            if version in versions:
                continue
            wheel = stack.enter_context(wheelfile.opened(path))
        except (InvalidWheelFilename, WheelError):
            continue  # not one of upstream's: nothing is to be learned from it
        versions.add(version)
        yield _of_wheel(version, wheel, lock.subdirectory)


def _of_wheel(name: str, wheel: Wheel, subdirectory: str) -> Release:
    def read(path: str) -> bytes | None:
        member = path.removeprefix(f"{subdirectory}/")
        return None if member == path or member not in wheel.members else wheel.read(member)

    def blob(path: str) -> BlobId | None:
        content = read(path)
        return None if content is None else blob_id(content)

    return Release(name=name, blob=blob, read=read)
