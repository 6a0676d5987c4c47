"""SGLang's own unit tests on the pristine release and on our wheel, compared test by test."""

import hashlib
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from scripts import files, ground, junit, omission, suite, verdict
from scripts.case import Case, Cases
from scripts.environment import Environment
from scripts.ground import Ground
from scripts.patched import Patched
from scripts.subject import Subjects
from scripts.suite import Batch
from scripts.verdict import Change, Verdict
from scripts.workspace import Workspace

_CODE = ("recorder", "attempt", "suite", "journal", "case", "junit")
NOTHING = Cases(by_id={}, whole=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """Both runs, and what they say; `reused` says that the pristine one is of an earlier day."""

    ground: Ground
    pristine: Cases
    patched: Cases
    verdict: Verdict
    reused: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """All that a comparison needs: the chosen tests, and both sides with their environments."""

    ground: Ground
    whole: Patched
    subjects: Subjects
    upstream: Environment
    ours: Environment
    jobs: int

    @property
    def workspace(self) -> Workspace:
        return self.subjects.job.workspace

    @property
    def base(self) -> Patched:
        """The pristine side: a series without patches."""
        return omission.up_to(self.whole, 0)

    def run(self, patched: Patched, environment: Environment, title: str) -> Cases:
        """The chosen tests on one side. Ctrl-C gives what there is, as `suite` does."""
        try:
            with self.ground.laid(patched, environment, self.workspace) as batches:
                return self.suite(batches, title)
        except KeyboardInterrupt:  # before the first test, or after the last
            return NOTHING

    def suite(self, batches: Sequence[Batch], title: str) -> Cases:
        progress = self.workspace.progress
        return suite.merged(suite.run(batches, jobs=self.jobs, progress=progress, title=title))


def compare(bench: Bench, *, per_patch: bool = False) -> Compared:
    """Run the chosen tests on both sides and judge.

    What changed is run again on both sides, in the same company, before it counts. With
    `per_patch` each regression gets the name of the patch that brought it. After Ctrl-C the
    verdict is not whole.
    """
    key = _key(bench)
    cached = _cached(key, bench.workspace)
    pristine = cached or bench.run(bench.base, bench.upstream, "tests, pristine")
    if pristine.whole and not cached:
        path = _path(key, bench.workspace)
        with files.replacing(path) as new:
            new.write_bytes(junit.format(pristine, name="pristine"))
    patched = bench.run(bench.whole, bench.ours, "tests, patched") if pristine.whole else NOTHING
    brought = {path.partition("::")[0] for path in bench.ground.brought}
    judged = verdict.judge(pristine, patched, brought)
    try:
        if judged.whole:
            judged = _confirmed(judged, bench, brought)
        if per_patch and judged.whole and judged.regressions:
            judged = _blamed(judged, pristine, bench, brought)
    except KeyboardInterrupt:
        judged = replace(judged, whole=False)
    return Compared(
        ground=bench.ground,
        pristine=pristine,
        patched=patched,
        verdict=judged,
        reused=cached is not None,
    )


def _confirmed(judged: Verdict, bench: Bench, brought: set[str]) -> Verdict:
    doubtful = verdict.doubtful(judged)
    if not doubtful:
        return judged
    sides = []
    for patched, environment, side in (
        (bench.base, bench.upstream, "pristine"),
        (bench.whole, bench.ours, "patched"),
    ):
        with bench.ground.laid(patched, environment, bench.workspace) as batches:
            again = [
                batch
                for batch in batches
                if doubtful & {path.partition("::")[0] for path in batch.paths}
            ]
            sides.append(bench.suite(again, f"again, {side}"))
        if not sides[-1].whole:
            return replace(judged, whole=False)
    return verdict.confirm(judged, verdict.judge(sides[0], sides[1], brought))


def _blamed(judged: Verdict, pristine: Cases, bench: Bench, brought: set[str]) -> Verdict:
    """Run the selection after each patch, and name for each regression the first that has it."""
    blamed: dict[str, str] = {}
    patches = bench.whole.series.patches
    for count in range(1, len(patches)):
        part = omission.up_to(bench.whole, count)
        name = f"up-to-{patches[count - 1].number}"
        with ExitStack() as stack:
            made = stack.enter_context(bench.subjects.part(part, name))
            cases = bench.run(part, made, f"tests, {name}")
        found = verdict.judge(pristine, cases, brought)
        if not found.whole:
            return replace(judged, whole=False)
        for change in found.regressions:
            blamed.setdefault(change.id, patches[count - 1].name)
    last = patches[-1].name
    regressions = tuple(
        replace(change, patch=blamed.get(change.id, last)) for change in judged.regressions
    )
    return replace(judged, regressions=regressions)


def bench(
    wanted: ground.Wanted, whole: Patched, subjects: Subjects, ours: Environment, *, jobs: int
) -> Bench:
    """What `wanted` needs to be compared. Raises UsageError where it has no test."""
    workspace = subjects.job.workspace
    chosen = ground.choose(wanted, whole, ours, workspace)
    made = Bench(
        ground=chosen,
        whole=whole,
        subjects=subjects,
        upstream=subjects.pristine(),
        ours=ours,
        jobs=jobs,
    )
    ground.forget((whole, made.base), workspace)
    return made


def _key(bench: Bench) -> str:
    """A hash of all that the pristine result depends on: release, tests, environment, code."""
    here = Path(__file__).parent
    chosen = bench.ground
    parts = [bench.whole.base.commit, bench.upstream.key, repr(chosen.batches)]
    parts += [repr(chosen.options), repr(chosen.wanted.limits)]
    parts += [files.sha256(here / f"{name}.py") for name in _CODE]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:32]


def _path(key: str, workspace: Workspace) -> Path:
    return workspace.cache / "upstream-tests" / f"pristine-{key}.xml"


def _cached(key: str, workspace: Workspace) -> Cases | None:
    path = _path(key, workspace)
    try:
        return junit.parse(path.read_bytes())
    except FileNotFoundError:
        return None
    except junit.Malformed as error:
        aside = files.set_aside(path)
        workspace.say(f"{path.name} was set aside as {aside.name}: {error}")
        return None


def side_by_side(change: Change) -> tuple[str, str]:
    """What the two sides of a changed test said."""
    before, after = change.before, change.after
    return (
        _said(before) if before else "the test was not there",
        _said(after) if after else "the test is gone",
    )


def _said(case: Case) -> str:
    return case.detail or "\n".join((case.words, *case.skips))
