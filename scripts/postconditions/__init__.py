"""What must hold of a patched tree, patch by patch: strict on meaning, blind to wording.

A patch can apply and do nothing, or do it in the wrong place. A post-condition reads the patched
files' syntax trees and says what is missing; nothing of them is run. Each one fails on the
pristine tree.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from scripts.errors import PostconditionError, SeriesError, raise_all
from scripts.patched import Patched
from scripts.postconditions import fusion, symm_mem
from scripts.postconditions.code import Missing, Read, Tree
from scripts.series import Series

Condition = Callable[[Tree], list[str]]

CONDITIONS: Mapping[str, Condition] = {
    "0001": symm_mem.one_predicate,
    "0002": symm_mem.preflight_and_vote,
    "0003": symm_mem.ceiling_and_buffer,
    "0004": symm_mem.rows_and_two_shot,
    "0005": fusion.all_reduce_when_declined,
    "0006": fusion.preflight_without_multicast,
    "0007": fusion.opt_in_on_12,
}
"""The post-condition of each patch, by the number that its file name begins with."""


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
        [
            f"{patch.name} has no post-condition"
            for patch in series.patches
            if patch.number not in CONDITIONS
        ],
        then="write one in scripts/postconditions/ and list it in CONDITIONS",
    )


def check(series: Series, read: Read, pristine: Read | None = None) -> tuple[Finding, ...]:
    """What the patches of `series` fail to do in a patched tree.

    `read` gives a file of that tree by its path, and raises KeyError where there is none;
    `pristine` those of the tree before the series, to which what must not change is compared.
    Raises SeriesError where a patch has no post-condition.
    """
    lint(series)
    tree = Tree(read, pristine)
    findings = []
    for patch in series.patches:
        try:
            said = CONDITIONS[patch.number](tree)
        except Missing as error:
            said = [str(error)]
        findings += [Finding(patch=patch.name, what=what) for what in said]
    return tuple(findings)


def prove(patched: Patched) -> int:
    """Check the series on its base, and return how many patches were checked.

    Raises PostconditionError that lists all findings, or SeriesError.
    """
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

    findings = check(patched.series, read, pristine)
    raise_all(
        PostconditionError,
        [str(finding) for finding in findings],
        then="the series applies and does not do this: look at the patch in build/sglang "
        "(nox -s apply)",
    )
    return len(patched.series.patches)
