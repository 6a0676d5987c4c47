"""The hunks of a unified diff, each line counted (POSIX.1-2017, `diff -u`; git-diff(1))."""

import re
from dataclasses import dataclass

_HEAD = re.compile(rb"@@ -(\d{1,18})(?:,(\d{1,18}))? \+(\d{1,18})(?:,(\d{1,18}))? @@(?: (.*?))?\r?")


class Corrupt(Exception):
    """What is wrong with a diff, and at which `line`, counted from 1."""

    def __init__(self, line: int, what: str) -> None:
        super().__init__(f"line {line}: {what}")
        self.line = line


@dataclass(frozen=True, slots=True, kw_only=True)
class Hunk:
    """A hunk as it stands at `line` of its file.

    Each of `lines` has its leading space, plus or minus, and its newline; the last line of a file
    that ends without one has none.
    """

    line: int
    start: int
    start_after: int
    heading: bytes
    lines: tuple[bytes, ...]

    @property
    def before(self) -> tuple[bytes, ...]:
        """The lines that it expects to find."""
        return tuple(line[1:] for line in self.lines if line[:1] in b" -")

    @property
    def after(self) -> tuple[bytes, ...]:
        """The lines that it leaves."""
        return tuple(line[1:] for line in self.lines if line[:1] in b" +")


class Lines:
    """The lines of a text, without their newlines, and where in it one is."""

    def __init__(self, text: bytes, first: int) -> None:
        self._lines = text.split(b"\n")
        if self._lines[-1] == b"":
            self._lines.pop()
        self._first = first
        self._at = 0

    @property
    def line(self) -> int:
        return self._first + self._at

    def more(self) -> bool:
        return self._at < len(self._lines)

    def peek(self, ahead: int = 0) -> bytes:
        at = self._at + ahead
        return self._lines[at] if at < len(self._lines) else b""

    def take(self) -> bytes:
        self._at += 1
        return self._lines[self._at - 1]


def read(reader: Lines) -> tuple[Hunk, ...]:
    """The hunks that `reader` is at; it is after them then. Raises Corrupt."""
    hunks = []
    while reader.peek().startswith(b"@@"):
        hunks.append(_hunk(reader))
    return tuple(hunks)


def _hunk(reader: Lines) -> Hunk:
    at = reader.line
    found = _HEAD.fullmatch(reader.take())
    if not found:
        raise Corrupt(at, "the head of a hunk cannot be read")
    left = {b"-": int(found[2] or 1), b"+": int(found[4] or 1)}
    lines: list[bytes] = []
    while any(left.values()):
        _body_line(reader, left, lines, at)
    if reader.peek().startswith(b"\\ ") and lines:
        reader.take()
        lines[-1] = lines[-1].removesuffix(b"\n")
    _refuse_surplus(reader, at)
    if not lines:
        raise Corrupt(at, "a hunk of no lines")
    return Hunk(
        line=at,
        start=int(found[1]),
        start_after=int(found[3]),
        heading=(found[5] or b"").rstrip(),
        lines=tuple(lines),
    )


def _body_line(reader: Lines, left: dict[bytes, int], lines: list[bytes], at: int) -> None:
    if not reader.more():
        raise Corrupt(
            reader.line, f"cut off: the hunk of line {at} announces {max(left.values())} lines more"
        )
    line = reader.peek()
    kind = line[:1]
    if line in (b"", b"\r"):  # a blank line that lost its leading space on the way
        kind, line = b" ", b" " + line
    if kind == b"\\" and lines:
        lines[-1] = lines[-1].removesuffix(b"\n")
        reader.take()
        return
    sides = {b" ": (b"-", b"+"), b"-": (b"-",), b"+": (b"+",)}.get(kind)
    if sides is None:
        raise Corrupt(
            reader.line,
            f"begins with no blank, + or -, and the hunk of line {at} announces "
            f"{max(left.values())} lines more: a line was wrapped or lost on the way, or the count "
            "in the hunk's head is wrong",
        )
    for side in sides:
        if not left[side]:
            raise Corrupt(reader.line, f"the hunk of line {at} has more lines than its head says")
        left[side] -= 1
    lines.append(line + b"\n")
    reader.take()


def _refuse_surplus(reader: Lines, at: int) -> None:
    """Raise Corrupt where a hunk goes on after all that its head announces."""
    line, beyond = reader.peek().rstrip(b"\r"), reader.peek(1)
    next_file = line.startswith(b"--- ") and beyond.startswith(b"+++ ")
    signature = line in (b"-- ", b"--") and beyond[:1] not in (b"+", b"-", b" ", b"@")
    if line[:1] in (b" ", b"+", b"-") and line.strip() and not next_file and not signature:
        raise Corrupt(reader.line, f"the hunk of line {at} has more lines than its head says")
