"""What a wheel is, proved from its bytes: against the lock, the series and upstream's wheel."""

import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from scripts import notice, overlay, sbom, wheelfile
from scripts.errors import VerifyError, raise_all
from scripts.git import BlobId, blob_id
from scripts.lock import Lock, ReleaseWheel
from scripts.patch import Patch
from scripts.patched import Patched
from scripts.series import Series
from scripts.source import is_source
from scripts.wheelfile import Wheel


@dataclass(frozen=True, slots=True, kw_only=True)
class Verified:
    """A wheel that is what it says: its file name, version, and how many members were compared."""

    name: str
    version: str
    members: int
    patched: tuple[str, ...]


def verify(path: Path, lock: Lock, series: Series, release: ReleaseWheel, base: Path) -> Verified:
    """Prove that the wheel at `path` is upstream's wheel `base` with the series in it.

    RECORD, the version in its four places, the pins, each patched file's blob, and that nothing
    else differs, permissions included. Raises VerifyError that lists everything that is not so.
    """
    with wheelfile.opened(path) as ours, wheelfile.opened(base) as theirs:
        patched = _patched(lock, series)
        findings = [
            *record_findings(ours),
            *version_findings(ours, lock),
            *bill_findings(ours, lock, series, release),
            *content_findings(ours, lock, patched),
            *_base_findings(ours, theirs, lock, patched),
        ]
        _raise_for(path, findings)
        return _verified(path, lock, ours, patched)


def built_from_source(path: Path) -> bool:
    """Whether a wheel's bill says that it was built from source. Raises VerifyError, WheelError."""
    with wheelfile.opened(path) as wheel:
        name = f"{wheel.dist_info}/sboms/{sbom.NAME}"
        if name not in wheel.members:
            raise VerifyError(f"{path.name}: {name} is missing", then="nox -s build_wheel")
        return sbom.parse(wheel.read(name)).base is None


def verify_source_build(path: Path, patched: Patched) -> Verified:
    """Prove that the wheel at `path`, built from source, holds the patched tree's files.

    Every file of the package is compared with the tree, but for what a build makes. Raises
    VerifyError.
    """
    lock, series = patched.base.lock, patched.series
    expected = _patched(lock, series)
    with wheelfile.opened(path) as wheel:
        findings = [
            *record_findings(wheel),
            *version_findings(wheel, lock),
            *bill_findings(wheel, lock, series, None),
            *content_findings(wheel, lock, expected),
            *_tree_findings(wheel, patched, expected),
        ]
        _raise_for(path, findings)
        return _verified(path, lock, wheel, expected)


def _tree_findings(
    wheel: Wheel, patched: Patched, expected: dict[str, "_Expected"]
) -> Iterator[str]:
    lock = patched.base.lock
    for name, info in wheel.members.items():
        if info.is_dir() or name in expected:
            continue
        entry = patched.base.tree.get(f"{lock.subdirectory}/{name}")
        if entry is None and is_source(name, lock.name, wheel.dist_info):
            yield f"{name} is not in the patched tree"
        is_file = entry is not None and entry.mode != "120000"
        if entry is not None and is_file and blob_id(wheel.read(name)) != entry.blob:
            yield f"{name} is not the patched tree's"


def _raise_for(path: Path, findings: list[str]) -> None:
    raise_all(
        VerifyError,
        [f"{path.name}: {finding}" for finding in findings],
        then="do not publish it; build it again (nox -s build_wheel)",
    )


