"""What the series changed: the tests of the pristine release beside those of the patched wheel."""

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from scripts.case import Case, Cases, Ending


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A test with another ending than before; None where it is not there on that side."""

    id: str
    before: Case | None
    after: Case | None
    patch: str = ""

    @property
    def words(self) -> str:
        """The two endings: "passed, now failed"."""
        before = self.before.words if self.before else "not there"
        return f"{before}, now {self.after.words}" if self.after else f"{before}, now gone"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Every test of both runs in one of these lists.

    `regressions` did not fail before and do not hold now, `fixed` the other way round, `failing`
    fail on both sides, `flaky` changed their mind when they were run again, `new` are those that
    the pristine release does not have, of which `new_failing` fail. `same` counts the rest, which
    pass or are skipped on both sides. `passed` counts what passes with the series: where nothing
    does, or `whole` is false since a run was stopped, nothing is proved.
    """

    regressions: tuple[Change, ...] = ()
    fixed: tuple[Change, ...] = ()
    failing: tuple[Change, ...] = ()
    flaky: tuple[Change, ...] = ()
    new: tuple[Case, ...] = ()
    same: int = 0
    passed: int = 0
    whole: bool = True
    notes: tuple[str, ...] = field(default=())

    @property
    def new_failing(self) -> tuple[Case, ...]:
        return tuple(case for case in self.new if not case.ending.good)

    @property
    def good(self) -> bool:
        """Whether the series broke nothing, as far as was looked, and something was seen."""
        return self.passed > 0 and not self.regressions and not self.new_failing

    def reasons(self) -> list[tuple[str, int]]:
        """The reasons of the unchanged failures, with how many have it, most first."""
        counted = Counter(change.after.reason for change in self.failing if change.after)
        return counted.most_common()

    def missing_packages(self) -> list[str]:
        """The modules that tests of either side could not import."""
        sides = [case for change in self.failing for case in (change.before, change.after)]
        found = (case.missing_package for case in (*sides, *self.new) if case)
        return sorted({name for name in found if name})


def judge(pristine: Cases, patched: Cases, brought: Collection[str]) -> Verdict:
    """Compare two runs of one selection, test by test; `brought` are the series' own new files."""
    changes = [
        Change(id=name, before=pristine.by_id.get(name), after=patched.by_id.get(name))
        for name in sorted({*pristine.by_id, *patched.by_id})
    ]
    old = [change for change in changes if change.id.partition("::")[0] not in brought]
    whole = pristine.whole and patched.whole
    if not whole:  # a test that one side did not come to is no change
        old = [change for change in old if change.before and change.after]
    known = [change for change in old if change.before]
    regressions = [change for change in known if _good(change.before) and not _holds(change)]
    fixed = [change for change in known if not _good(change.before) and _good(change.after)]
    failing = [change for change in known if not _good(change.before) and not _good(change.after)]
    return Verdict(
        regressions=tuple(regressions),
        fixed=tuple(fixed),
        failing=tuple(failing),
        new=tuple(
            case for case in patched if case.file in brought or case.id not in pristine.by_id
        ),
        same=len(known) - len(regressions) - len(fixed) - len(failing),
        passed=patched.count(Ending.PASSED),
        whole=whole,
        notes=(*pristine.notes, *patched.notes),
    )


def _good(case: Case | None) -> bool:
    return case is not None and case.ending.good


def _holds(change: Change) -> bool:
    """Whether a test that was good still is; one that passed and is skipped now is not.

    Nor is one that skips more of its subtests than before.
    """
    if change.before is None or change.after is None:
        return False
    lost = change.before.ending is Ending.PASSED and change.after.ending is Ending.SKIPPED
    lost = lost or (change.after.ending.good and len(change.after.skips) > len(change.before.skips))
    return change.after.ending.good and not lost


def doubtful(verdict: Verdict) -> set[str]:
    """The files of the tests that changed: to be run again before they count."""
    cases = [change.before or change.after for change in (*verdict.regressions, *verdict.fixed)]
    return {case.file for case in (*cases, *verdict.new_failing) if case}


def confirm(verdict: Verdict, again: Verdict) -> Verdict:
    """The changes of `verdict` that `again`, a second run of both sides, has too.

    The others are flaky.
    """
    regressions = _ids(again.regressions)
    fixed = _ids(again.fixed)
    failing = {case.id for case in again.new_failing}
    known = {case.id: case for case in again.new}
    unsure = [change for change in verdict.regressions if change.id not in regressions]
    unsure += [change for change in verdict.fixed if change.id not in fixed]
    unsure += [
        Change(id=case.id, before=case, after=known.get(case.id))
        for case in verdict.new_failing
        if case.id not in failing
    ]
    flaky_new = {case.id for case in verdict.new_failing} - failing
    return Verdict(
        regressions=tuple(one for one in verdict.regressions if one.id in regressions),
        fixed=tuple(one for one in verdict.fixed if one.id in fixed),
        failing=verdict.failing,
        flaky=tuple(sorted(unsure, key=lambda change: change.id)),
        new=tuple(known.get(c.id, c) if c.id in flaky_new else c for c in verdict.new),
        same=verdict.same,
        passed=max(verdict.passed, again.passed),
        whole=verdict.whole and again.whole,
        notes=verdict.notes,
    )


def _ids(changes: Iterable[Change]) -> set[str]:
    return {change.id for change in changes}
