"""The series on its base: one commit a patch, the same ids on every machine.

No work tree is needed: git applies each patch to an index of its own, and what comes out is
compared, path by path and blob by blob, with what the patch says must come out.
"""

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from scripts import files, origin, place, source
from scripts.diff import FileChange
from scripts.errors import ApplyError, CommandFailed
from scripts.git import IDENTITY, BlobId, CommitId, Entry, Repository, Tree
from scripts.patch import Patch
from scripts.series import Series
from scripts.source import Base, Route
from scripts.workspace import Workspace


@dataclass(frozen=True, slots=True, kw_only=True)
class Changed:
    """A file that the series changes as a whole: what it was and what it is, None if it is not."""

    path: str
    before: Entry | None
    after: Entry | None
    patches: tuple[Patch, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Patched:
    """A base with a series applied: the commit of each patch, and every file that changed."""

    base: Base
    series: Series
    commits: tuple[CommitId, ...]
    changed: tuple[Changed, ...]

    @property
    def commit(self) -> CommitId:
        """The last patch's commit, or the base's where the series is empty."""
        return self.commits[-1] if self.commits else self.base.commit


def apply(base: Base, series: Series, workspace: Workspace) -> Patched:
    """Apply `series` to `base`: strictly, in order, all of it or nothing.

    Raises ApplyError that names the patch, the file and the hunk, and what was expected and found.
    """
    source.complete(base, list(series.paths))
    tree = dict(base.tree)
    commits: list[CommitId] = []
    with files.exclusive(workspace.cache), tempfile.TemporaryDirectory() as folder:
        index = _Index(base.store, Path(folder) / "index", base.commit)
        parent = base.commit
        for number, patch in enumerate(series.patches, 1):
            where = f"patch {number} of {len(series.patches)}, {patch.name}"
            try:
                raise_for_misfits(patch, tree, base, where)
            except ApplyError as error:
                raise _one_reason(base, series, workspace) or error from None
            index.apply(patch, tree, where)
            parent = index.commit(patch, parent)
            commits.append(parent)
        if commits:
            base.store.run("update-ref", f"refs/patched/{parent}", parent)
    return Patched(
        base=base, series=series, commits=tuple(commits), changed=_changed(base, series, tree)
    )


def _one_reason(base: Base, series: Series, workspace: Workspace) -> ApplyError | None:
    """The one reason why a series does not fit: it was made for another release that is at hand."""
    wanted = first_images(series)
    wrong = {
        path
        for path, blob in wanted.items()
        if path not in base.tree or base.tree[path].blob != blob
    }
    with origin.at_hand(base.lock, base.store, workspace) as hand:
        names = hand.holding(wanted) if wrong else ()
    if not names:
        return None
    misfits = [
        patch for patch in series.patches if any(change.old in wrong for change in patch.changes)
    ]
    here = base.lock.requested_revision
    return ApplyError(
        f"{len(misfits)} of {len(series.patches)} patches do not fit {here}, all for one reason: "
        f"the series was made for {' or '.join(names)}, where every file is as it expects",
        then=f"nox -s rebase, which carries the series to {here}, or put upstream.lock back",
    )


def first_images(series: Series) -> dict[str, BlobId]:
    """The blob that the series expects at each path before its first patch there."""
    first: dict[str, BlobId] = {}
    made: set[str] = set()
    for change in (change for patch in series.patches for change in patch.changes):
        if change.old and change.pre and change.old not in made:
            first.setdefault(change.old, change.pre)
        made.update(change.paths)
    return first


def of_commits(base: Base, series: Series, commits: Sequence[CommitId]) -> Patched:
    """The `series` as `commits` on `base`, which were made before; the last one's tree counts."""
    tree = base.store.tree(commits[-1] if commits else base.commit, series.paths)
    return Patched(
        base=base, series=series, commits=tuple(commits), changed=_changed(base, series, tree)
    )


def _changed(base: Base, series: Series, tree: Tree) -> tuple[Changed, ...]:
    return tuple(
        Changed(
            path=path,
            before=base.tree.get(path),
            after=tree.get(path),
            patches=tuple(
                patch
                for patch in series.patches
                if any(path in change.paths for change in patch.changes)
            ),
        )
        for path in series.paths
        if base.tree.get(path) != tree.get(path)
    )


class _Index:
    """A git index of its own, outside any work tree, that patches are applied to."""

    def __init__(self, store: Repository, path: Path, commit: CommitId) -> None:
        self._store = store
        self._settings = {"GIT_INDEX_FILE": str(path)}
        self._git("read-tree", commit)
        self._tree = store.run("rev-parse", f"{commit}^{{tree}}").decode().strip()

    def _git(self, *args: str, input: bytes = b"") -> bytes:
        return self._store.run(*args, input=input, settings=self._settings)

    def apply(self, patch: Patch, tree: Tree, where: str) -> None:
        """Apply `patch`, and bring `tree` up to date with what came out.

        Raises ApplyError where that is not to the letter what the patch announces.
        """
        if patch.changes:
            options = ("--cached", "--binary", "--whitespace=nowarn")
            try:
                self._git("apply", *options, "-", input=patch.diff)
            except CommandFailed as error:
                raise ApplyError(f"{where}: git apply: {error.output}") from error
        new = self._git("write-tree", "--missing-ok").decode().strip()
        raw = self._git("diff-tree", "-r", "-z", "--no-renames", "--raw", self._tree, new)
        found = dict(_raw_rows(raw))
        expected = dict(_announced(patch.changes, tree))
        if found != expected:
            wrong = sorted(
                path for path in {*found, *expected} if found.get(path) != expected.get(path)
            )
            raise ApplyError(
                f"{where}: what came out is not what its index lines announce: {', '.join(wrong)}",
                then="export the patch again from its commit with --full-index",
            )
        self._tree = new
        for path, entry in found.items():
            if entry is None:
                del tree[path]
            else:
                tree[path] = entry

    def commit(self, patch: Patch, parent: CommitId) -> CommitId:
        return commit(self._store, patch, self._tree, parent)


def commit(store: Repository, patch: Patch, tree: str, parent: CommitId) -> CommitId:
    """Make the commit of `patch` with this tree: the same id on every machine."""
    name, address = IDENTITY
    settings = {
        "GIT_AUTHOR_NAME": patch.author,
        "GIT_AUTHOR_EMAIL": patch.email,
        "GIT_AUTHOR_DATE": f"@{patch.date}",
        "GIT_COMMITTER_NAME": name,
        "GIT_COMMITTER_EMAIL": address,
        "GIT_COMMITTER_DATE": f"@{patch.date}",
    }
    made = store.run("commit-tree", tree, "-p", parent, input=patch.message, settings=settings)
    return CommitId(made.decode().strip())


def _raw_rows(raw: bytes) -> Iterator[tuple[str, Entry | None]]:
    fields = raw.split(b"\0")[:-1]
    for meta, path in zip(fields[::2], fields[1::2], strict=True):
        _, mode, _, blob, status = meta.decode().split()
        entry = None if status == "D" else Entry(mode=mode, blob=BlobId(blob))
        yield path.decode(errors="surrogateescape"), entry


def _announced(changes: Sequence[FileChange], tree: Tree) -> Iterator[tuple[str, Entry | None]]:
    """What the changes say that each path holds after them; `tree` is what it held before."""
    for change in changes:
        before = tree[change.old] if change.old else None
        if change.old and change.old != change.new:
            yield change.old, None
        if change.new:
            mode = change.new_mode or (before.mode if before else "100644")
            blob = change.post or (before.blob if before else change.post)
            assert blob is not None
            if (
                before is None
                or change.old != change.new
                or (mode, blob)
                != (
                    before.mode,
                    before.blob,
                )
            ):
                yield change.new, Entry(mode=mode, blob=blob)


def raise_for_misfits(patch: Patch, tree: Tree, base: Base, where: str) -> None:
    """Raise ApplyError where a pre-image in `tree` is not the one that `patch` was made from."""
    for change in patch.changes:
        _refuse_links(change, tree, where)
        if change.old is None:
            if change.path in tree:
                raise ApplyError(f"{where}: adds {change.path}, which is there already")
            continue
        entry = tree.get(change.old)
        if entry is None:
            raise ApplyError(
                f"{where}: {change.old} is not in {base.lock.name} {base.lock.version}",
                then=_then(base),
            )
        mode = change.old_mode or change.mode
        if mode and not _same_mode(mode, entry.mode, base.route):
            raise ApplyError(f"{where}: {change.old}: expected mode {mode}, found {entry.mode}")
        if change.pre and entry.blob != change.pre:
            raise ApplyError(
                f"{where}: {change.old}: made for blob {change.pre[:12]}, found "
                f"{entry.blob[:12]}{_first_misfit(change, entry, base.store)}",
                then=_then(base),
            )


def _same_mode(one: str, other: str, route: Route) -> bool:
    """Whether two modes are the same, as far as the route carries them.

    Wheels lose the executable bit of some files (16 in SGLang 0.5.18), and hold no links.
    """
    return one == other or (route is Route.WHEEL and "120000" not in (one, other))


def _then(base: Base) -> str:
    return (
        f"export the patch from a commit on {base.lock.requested_revision} "
        f"({base.lock.commit[:12]}), or point upstream.lock at the release it was made for"
    )


def _refuse_links(change: FileChange, tree: Tree, where: str) -> None:
    for path in change.paths:
        for parent in PurePosixPath(path).parents:
            entry = tree.get(str(parent))
            if entry is not None:
                what = "a symbolic link" if entry.mode == "120000" else "a file"
                raise ApplyError(f"{where}: {path}: {parent} is {what}, not a folder")


def _first_misfit(change: FileChange, entry: Entry, store: Repository) -> str:
    """The first hunk whose lines are not where it expects them, as text for a message."""
    try:
        lines = place.lines(store.objects().read(entry.blob))
    except KeyError:
        return ""
    for number, hunk in enumerate(change.hunks(), 1):
        for line, expected in enumerate(hunk.before, hunk.start):
            found = lines[line - 1] if line <= len(lines) else b"(end of file)"
            if found.rstrip(b"\n") != expected.rstrip(b"\n"):
                return (
                    f"; hunk {number} ({hunk.heading or 'no heading'}), line {line}"
                    f"\n    expected: {expected.decode(errors='replace').rstrip()}"
                    f"\n    found:    {found.decode(errors='replace').rstrip()}"
                )
    return "; every hunk fits, but the file differs elsewhere"
