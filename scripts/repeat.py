"""Lines that a patch adds, and that upstream has added meanwhile elsewhere.

A patch whose lines upstream put at another place applies twice, and git sees nothing wrong.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from scripts import symbol
from scripts.edit import Edit

ENOUGH = 3  # lines that say something, from which on they count wherever they stand


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeat:
    """An edit whose added lines stand in upstream's new tree too: the path, and the first line."""

    edit: Edit
    path: str
    line: int


def repeats(
    edits: Sequence[Edit], before: Mapping[str, bytes], after: Mapping[str, bytes]
) -> tuple[Repeat, ...]:
    """The edits whose added lines are more often in upstream's new files than in its old ones.

    `before` and `after` are the files, by path, that differ. A few lines count in the file and the
    symbol of the edit alone; a line without a letter or digit says nothing.
    """
    runs = [(edit, _telling(edit.added)) for edit in edits]
    first = {run[0] for _, run in runs if run}
    old, new = _Files(before, first), _Files(after, first)
    found = []
    for edit, run in runs:
        if run:
            was, now = list(old.matches(run, edit)), list(new.matches(run, edit))
            if len(now) > len(was):
                fresh = [place for place in now if place not in was] or now
                found.append(Repeat(edit=edit, path=fresh[0][0], line=fresh[0][1]))
    return tuple(found)


def _telling(lines: Sequence[bytes]) -> list[bytes]:
    """The lines without their indentation, from the first on that is not blank; none if few."""
    stripped = [line.strip() for line in lines]
    while stripped and not stripped[0]:
        stripped.pop(0)
    telling = [line for line in stripped if any(chr(byte).isalnum() for byte in line)]
    return stripped if len(b"".join(telling)) >= 8 and telling[0] == stripped[0] else []


class _Files:
    """Files by path, and where in them the first lines of what is looked for stand."""

    def __init__(self, files: Mapping[str, bytes], first: set[bytes]) -> None:
        self._files = files
        self._places: defaultdict[bytes, list[tuple[str, int]]] = defaultdict(list)
        for path, content in files.items():
            for number, line in enumerate(map(bytes.strip, content.split(b"\n"))):
                if line in first:
                    self._places[line].append((path, number))

    def matches(self, run: Sequence[bytes], edit: Edit) -> Iterator[tuple[str, int]]:
        """Each path and line, from 1, where the lines of `run` stand."""
        short = len([line for line in run if line]) < ENOUGH
        for path, number in self._places.get(run[0], ()):
            if short and path != edit.path:
                continue
            content = self._files[path]
            lines = content.split(b"\n", number + len(run))[number : number + len(run)]
            if [line.strip() for line in lines] != list(run):
                continue
            if short and symbol.enclosing(symbol.spans(content), number + 1) != edit.symbol:
                continue
            yield path, number + 1
