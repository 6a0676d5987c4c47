"""Where a hunk's lines stand in a file: there alone, or nowhere at all."""

import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from scripts.hunk import Hunk

_DEFAULT = re.compile(rb"^[A-Za-z_$]")
_PYTHON = re.compile(rb"^[ \t]*(?:class|(?:async[ \t]+)?def)[ \t]")


class Lost(Exception):
    """A hunk's lines are at none, or at more than one, of the lines `at` (from 1)."""

    def __init__(self, number: int, hunk: Hunk, at: Sequence[int], what: str) -> None:
        super().__init__(f"hunk {number} (line {hunk.line} of the patch) {what}")
        self.hunk = hunk
        self.at = tuple(at)


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a hunk belongs: line `at`, counted from 1, and how far that is from where it says."""

    hunk: Hunk
    at: int
    offset: int


def lines(content: bytes) -> list[bytes]:
    """The lines of a file, each with its newline; only that ends a line."""
    return io.BytesIO(content).readlines()


def places(
    hunks: Sequence[Hunk], content: list[bytes], *, proven: bool = False
) -> tuple[Place, ...]:
    """The place of each hunk in the lines `content`.

    All at the lines that they name, or else each at the only place where its lines stand. That a
    hunk takes no line and names a line proves nothing, unless the file is `proven` to be the one
    that the diff was made from. Raises Lost.
    """
    if exact(hunks, content) and (proven or all(hunk.before or not content for hunk in hunks)):
        return tuple(Place(hunk=hunk, at=_stated(hunk) + 1, offset=0) for hunk in hunks)
    found: list[Place] = []
    end = 0
    for number, hunk in enumerate(hunks, 1):
        if not _context(hunk):
            raise Lost(number, hunk, (), "has no line around it that says where it belongs")
        at = [one + 1 for one in everywhere(hunk.before, hunk, content)]
        if not at:
            raise Lost(number, hunk, (), "is not there" + _instead(hunk, content))
        if len(at) > 1:
            listed = ", ".join(map(str, at[:5]))
            raise Lost(number, hunk, at, f"fits at lines {listed}: at more than one place")
        if at[0] <= end:
            raise Lost(number, hunk, (), f"fits only at line {at[0]}, before the hunk above it")
        end = at[0] + len(hunk.before) - 1
        found.append(Place(hunk=hunk, at=at[0], offset=at[0] - _stated(hunk) - 1))
    return tuple(found)


def exact(hunks: Sequence[Hunk], content: list[bytes]) -> bool:
    """Whether every hunk's lines stand at the very line that it names."""
    return all(_is_at(hunk.before, hunk, _stated(hunk), content) for hunk in hunks)


def undone(hunks: Sequence[Hunk], content: list[bytes]) -> int:
    """How many of the hunks are in `content` already: what they leave is there, at one place."""
    return sum(
        len(everywhere(hunk.after, hunk, content)) == 1
        for hunk in hunks
        if _context(hunk) or hunk.after
    )


def everywhere(wanted: Sequence[bytes], hunk: Hunk, content: list[bytes]) -> list[int]:
    """Each place, from 0, where the lines `wanted`, a side of `hunk`, stand."""
    last = len(content) - len(wanted)
    return [at for at in range(last + 1) if _is_at(wanted, hunk, at, content)]


def _is_at(wanted: Sequence[bytes], hunk: Hunk, at: int, content: list[bytes]) -> bool:
    """A hunk with less context before than after it begins its file; the reverse ends it."""
    if at < 0 or content[at : at + len(wanted)] != list(wanted):
        return False
    before, after = _around(hunk)
    if before < after and at:
        return False
    return not (after < before and at + len(wanted) != len(content))


def _stated(hunk: Hunk) -> int:
    """The line, from 0, that a hunk names; one that takes no line names the one before."""
    return hunk.start if not hunk.before else hunk.start - 1


def _around(hunk: Hunk) -> tuple[int, int]:
    """The lines of context before and after the change."""
    kinds = b"".join(line[:1] for line in hunk.lines)
    return len(kinds) - len(kinds.lstrip(b" ")), len(kinds) - len(kinds.rstrip(b" "))


def _context(hunk: Hunk) -> bool:
    return any(line[:1] == b" " for line in hunk.lines)


def _instead(hunk: Hunk, content: list[bytes]) -> str:
    """The first line that is another where the hunk says it belongs."""
    start = _stated(hunk)
    for number, expected in enumerate(hunk.before, start):
        found = content[number] if number < len(content) else b"(end of file)"
        if found != expected:
            same = found.rstrip() == expected.rstrip()
            shown = (repr(one)[1:] if same else _shown(one) for one in (expected, found))
            return f"; line {number + 1}\n    expected: {next(shown)}\n    found:    {next(shown)}"
    return ", or not at the edge of the file where it belongs"


def _shown(line: bytes) -> str:
    return line.decode(errors="replace").rstrip("\r\n")


def differs_in_space(hunks: Sequence[Hunk], content: list[bytes]) -> bool:
    """Whether each hunk is at one place if white space does not count, and one only then."""
    bare = [b"".join(line.split()) for line in content]
    changed = False
    for hunk in hunks:
        wanted = [b"".join(line.split()) for line in hunk.before]
        last = len(bare) - len(wanted)
        at = [one for one in range(last + 1) if bare[one : one + len(wanted)] == wanted]
        if len(at) != 1 or not any(wanted):
            return False
        changed = changed or content[at[0] : at[0] + len(wanted)] != list(hunk.before)
    return changed


def under_heading(place: Place, content: list[bytes]) -> bool:
    """Whether the heading of a hunk is that of the place where it was found.

    git and diff -p head a hunk with the last line before it that looks like the head of a
    function, cut short; what looks like one depends on the language, so both ways count.
    """
    heading = place.hunk.heading.strip()
    if not heading:
        return True
    return any(
        found.startswith(heading) or heading.startswith(found)
        for found in _headings(content, place.at - 1)
    )


def _headings(content: list[bytes], end: int) -> Iterator[bytes]:
    for form in (_DEFAULT, _PYTHON):
        above = (line.strip() for line in reversed(content[:end]) if form.match(line))
        if found := next(above, b""):
            yield found
