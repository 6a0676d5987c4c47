"""Which release or commit a patch was made from: where the files that it changes are at hand.

At hand are the commits that the object store holds, the release wheels in the cache, and a clone of
upstream with its history where there is one. Only a file of such a commit, which a partial clone
lacks, is ever fetched.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from packaging.utils import InvalidWheelFilename, parse_wheel_filename

from scripts import fit, place, wheelfile
from scripts.errors import CommandFailed, WheelError
from scripts.git import NO_BLOB, BlobId, CommitId, Repository, Tree, blob_id
from scripts.level import FileEdit
from scripts.lock import Lock
from scripts.past import Past
from scripts.wheelfile import Wheel
from scripts.workspace import Workspace

_AS_WHEELS = re.compile(r"\S+ (\S+) as its release wheels have it")


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """A state of upstream: what people call it, and its files by path, None: not there."""

    name: str
    blob: Callable[[str], BlobId | None]
    read: Callable[[str], bytes | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class AtHand:
    """What there is to look in.

    Where it is not `offline`, a file of a commit in the store may be fetched.
    """

    lock: Lock
    store: Repository
    releases: Sequence[Release]
    past: Past
    offline: bool = True

    def find(self, path: str, digits: str) -> BlobId | None:
        """The blob whose id begins with `digits` in the store, put there where it is elsewhere."""
        if len(digits) < 7 or not re.fullmatch("[0-9a-f]+", digits):
            return None
        found = _resolved(self.store, digits)
        if found:
            return found
        for release in self.releases:
            blob = release.blob(path)
            if blob is not None and blob.startswith(digits):
                content = release.read(path)
                if content is None and self._fetch(blob):
                    return blob
                break
        else:
            content = None
        if content is None and self.past.whole:
            content = self.past.content(digits)
        if content is None:
            return None
        written = self.store.run("hash-object", "-w", "--stdin", input=content)
        return BlobId(written.decode().strip())

    def _fetch(self, blob: BlobId) -> bool:
        """Whether a blob of a commit in the store could be brought there."""
        if self.offline:
            return False
        try:
            self.store.fetch("--filter=blob:none", "--stdin", "origin", input=f"{blob}\n".encode())
        except CommandFailed:
            return False
        return True

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

    def story_of_context(self, edits: Sequence[FileEdit]) -> str | None:
        """When every hunk of `edits` stood at its line for the last time; None: never."""
        found: dict[str, str] = {}
        for edit in edits:
            if edit.old and (blob := _newest(self.past, edit, edit.old)):
                found[edit.old] = blob
        if len(found) < sum(edit.old is not None for edit in edits):
            return None
        return self.past.story(found)


def _newest(past: Past, edit: FileEdit, path: str) -> BlobId | None:
    blobs = dict.fromkeys(blob for step in past.steps(path) for blob in (step.after, step.before))
    for blob in blobs:
        content = past.read(blob) if blob != NO_BLOB else None
        if content is not None and _fits(edit, content):
            return blob
    return None


def _fits(edit: FileEdit, content: bytes) -> bool:
    """Whether every hunk stands at its line. One that expects no line there stands anywhere."""
    hunks = fit.adapted(edit, content)
    return all(hunk.before for hunk in hunks) and place.exact(hunks, place.lines(content))


def _resolved(repository: Repository, digits: str) -> BlobId | None:
    """The only blob of `repository` whose id begins so."""
    try:
        found = repository.run("rev-parse", "--verify", "--quiet", f"{digits}^{{blob}}")
    except CommandFailed:
        return None
    return BlobId(found.decode().strip())


@contextmanager
def at_hand(
    lock: Lock, store: Repository, workspace: Workspace, clone: Repository | None = None
) -> Iterator[AtHand]:
    """All there is to look in beside the pinned commit; the wheels are open within the block."""
    past = Past(lock=lock, clone=clone or store, whole=clone is not None)
    with ExitStack() as stack:
        releases = [*_wheels(lock, workspace, stack), *_pins(lock, store)]
        yield AtHand(
            lock=lock, store=store, releases=releases, past=past, offline=workspace.offline
        )


def _pins(lock: Lock, store: Repository) -> Iterator[Release]:
    rows = store.run(
        "for-each-ref", "--format=%(objectname) %(committerdate:short) %(subject)", "refs/pins"
    ).decode(errors="replace")
    for row in rows.split("\n")[:-1]:
        commit, day, title = row.split(" ", 2)
        found = _AS_WHEELS.fullmatch(title)
        name = found[1] if found else f"commit {commit[:12]} of {day}"
        if commit == lock.commit or (found and found[1] == lock.version):
            continue
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
            if version in versions or version == lock.version:
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
