"""Which of the pinned release wheels a run is about."""

from collections.abc import Sequence

from packaging import tags
from packaging.utils import parse_wheel_filename

from scripts.errors import UsageError
from scripts.lock import Lock, ReleaseWheel


def for_interpreter(lock: Lock) -> ReleaseWheel:
    """The pinned wheel that this interpreter would install (PEP 425's order of preference).

    Raises UsageError that lists the wheels there are.
    """
    offered = {wheel: parse_wheel_filename(wheel.name)[3] for wheel in lock.wheels}
    for tag in tags.sys_tags():
        for wheel, its_tags in offered.items():
            if tag in its_tags:
                return wheel
    raise _none_such(lock, "for this interpreter")


def for_tag(lock: Lock, tag: str) -> ReleaseWheel:
    """The pinned wheel with this tag, as its file name has it. Raises UsageError."""
    for wheel in lock.wheels:
        if wheel.tag == tag:
            return wheel
    raise _none_such(lock, f"with the tag {tag}")


def any_of(lock: Lock) -> ReleaseWheel:
    """A pinned wheel to read the source from: this interpreter's, else the first.

    Raises UsageError where the lock pins none.
    """
    try:
        return for_interpreter(lock)
    except UsageError:
        if lock.wheels:
            return lock.wheels[0]
        raise


def _none_such(lock: Lock, which: str) -> UsageError:
    rows: Sequence[str] = [f"\n  --tag {wheel.tag}" for wheel in lock.wheels]
    listed = "; there are:" + "".join(rows) if rows else ", and none at all"
    return UsageError(
        f"upstream.lock pins no wheel of {lock.name} {lock.version} {which}{listed}",
        then="nox -s build_wheel -- --tag TAG" if rows else "nox -s build_wheel -- --from-source",
    )
