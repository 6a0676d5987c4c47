"""How many leading folders of a foreign diff's names go (patch(1), -p), by what is in the tree.

The level is never guessed: git's own header states it, and in a plain diff it is the only one at
which every file that the diff changes exists.
"""

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from scripts import diff
from scripts.diff import Malformed
from scripts.foreign import Section
from scripts.misfit import Misfit, Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """So many leading folders go, and `folder` ("" or ending in a slash) comes before the rest."""

    strip: int
    folder: str = ""

    def __str__(self) -> str:
        below = f" --directory {self.folder.rstrip('/')}" if self.folder else ""
        return f"--strip {self.strip}{below}"

    def path(self, name: str) -> str | None:
        """The path that `name` is at this level; None where nothing of it is left."""
        parts = re.split("/+", name)[self.strip :]
        rest = [part for part in parts if part != "."]
        if not rest or "" in rest or ".." in rest:
            return None
        return self.folder + "/".join(rest)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileEdit:
    """A section of a foreign diff, and which file of the tree it is about.

    `old` is None where the file is added, `new` where it is deleted.
    """

    section: Section
    old: str | None
    new: str | None

    @property
    def path(self) -> str:
        return self.new or self.old or ""


class _Elsewhere(Exception):
    """A section does not fit the tree at a level; the path that it would be about."""


def resolve(
    sections: Sequence[Section],
    tree: Collection[str],
    *,
    subdirectory: str,
    given: Level | None = None,
) -> tuple[Level, tuple[FileEdit, ...]]:
    """The level of a diff, and the files that its sections are about.

    `tree` holds the paths of the tree. Names are tried from the tree's root, and where no level
    fits from `subdirectory`, in which the package lies. Raises Misfit.
    """
    _refuse_absolute([one for one in sections if one.git], then="get it again, from git")
    for some, sure in [([given], True)] if given else _tiers(sections, subdirectory):
        fitting: dict[Level, tuple[FileEdit, ...]] = {}
        for level in some:
            try:
                edits = tuple(_edit(one, level, tree) for one in sections)
            except _Elsewhere:
                continue
            if edits not in fitting.values():  # "./x" is one file at two levels
                fitting[level] = edits
        placed = fitting if sure else _placed(fitting, tree)
        if len(placed) > 1:
            raise _several(placed)
        if placed:
            level, edits = placed.popitem()
            _check(edits)
            return level, edits
    if given is None:
        _refuse_absolute(sections, then="--strip N, if it is a path in a copy of the tree")
    raise _missing(sections, tree, given or _plainest(sections))


def _refuse_absolute(sections: Sequence[Section], *, then: str) -> None:
    """Raise Misfit for a path from the root of a file system.

    Plain diffs of two folders have such, of which a part is in the tree; git writes none.
    """
    for name in (name for one in sections for name in _names(one)):
        if name.startswith("/"):
            raise Misfit(Reason.UNSAFE, f"{name}: an absolute path, outside the tree", then=then)


def _names(section: Section) -> list[str]:
    return [name for name in (*(section.renamed or ()), section.old, section.new) if name]


def _plainest(sections: Sequence[Section]) -> Level:
    """The level that the diff was most likely made for; only for telling what is missing."""
    stated = {one.stated for one in sections}
    if len(stated) == 1 and (strip := stated.pop()) is not None:
        return Level(strip=strip)
    least = min(name.count("/") for one in sections for name in _names(one))
    return Level(strip=min(1, least))


def _tiers(
    sections: Sequence[Section], subdirectory: str
) -> Iterator[tuple[Sequence[Level], bool]]:
    """Levels that rival each other, first come first; True where nothing else need speak for it."""
    deepest = max(name.count("/") for one in sections for name in _names(one))
    stated = {one.stated for one in sections}
    strip = stated.pop() if len(stated) == 1 else None
    strips = range(deepest + 1)
    fresh = all(one.old is None for one in sections)
    for folder in ("", f"{subdirectory}/"):
        if strip is not None:
            yield [Level(strip=strip, folder=folder)], False
        if strip is None or not fresh:
            yield [Level(strip=one, folder=folder) for one in strips], False
    if strip is not None and fresh:
        yield [Level(strip=strip)], True  # new files in a new folder


def _edit(section: Section, level: Level, tree: Collection[str]) -> FileEdit:
    """What `section` is about at `level`. Raises _Elsewhere."""
    if section.renamed:
        bare = Level(strip=max(0, level.strip - 1), folder=level.folder)
        old, new = (bare.path(name) for name in section.renamed)
        if old not in tree or new is None:
            raise _Elsewhere(old)
        return FileEdit(section=section, old=old, new=new)
    old, new = (name and level.path(name) for name in (section.old, section.new))
    wanted = [path for path in (old, new) if path]
    if section.old is None or section.new is None:
        if not wanted or (section.new is None and old not in tree):
            raise _Elsewhere(section.old or section.new)
        return FileEdit(section=section, old=old, new=new)
    if section.git and old != new:
        raise _Elsewhere(section.old)
    there = sorted({path for path in wanted if path in tree})
    if len(there) == 1:
        return FileEdit(section=section, old=there[0], new=there[0])
    if not there and new and [hunk.start for hunk in section.hunks] == [0]:
        return FileEdit(section=section, old=None, new=new)
    raise _Elsewhere(section.old)


def _placed(
    fitting: dict[Level, tuple[FileEdit, ...]], tree: Collection[str]
) -> dict[Level, tuple[FileEdit, ...]]:
    """Those at which something says that they are right: a file that exists, else a folder."""
    if all(edit.old is None for edits in fitting.values() for edit in edits):
        folders = {path.rpartition("/")[0] for path in tree}
        folders |= {parent for one in folders for parent in _parents(one)}
        return {
            level: edits
            for level, edits in fitting.items()
            if all(
                folder in folders and folder != level.folder.rstrip("/")  # any name ends there
                for folder in (edit.path.rpartition("/")[0] for edit in edits)
            )
        }
    return fitting


def _parents(folder: str) -> Iterator[str]:
    while folder:
        folder = folder.rpartition("/")[0]
        yield folder


def _several(placed: dict[Level, tuple[FileEdit, ...]]) -> Misfit:
    options = ", ".join(f"{level} ({edits[0].path})" for level, edits in placed.items())
    return Misfit(
        Reason.LEVEL,
        f"its names fit the tree at several levels: {options}",
        then=f"give one of them: {next(iter(placed))}",
    )


def _missing(sections: Sequence[Section], tree: Collection[str], level: Level) -> Misfit:
    lacking = []
    for section in sections:
        try:
            _edit(section, level, tree)
        except _Elsewhere:
            name = next(iter(section.renamed or ()), section.old) or section.new or ""
            strip = max(0, level.strip - bool(section.renamed))
            path = Level(strip=strip, folder=level.folder).path(name)
            if path is None or ".." in name.split("/"):
                return Misfit(Reason.UNSAFE, f"{name}: outside the tree")
            lacking.append(path)
    named = ", ".join(lacking or [name for one in sections for name in _names(one)][:1])
    return Misfit(Reason.MISSING, named, then="look for the file under its present name")


def _check(edits: Sequence[FileEdit]) -> None:
    seen: set[str] = set()
    for edit in edits:
        for path in {edit.old, edit.new} - {None}:
            assert path is not None
            try:
                diff.check_path(path)
            except Malformed as error:
                raise Misfit(Reason.UNSAFE, str(error)) from error
        if edit.path in seen:
            raise Misfit(Reason.CORRUPT, f"line {edit.section.line}: changes {edit.path} twice")
        seen.add(edit.path)
