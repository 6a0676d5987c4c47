"""Why a patch cannot be taken in."""

from enum import StrEnum


class Reason(StrEnum):
    """The kinds of reasons, in the words of a report."""

    UNREADABLE = "no patch"
    CORRUPT = "corrupt"
    UNSAFE = "unsafe path"
    FOLDER = "file and folder"
    LEVEL = "strip level"
    MISSING = "not in the tree"
    RELEASE = "another release"
    UPSTREAM = "already upstream"
    IN_SERIES = "already in the series"
    TWICE = "given twice"
    BEHIND = "behind another"
    SERIES = "conflict with the series"
    CONFLICT = "conflict"
    SPACE = "white space"
    SEVERAL = "several places"
    SYMBOL = "another symbol"
    REPEATED = "there twice"
    MESSAGE = "message"


THERE = frozenset({Reason.UPSTREAM, Reason.IN_SERIES, Reason.TWICE})
"""The reasons of a patch that need not be taken in, since all of it is there."""


class Misfit(Exception):
    """A patch that cannot be taken in: why, what exactly, and the next thing to do."""

    def __init__(self, reason: Reason, what: str, *, then: str = "") -> None:
        super().__init__(f"{reason}: {what}")
        self.reason = reason
        self.what = what
        self.then = then
