"""Which revision a series needs: one release is made from one series, for ever."""

import re
from collections.abc import Iterable, Sequence

from packaging.version import Version

from scripts.lock import Lock
from scripts.notes import Notes
from scripts.series import Series

FIRST = 1  # of the series on a new version of upstream
WAY_OUT = (
    "raise `revision` in upstream.lock by one, build again (nox -s build_wheel), and publish that"
)


def free(lock: Lock, versions: Iterable[str]) -> int:
    """The lowest revision above every published one of the lock's upstream version."""
    taken = [FIRST - 1]
    pattern = re.compile(rf"{re.escape(lock.local)}\.([0-9]+)")
    for version in map(Version, versions):
        found = pattern.fullmatch(version.local or "")
        if found and version.public == Version(lock.version).public:
            taken.append(int(found[1]))
    return max(taken) + 1


def is_of(lock: Lock, series: Series, notes: Notes) -> bool:
    """Whether a release that `notes` tell of was made from this commit and this series."""
    mine = [(patch.name, patch.sha256) for patch in series.patches]
    return notes.commit == lock.commit and mine == [(one.name, one.sha256) for one in notes.items]


def advice(
    lock: Lock, series: Series, published: Notes, other: Sequence[str], versions: Iterable[str]
) -> str | None:
    """What to say where the lock's version is published and is something else; else None.

    `published` are its notes, `other` the wheels that were built with other bytes.
    """
    if not is_of(lock, series, published):
        what = "not from this series"
    elif other:
        what = f"with other bytes ({', '.join(other)})"
    else:
        return None
    return (
        f"{lock.distribution_version} is published, and {what}: "
        f"set `revision = {free(lock, versions)}` in upstream.lock and build again"
    )


def difference(theirs: Notes, mine: Notes) -> str:
    """How what a wheel is made from differs from the published release of its version."""
    if theirs.commit != mine.commit:
        return f"{theirs.version} is published from commit {theirs.commit}, not {mine.commit}"
    there = {item.name: item for item in theirs.items}
    here = {item.name: item for item in mine.items}
    names = sorted(name for name in {*there, *here} if there.get(name) != here.get(name))
    return (
        f"{theirs.version} is published with another series "
        f"({', '.join(names) or 'in another order'})"
    )
