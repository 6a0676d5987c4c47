"""The upstream commit after which a patch no longer is what it was, found by bisection."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from scripts import omission, patched, postconditions, rebase
from scripts.patched import Patched
from scripts.rebase import WANTS_A_PERSON, Carried
from scripts.source import Base
from scripts.span import Span, Step
from scripts.workspace import Workspace


@dataclass(frozen=True, slots=True, kw_only=True)
class Culprit:
    """The first step that was found after which a patch fails, and what becomes of it there.

    `findings` are those of its post-condition, where it still merges. `probes` is the number of
    trees that were tried, among `among` commits.
    """

    step: Step
    carried: Carried
    findings: tuple[str, ...]
    probes: int
    among: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Trial:
    carried: Carried
    findings: tuple[str, ...]

    @property
    def fails(self) -> bool:
        return self.carried.fate in WANTS_A_PERSON or bool(self.findings)


def find(old: Patched, span: Span, number: str, workspace: Workspace) -> Culprit | None:
    """The first step of `span` after which patch `number` fails; None where it holds at its end.

    A patch fails where it conflicts, where upstream has it, or where its post-condition does not
    hold. The patches before it are carried along. Where a patch fails, holds again and fails again,
    one of these steps is found. Raises SourceError.
    """
    upto = _up_to(old, number)
    probes = 0

    def trial(step: Step) -> _Trial:
        nonlocal probes
        probes += 1
        return _try(upto, span.at(step), workspace)

    span.bring(old.series.paths)  # what post-conditions read
    patch = upto.series.patches[-1]
    paths = sorted({path for change in patch.changes for path in change.paths})
    for steps in (span.steps(paths), span.steps()):
        if steps and trial(steps[-1]).fails:
            step = _first(steps, lambda step: trial(step).fails)
            found = trial(step)
            return Culprit(
                step=step,
                carried=found.carried,
                findings=found.findings,
                probes=probes,
                among=len(steps),
            )
    return None


def _up_to(old: Patched, number: str) -> Patched:
    numbers = [patch.number for patch in old.series.patches]
    return omission.up_to(old, numbers.index(number) + 1)


def _try(upto: Patched, base: Base, workspace: Workspace) -> _Trial:
    rebased = rebase.rebase(upto, base, workspace)
    carried = rebased.carried[-1]
    if carried.commit is None or carried.after is None:
        return _Trial(carried=carried, findings=())
    result = patched.of_commits(rebased.new, rebased.series, rebased.commits)
    found = postconditions.findings(result, [carried.after])
    return _Trial(carried=carried, findings=tuple(finding.what for finding in found))


def _first(steps: Sequence[Step], fails: Callable[[Step], bool]) -> Step:
    """The first step that fails, given that the last one does."""
    low, high = 0, len(steps) - 1
    while low < high:
        middle = (low + high) // 2
        if fails(steps[middle]):
            high = middle
        else:
            low = middle + 1
    return steps[high]
