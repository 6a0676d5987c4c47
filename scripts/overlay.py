"""The patched files in place in upstream's own wheel: no compiler, every platform."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from scripts import notice, repack, sbom, wheelfile
from scripts.errors import WheelError, raise_all
from scripts.git import blob_id
from scripts.lock import Lock, ReleaseWheel
from scripts.patched import Changed, Patched
from scripts.repack import Member
from scripts.wheelfile import Wheel

_NEVER_SHIPPED = (
    *("test/", "docs/", "benchmark/", "examples/", ".github/", "scripts/", "assets/"),
    "docker/",
)
_FROM_SOURCE = "nox -s build_wheel -- --from-source"


@dataclass(frozen=True, slots=True, kw_only=True)
class Payload:
    """What every wheel of the release gets: the changed members by name, None for a deleted one."""

    patched: Patched
    members: Mapping[str, Member | None]
    changed: Mapping[str, Changed]


def prepare(patched: Patched) -> Payload:
    """Read and stamp what the series changes in the wheel, once for all wheels.

    Raises WheelError that lists the paths which only a build from source can bring.
    """
    lock = patched.base.lock
    objects = patched.base.store.objects()
    findings = [
        f"{change.path} ({change.patches[-1].name}) cannot be put into a built wheel"
        for change in patched.changed
        if needs_build(change.path, lock)
    ]
    raise_all(WheelError, findings, then=_FROM_SOURCE)
    members: dict[str, Member | None] = {}
    changed = {}
    for change in patched.changed:
        name = change.path.removeprefix(f"{lock.subdirectory}/")
        if name == change.path or not name.startswith(f"{lock.name}/"):
            continue  # not in the wheel: tests, documentation
        changed[name] = change
        if change.after is None:
            members[name] = None
            continue
        content = objects.read(change.after.blob)
        if change.before is not None:
            content = notice.stamp(name, content, notice.text(lock, change.patches))
        switched = change.before is None or change.before.mode != change.after.mode
        executable = change.after.mode == "100755" if switched else None
        members[name] = Member(content=content, executable=executable)
    return Payload(patched=patched, members=members, changed=changed)


def needs_build(path: str, lock: Lock) -> bool:
    """Whether a change to this path shows only in a wheel that is built from source."""
    if not path.startswith(f"{lock.subdirectory}/"):
        return not path.startswith(_NEVER_SHIPPED) and "/" in path
    inside = path.removeprefix(f"{lock.subdirectory}/")
    if not inside.startswith(f"{lock.name}/"):
        return True  # pyproject.toml, setup.py and their kind
    return inside.startswith(f"{lock.name}/kernels/aot")


def file_name(lock: Lock, tag: str) -> str:
    """The name of our wheel with this tag (PEP 427)."""
    return f"{lock.name}-{lock.distribution_version}-{tag}.whl"


def overlay(payload: Payload, release: ReleaseWheel, base: Path, new: Path) -> None:
    """Write our wheel to `new` from the official one at `base`.

    Raises WheelError where a replaced member's content is not the pinned commit's.
    """
    patched = payload.patched
    lock = patched.base.lock
    with wheelfile.opened(base) as wheel:
        raise_all(
            WheelError, list(_strangers(payload, wheel)), then="python -m scripts lock --verify"
        )
        info = wheel.dist_info
        changes = dict(payload.members) | {
            f"{info}/METADATA": Member(content=metadata(wheel, lock)),
            f"{lock.name}/_version.py": Member(content=version(wheel, lock)),
            f"{info}/sboms/{sbom.NAME}": Member(content=sbom.make(lock, patched.series, release)),
        }
        dist_info = f"{lock.name}-{lock.distribution_version}.dist-info"
        repack.repack(wheel, changes, new, dist_info=dist_info, epoch=lock.epoch)


def _strangers(payload: Payload, wheel: Wheel) -> Iterator[str]:
    """Members that are not what the pinned commit has at their path."""
    for name, change in payload.changed.items():
        where = f"{wheel.path.name}: {name}"
        if change.before is None and name in wheel.members:
            yield f"{where} is in the wheel already, and the series adds it"
        elif change.before is not None and name not in wheel.members:
            yield f"{where} is not in the wheel, and the series changes it"
        elif change.before is not None and blob_id(wheel.read(name)) != change.before.blob:
            yield f"{where} is not what the pinned commit has there"


def metadata(wheel: Wheel, lock: Lock) -> bytes:
    """Upstream's METADATA with our version in its one Version line. Raises WheelError."""
    return _replace_once(
        wheel,
        f"{wheel.dist_info}/METADATA",
        rb"^Version: %b(?=\r?$)" % re.escape(lock.version).encode(),
        f"Version: {lock.distribution_version}".encode(),
        until=b"\n\n",
    )


def version(wheel: Wheel, lock: Lock) -> bytes:
    """Upstream's _version.py as setuptools-scm writes it for our version. Raises WheelError."""
    name = f"{lock.name}/_version.py"
    quoted = re.escape(lock.version).encode()
    content = _replace_once(
        wheel,
        name,
        rb"^(__version__ = version = ['\"])%b(?=['\"]\r?$)" % quoted,
        rb"\g<1>%b" % lock.distribution_version.encode(),
    )
    local = f"{lock.local}.{lock.revision}"
    pattern = rb"^(__version_tuple__ = version_tuple = \(.*?),?\)(?=\r?$)"
    new, count = re.subn(pattern, rb"\g<1>, '%b')" % local.encode(), content, flags=re.MULTILINE)
    if count != 1:
        raise WheelError(f"{wheel.path.name}: {name}: {count} lines with the version's tuple")
    return new


def _replace_once(
    wheel: Wheel, name: str, pattern: bytes, by: bytes, *, until: bytes | None = None
) -> bytes:
    content = wheel.read(name)
    head, mark, rest = content.partition(until) if until else (content, b"", b"")
    new, count = re.subn(pattern, by, head, flags=re.MULTILINE)
    if count != 1:
        raise WheelError(f"{wheel.path.name}: {name}: {count} lines with the version, not one")
    return new + mark + rest
