"""A test and how it ended; and all tests of a run."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class Ending(StrEnum):
    """How a test ended; the last four took the interpreter with them."""

    PASSED = "passed"
    SKIPPED = "skipped"
    XFAILED = "expected failure"
    FAILED = "failed"
    ERROR = "error"
    HUNG = "hung"
    CRASHED = "crashed"
    KILLED_PARENT = "killed its parent"
    FILLED_DISK = "filled the disk"

    @property
    def good(self) -> bool:
        return self in (Ending.PASSED, Ending.SKIPPED, Ending.XFAILED)


_VARYING = re.compile(r"0x[0-9a-f]+|(?<![\w.])/[\w./+-]+/|\b\d+\b")


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A test by pytest's node id; `detail` is the traceback, or why it was skipped.

    `skips` says why subtests of it were skipped, one reason for each: pytest counts them as skipped
    tests, beside the test itself.
    """

    id: str
    ending: Ending
    detail: str = ""
    seconds: float = 0.0
    skips: tuple[str, ...] = ()

    @property
    def file(self) -> str:
        return self.id.partition("::")[0]

    @property
    def words(self) -> str:
        """How it ended, with the skipped subtests: "passed, 2 of its subtests skipped"."""
        return (
            f"{self.ending}, {len(self.skips)} of its subtests skipped"
            if self.skips
            else self.ending
        )

    @property
    def reason(self) -> str:
        """The last thing the traceback says, in one line; what one run alone has is left out."""
        lines = [line.strip() for line in self.detail.splitlines() if line.strip()]
        said = [line.removeprefix("E").strip() for line in lines if line.startswith("E  ")]
        text = (said or lines[-1:] or [str(self.ending)])[0]
        return _VARYING.sub("*", text)[:160]

    @property
    def missing_package(self) -> str | None:
        """The module that could not be imported, where that is why it failed."""
        found = re.search(r"No module named '([\w.]+)'", self.detail)
        return found[1] if found and not self.ending.good else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Cases:
    """The tests of a run by their id. `whole` says that the run came to its end.

    `notes` are what is worth knowing beside the tests, such as processes left behind.
    """

    by_id: Mapping[str, Case]
    whole: bool = True
    notes: tuple[str, ...] = field(default=())

    def __iter__(self) -> Iterator[Case]:
        return iter(self.by_id.values())

    def count(self, ending: Ending) -> int:
        """How many ended so; skipped subtests are counted as pytest does."""
        subtests = sum(len(case.skips) for case in self) if ending is Ending.SKIPPED else 0
        return subtests + sum(case.ending is ending for case in self)

    @property
    def tally(self) -> str:
        """How many ended how, in words: "495 passed, 4 skipped"."""
        counted = [f"{self.count(ending)} {ending}" for ending in Ending if self.count(ending)]
        return ", ".join(counted) or "no tests"
