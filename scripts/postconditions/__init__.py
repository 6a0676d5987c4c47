"""What must hold of a patched tree, patch by patch: strict on meaning, blind to wording.

A patch can apply and do nothing, or do it in the wrong place. A post-condition reads the patched
files' syntax trees and says what is missing; nothing of them is run. Each one fails on the
pristine tree.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from scripts.errors import PostconditionError, SeriesError, raise_all
from scripts.patch import Patch
from scripts.patched import Patched
from scripts.postconditions import code, fusion, symm_mem, tables
from scripts.postconditions.code import Missing, Read, Tree
from scripts.series import Series


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """A post-condition, and the file below srt that its patch cannot do without."""

    about: str
    check: Callable[[Tree], list[str]]


CONDITIONS: Mapping[str, Condition] = {
    "0001": Condition(about=tables.COMMUNICATOR, check=symm_mem.one_predicate),
    "0002": Condition(about=symm_mem.PREFLIGHT, check=symm_mem.preflight_and_vote),
    "0003": Condition(about=tables.COMMUNICATOR, check=symm_mem.ceiling_and_buffer),
    "0004": Condition(about=tables.SIZES, check=symm_mem.rows_and_two_shot),
    "0005": Condition(about=fusion.LAYERNORM, check=fusion.all_reduce_when_declined),
    "0006": Condition(about=fusion.FUSION, check=fusion.preflight_without_multicast),
    "0007": Condition(about=fusion.FUSION, check=fusion.opt_in_on_12),
}
"""The post-condition of each patch, by the number that its file name begins with."""


def of(patch: Patch) -> Condition | None:
    """The post-condition of a patch; None where its number has none, or one about other files."""
    condition = CONDITIONS.get(patch.number)
    touched = {path for change in patch.changes for path in change.paths}
    return condition if condition and f"{code.SRT}/{condition.about}" in touched else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What a patch does not do though it is applied."""

    patch: str
    what: str

    def __str__(self) -> str:
        return f"{self.patch}: {self.what}"


def lint(series: Series) -> None:
    """Raise SeriesError for each patch that has no post-condition."""
    raise_all(
        SeriesError,
        [f"{patch.name} has no post-condition" for patch in series.patches if of(patch) is None],
        then="write one in scripts/postconditions/ and list it in CONDITIONS",
    )


def check(series: Series, read: Read, pristine: Read | None = None) -> tuple[Finding, ...]:
    """What the patches of `series` fail to do in a patched tree; lint() tells of those without.

    `read` gives a file of that tree by its path, and raises KeyError where there is none;
    `pristine` those of the tree before the series, to which what must not change is compared.
    """
    tree = Tree(read, pristine)
    findings = []
    for patch in series.patches:
        condition = of(patch)
        try:
            said = condition.check(tree) if condition else []
        except Missing as error:
            said = [str(error)]
        findings += [Finding(patch=patch.name, what=what) for what in said]
    return tuple(findings)


def findings(patched: Patched, patches: Sequence[Patch]) -> tuple[Finding, ...]:
    """What `patches` fail to do in the tree of `patched`."""
    objects = patched.base.store.objects()
    after = {changed.path: changed.after for changed in patched.changed}

    def pristine(path: str) -> bytes:
        return objects.read(patched.base.tree[path].blob)

    def read(path: str) -> bytes:
        if path not in after:
            return pristine(path)
        entry = after[path]
        if entry is None:
            raise KeyError(path)
        return objects.read(entry.blob)

    return check(Series(patches=tuple(patches)), read, pristine)


def prove(patched: Patched) -> int:
    """Check the series on its base, and return how many patches have a post-condition.

    Raises PostconditionError that lists all findings.
    """
    raise_all(
        PostconditionError,
        [str(finding) for finding in findings(patched, patched.series.patches)],
        then="the series applies and does not do this: look at the patch in build/sglang "
        "(nox -s apply)",
    )
    return sum(of(patch) is not None for patch in patched.series.patches)
