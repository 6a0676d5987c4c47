"""patchset/series: which patches are applied, in which order (quilt(1)'s series file)."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from scripts import files, patch
from scripts.errors import SeriesError, raise_all
from scripts.patch import Patch

_NAME = re.compile(r"[0-9]{4}-[A-Za-z0-9._-]+\.patch")


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """The patches in the order in which they are applied."""

    patches: tuple[Patch, ...]

    def __post_init__(self) -> None:
        names = [patch.name for patch in self.patches]
        twice = sorted({name for name in names if names.count(name) > 1})
        raise_all(SeriesError, [f"series lists {name} twice" for name in twice])
        _refuse_shared_numbers(names)

    @property
    def paths(self) -> tuple[str, ...]:
        """Every path that a patch of the series touches, sorted."""
        changes = (change for patch in self.patches for change in patch.changes)
        return tuple(sorted({path for change in changes for path in change.paths}))


def parse(text: str, *, where: str = "patchset/series") -> tuple[str, ...]:
    """The file names that a series file lists, in order. Raises SeriesError."""
    names: list[str] = []
    findings: list[str] = []
    for number, line in enumerate(text.split("\n"), 1):
        name = line.partition("#")[0].strip()
        if not name:
            continue
        if not _NAME.fullmatch(name):
            findings.append(f"{where}:{number}: {name!r} is not of the form 0001-words.patch")
        elif name in names:
            findings.append(f"{where}:{number}: {name} is listed twice")
        names.append(name)
    raise_all(SeriesError, findings)
    _refuse_shared_numbers(names)
    return tuple(names)


def _refuse_shared_numbers(names: Sequence[str]) -> None:
    """Raise SeriesError where two patches have one number, by which verbs take them."""
    first: dict[str, str] = {}
    free = max((int(name[:4]) for name in names), default=0) + 1
    findings, moves = [], []
    for name in names:
        other = first.setdefault(name[:4], name)
        if other != name:
            findings.append(f"{other} and {name} have one number, by which verbs know a patch")
            moves.append(f"git mv patchset/{name} patchset/{free:04}{name[4:]}")
            free += 1
    raise_all(
        SeriesError, findings, then=f"{'; '.join(moves)}; and the same name in patchset/series"
    )


def format(names: Sequence[str]) -> str:
    """The series file that lists `names`; parse() gives them back."""
    return "".join(f"{name}\n" for name in names)


def load(folder: Path) -> Series:
    """The series in `folder`. Raises SeriesError that lists everything wrong with it."""
    order = folder / "series"
    if not order.exists():
        raise SeriesError(f"{order} does not exist")
    names = parse(files.text(order, SeriesError))
    present = {path.name for path in folder.glob("*.patch")}
    findings = [
        f"series lists {name}, which is not in {folder.name}/"
        for name in names
        if name not in present
    ]
    findings += [
        f"{folder.name}/{name} is not listed in series" for name in sorted(present - set(names))
    ]
    patches = []
    for name in names:
        if name in present:
            try:
                patches.append(patch.load(folder / name))
            except SeriesError as error:
                findings.append(str(error))
    raise_all(SeriesError, findings, then=f"edit {folder.name}/series, or add the missing patch")
    return Series(patches=tuple(patches))