def _verified(path: Path, lock: Lock, wheel: Wheel, expected: dict[str, "_Expected"]) -> Verified:
    return Verified(
        name=path.name,
        version=lock.distribution_version,
        members=len(wheel.members),
        patched=tuple(sorted(expected)),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Expected:
    """What the series makes of a member: its blob (None: deleted), its mode where it sets one."""

    blob: BlobId | None
    mode: str | None
    added: bool
    patches: tuple[Patch, ...]


def _patched(lock: Lock, series: Series) -> dict[str, _Expected]:
    """The members that the series touches, by name, from the patches' own index lines."""
    expected: dict[str, _Expected] = {}
    prefix = f"{lock.subdirectory}/"
    for patch in series.patches:
        for change in patch.changes:
            old = expected.get((change.old or "").removeprefix(prefix))
            content = change.post or (old.blob if old else change.pre)
            for path in change.paths:
                name = path.removeprefix(prefix)
                if name == path or not name.startswith(f"{lock.name}/"):
                    continue
                before = expected.get(name)
                expected[name] = _Expected(
                    blob=content if path == change.new else None,
                    mode=change.new_mode or (before.mode if before else None),
                    added=before.added if before else change.old != path,
                    patches=(*(before.patches if before else ()), patch),
                )
    return expected


def record_findings(wheel: Wheel) -> Iterator[str]:
    """RECORD against the members: every file listed, with the right hash and size, and no more."""
    record = f"{wheel.dist_info}/RECORD"
    lines = wheel.record()
    rows = wheel.read(record).decode().splitlines()
    if len(rows) != len(lines):
        yield f"RECORD has {len(rows) - len(lines)} paths twice"
    present = {name for name, info in wheel.members.items() if not info.is_dir()}
    for name in sorted(present - set(lines)):
        yield f"{name} is not in RECORD"
    for name in sorted(set(lines) - present):
        yield f"{name} is in RECORD and not in the wheel"
    for name in sorted(present & set(lines)):
        content = None if name == record else wheel.read(name)
        if lines[name].rstrip("\r\n") != wheelfile.record_line(name, content).rstrip("\n"):
            yield f"{name} is not what RECORD says"


def version_findings(wheel: Wheel, lock: Lock) -> Iterator[str]:
    """The version in the file name, the .dist-info folder, METADATA and _version.py."""
    version = lock.distribution_version
    if not wheel.path.name.startswith(f"{lock.name}-{version}-"):
        yield f"the file name has another version than {version}"
    if wheel.dist_info != f"{lock.name}-{version}.dist-info":
        yield f"the folder {wheel.dist_info} has another version than {version}"
    header = wheel.read(f"{wheel.dist_info}/METADATA").partition(b"\n\n")[0]
    stated = [line for line in header.splitlines() if line.startswith(b"Version:")]
    if stated != [f"Version: {version}".encode()]:
        yield f"METADATA has another version than {version}"
    module = wheel.read(f"{lock.name}/_version.py").decode()
    if module.count(f"__version__ = version = '{version}'") != 1:
        yield f"_version.py has another version than {version}"


def bill_findings(
    wheel: Wheel, lock: Lock, series: Series, release: ReleaseWheel | None
) -> Iterator[str]:
    """The bill of materials against the lock and the series, byte for byte."""
    name = f"{wheel.dist_info}/sboms/{sbom.NAME}"
    if name not in wheel.members:
        yield f"{name} is missing"
        return
    content = wheel.read(name)
    try:
        bill = sbom.parse(content)
    except VerifyError as error:
        yield str(error)
        return
    if bill.commit != lock.commit:
        yield f"it was made from commit {bill.commit}, upstream.lock pins {lock.commit}"
    if release and (bill.base, bill.base_sha256) != (release.name, release.sha256):
        yield f"it was made from {bill.base} ({bill.base_sha256}), upstream.lock pins another file"
    patches = tuple((patch.name, patch.sha256) for patch in series.patches)
    if bill.patches != patches:
        named = {name for name, _ in set(bill.patches) ^ set(patches)}
        yield f"its patches are not those of patchset/: {', '.join(sorted(named)) or 'their order'}"
    elif content != sbom.make(lock, series, release):
        yield f"{name} is not what this lock and series give"


def content_findings(wheel: Wheel, lock: Lock, patched: dict[str, _Expected]) -> Iterator[str]:
    """Each patched file, without its notice, against the blob that the last patch announces."""
    for name, expected in sorted(patched.items()):
        if expected.blob is None:
            if name in wheel.members:
                yield f"{name} is deleted by the series, and is in the wheel"
        elif name not in wheel.members:
            yield f"{name} is missing"
        else:
            content: bytes | None = wheel.read(name)
            if content is not None and not expected.added:
                said = notice.text(lock, expected.patches)
                content = notice.unstamp(name, content, said)
            if content is None:
                yield f"{name} does not say that it was changed"
            elif blob_id(content) != expected.blob:
                yield f"{name} is not the patched tree's"
            executable = bool((wheel.members[name].external_attr >> 16) & stat.S_IXUSR)
            if expected.mode and executable != (expected.mode == "100755"):
                yield f"{name} has not the mode {expected.mode}"


def _base_findings(
    ours: Wheel, theirs: Wheel, lock: Lock, patched: dict[str, _Expected]
) -> Iterator[str]:
    """Everything else against upstream's wheel: no member more or less, none changed."""
    old, new = theirs.dist_info, ours.dist_info
    rewritten = {
        f"{old}/METADATA": overlay.metadata(theirs, lock),
        f"{lock.name}/_version.py": overlay.version(theirs, lock),
    }
    renamed = {name: _renamed(name, old, new) for name in theirs.members}
    bill = f"{new}/sboms/{sbom.NAME}"
    for name in sorted(set(ours.members) - set(renamed.values()) - set(patched) - {bill}):
        yield f"{name} is not in upstream's wheel, and no patch adds it"
    my_lines, their_lines = ours.record(), theirs.record()
    for name, info in theirs.members.items():
        mine = ours.members.get(renamed[name])
        if mine is None:
            if name not in patched:
                yield f"{name} is in upstream's wheel and missing here"
            continue
        may_switch = name in patched and patched[name].mode is not None
        if mine.external_attr != info.external_attr and not may_switch:
            yield f"{name} has other permissions than in upstream's wheel"
        if name in rewritten:
            if ours.read(renamed[name]) != rewritten[name]:
                yield f"{name} differs from upstream's in more than the version"
        elif name not in patched and name != f"{old}/RECORD" and not info.is_dir():
            line = their_lines.get(name, "").replace(name, renamed[name], 1)
            if my_lines.get(renamed[name]) != line:
                yield f"{name} differs from upstream's"


def _renamed(name: str, old: str, new: str) -> str:
    return new + name[len(old) :] if name.startswith(f"{old}/") else name
