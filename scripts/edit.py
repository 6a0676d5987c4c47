"""The edits of a patch: each run of removed and added lines, and the symbol it stands in."""

from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import zip_longest

from scripts import symbol
from scripts.diff import FileChange, Hunk
from scripts.git import BlobId, Objects
from scripts.patch import Patch
from scripts.symbol import Span


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """A run of lines that a patch takes out and puts in, without context.

    `line` is where it begins, counted from 1: in the file after the patch, or in the file before
    it where it only removes. `symbol` is what git heads the hunk with where the file is not Python.
    """

    path: str
    symbol: str
    line: int
    removed: tuple[bytes, ...]
    added: tuple[bytes, ...]

    @property
    def text(self) -> tuple[bytes, ...]:
        """The lines as they stand in a diff."""
        return (*(b"-" + line for line in self.removed), *(b"+" + line for line in self.added))


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """An edit that stands in another symbol than before; None where it has no counterpart."""

    before: Edit | None
    after: Edit | None


def edits(patch: Patch, objects: Objects) -> tuple[Edit, ...]:
    """The edits of `patch`, in order. Raises KeyError where a blob is not at hand."""
    return tuple(edit for change in patch.changes for edit in _of_change(change, objects))


def _of_change(change: FileChange, objects: Objects) -> Iterator[Edit]:
    before, after = _spans(change.pre, change, objects), _spans(change.post, change, objects)
    for hunk in change.hunks():
        for removed, added, old, new in _runs(hunk):
            found, line = (after, new) if added else (before, old)
            stands_in = hunk.heading if found is None else symbol.enclosing(found, line)
            yield Edit(path=change.path, symbol=stands_in, line=line, removed=removed, added=added)


def _spans(blob: BlobId | None, change: FileChange, objects: Objects) -> tuple[Span, ...] | None:
    """The symbols of a side of a change; None where it is not Python that parses."""
    if blob is None or not change.path.endswith(".py"):
        return None
    return symbol.spans(objects.read(blob)) or None


_Run = tuple[tuple[bytes, ...], tuple[bytes, ...], int, int]


def _runs(hunk: Hunk) -> Iterator[_Run]:
    """Removed and added lines that stand together, and the first line of each side.

    The line is the first that is not blank, since a blank one belongs to nothing.
    """
    old, new = hunk.start, hunk.start_after
    removed: list[bytes] = []
    added: list[bytes] = []
    for line in (*hunk.lines, b" "):
        kind, text = line[:1], line[1:].rstrip(b"\r\n")
        if kind == b"-":
            removed.append(text)
        elif kind == b"+":
            added.append(text)
        else:
            if removed or added:
                at = old + _blank(removed), new + _blank(added)
                yield tuple(removed), tuple(added), *at
            old, new = old + len(removed) + 1, new + len(added) + 1
            removed, added = [], []


def _blank(lines: list[bytes]) -> int:
    return next((number for number, line in enumerate(lines) if line.strip()), 0)


def moves(before: tuple[Edit, ...], after: tuple[Edit, ...]) -> tuple[Move, ...]:
    """The edits that stand in another symbol after a rebase than before it.

    Edits of the same lines are paired, in order; of what has no pair, those in a symbol that the
    other side has no edit in are told.
    """
    found: list[Move] = []
    lone_before: list[Edit] = []
    lone_after: list[Edit] = []
    matcher = SequenceMatcher(
        a=[edit.text for edit in before], b=[edit.text for edit in after], autojunk=False
    )
    for kind, i, j, k, m in matcher.get_opcodes():
        if kind == "equal":
            pairs = zip(before[i:j], after[k:m], strict=True)
            found += [Move(before=one, after=two) for one, two in pairs if one.symbol != two.symbol]
        else:
            lone_before += before[i:j]
            lone_after += after[k:m]
    gone = _in_none_of(lone_before, after)
    come = _in_none_of(lone_after, before)
    found += [Move(before=one, after=two) for one, two in zip_longest(gone, come)]
    return tuple(found)


def _in_none_of(lone: list[Edit], others: tuple[Edit, ...]) -> list[Edit]:
    """The first edit of `lone` in each symbol that none of `others` stands in."""
    there = {edit.symbol for edit in others}
    return list({edit.symbol: edit for edit in reversed(lone) if edit.symbol not in there}.values())
