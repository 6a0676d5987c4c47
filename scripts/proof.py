"""That each patch is what makes its own tests pass: they fail without it, and pass with it."""

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from scripts import omission, suite
from scripts.attempt import Place
from scripts.case import Cases, Ending
from scripts.environment import Environment
from scripts.errors import UsageError
from scripts.omission import TESTS, Omission
from scripts.patch import Patch
from scripts.patched import Patched
from scripts.subject import Subjects
from scripts.suite import Batch
from scripts.workspace import Workspace


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """The new tests of a patch on three trees: `pristine`, `whole`, and `without` the patch."""

    patch: Patch
    files: tuple[str, ...]
    pristine: Cases
    whole: Cases
    without: Cases
    omission: Omission

    @property
    def complete(self) -> bool:
        """Whether none of its runs was stopped."""
        return all(cases.whole for cases in (self.pristine, self.whole, self.without))

    @property
    def findings(self) -> tuple[str, ...]:
        """What does not hold, in words; none where the patch is proved."""
        return tuple(self._findings())

    def _findings(self) -> Iterator[str]:
        name = self.patch.name
        if not self.files:
            yield f"{name}: brings no test of its own"
        if not self.complete:
            yield f"{name}: the run was stopped"
            return
        for path in self.files:
            whole = [case for case in self.whole if case.file == path]
            if not any(case.ending is Ending.PASSED for case in whole):
                yield f"{name}: {path}: no test passes with the whole series"
            for case in whole:
                if not case.ending.good:
                    yield f"{name}: {case.id}: {case.ending} with the whole series: {case.reason}"
            if not _fails(self.pristine, path):
                yield f"{name}: {path}: passes on the pristine release"
            if not _fails(self.without, path):
                yield f"{name}: {path}: passes without the patch, which does nothing for it"


def _fails(cases: Cases, path: str) -> bool:
    return any(case.file == path and not case.ending.good for case in cases)


def new_tests(patch: Patch) -> tuple[str, ...]:
    """The test files that a patch adds, sorted."""
    return tuple(
        sorted(
            change.path for change in patch.changes if change.old is None and is_test(change.path)
        )
    )


def is_test(path: str) -> bool:
    """Whether a path of the tree is one that pytest collects."""
    name = path.rpartition("/")[2]
    return path.startswith(TESTS) and name.startswith("test_") and name.endswith(".py")


def prove(whole: Patched, subjects: Subjects, ours: Environment, *, jobs: int) -> tuple[Proof, ...]:
    """Run each patch's new tests on the pristine release, on `ours`, and without the patch.

    The test files are those of the whole series, in a folder of their own: it works on either
    route to the source. Raises UsageError where the series brings no test at all.
    """
    workspace = subjects.job.workspace
    patches = whole.series.patches
    brought = [new_tests(patch) for patch in patches]
    if not any(brought):
        raise UsageError("no patch of the series brings a test", then="see CONTRIBUTING.md")
    everything = tuple(path for paths in brought for path in paths)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ut")))
        write_tests(whole, folder)
        pristine = place(folder, subjects.pristine(), workspace)
        batches = [Batch(place=place(folder, ours, workspace), paths=everything)]
        dealt = [everything[number::jobs] for number in range(min(jobs, len(everything)))]
        batches += [Batch(place=pristine, paths=paths) for paths in dealt]
        omissions = []
        for number, paths in enumerate(brought):
            each = omission.without(whole, number, workspace)
            omissions.append(each)
            if each.patched.commit != whole.base.commit:  # else it is the pristine run
                name = f"without-{each.patch.number}"
                made = stack.enter_context(subjects.part(each.patched, name))
                batches.append(Batch(place=place(folder, made, workspace), paths=paths))
        title = "the series' own tests"
        cases = suite.run(batches, jobs=jobs, progress=workspace.progress, title=title)
    on_whole, *rest = cases
    on_pristine = suite.merged(rest[: len(dealt)])
    left = iter(rest[len(dealt) :])
    return tuple(
        Proof(
            patch=each.patch,
            files=paths,
            pristine=_of(on_pristine, paths),
            whole=_of(on_whole, paths),
            without=(
                _of(on_pristine, paths) if each.patched.commit == whole.base.commit else next(left)
            ),
            omission=each,
        )
        for each, paths in zip(omissions, brought, strict=True)
    )


def _of(cases: Cases, paths: Sequence[str]) -> Cases:
    by_id = {name: case for name, case in cases.by_id.items() if case.file in paths}
    return replace(cases, by_id=by_id)


def place(tree: Path, environment: Environment, workspace: Workspace) -> Place:
    """Where tests of `tree` run against the wheel of `environment`."""
    return Place(tree=tree, environment=environment, users=dict(workspace.environment))


def write_tests(whole: Patched, folder: Path) -> None:
    """Write every file that the series adds below test/ into `folder`."""
    objects = whole.base.store.objects()
    for change in whole.changed:
        if change.before is None and change.after is not None and change.path.startswith(TESTS):
            path = folder / change.path
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(objects.read(change.after.blob))
