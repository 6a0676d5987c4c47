"""Patches that upstream had on the way from one base to another, and has no more.

They look as if upstream had never seen them, and must not be taken for landed.
"""

from collections.abc import Iterator, Mapping, Sequence

from scripts import edit, omission, rebase
from scripts.edit import Edit
from scripts.git import Objects
from scripts.patch import Patch
from scripts.rebase import Fate, Rebased
from scripts.source import Base
from scripts.span import Span, Step
from scripts.workspace import Workspace

_TESTS = "test/"


def reverted(rebased: Rebased, span: Span, workspace: Workspace) -> Mapping[str, Step]:
    """By number, the step after which upstream had all of a patch that it does not have at the end.

    Looked for among the commits that touch every file of upstream's that the patch changes. Raises
    SourceError.
    """
    old = rebased.old
    span.bring(old.series.paths)
    objects = span.new.store.objects()
    numbers = [patch.number for patch in old.series.patches]
    found: dict[str, Step] = {}
    for one in (one for one in rebased.carried if one.after):
        edits = edit.edits(one.before, objects)
        for step in _candidates(one.before, span):
            base = span.at(step)
            if _has_all(edits, base, objects):
                place = numbers.index(one.before.number) + 1
                carried = rebase.rebase(omission.up_to(old, place), base, workspace).carried[-1]
                if carried.fate is Fate.LANDED:
                    found[one.before.number] = step
                    break
    return found


def _changed(patch: Patch) -> Sequence[str]:
    return sorted({c.old for c in patch.changes if c.old and not c.old.startswith(_TESTS)})


def _candidates(patch: Patch, span: Span) -> Sequence[Step]:
    changed = _changed(patch)
    if not changed:
        return ()
    touching = [{step.commit for step in span.steps([path])} for path in changed]
    every = set.intersection(*touching)
    return [step for step in span.steps(changed[:1]) if step.commit in every]


def _has_all(edits: Sequence[Edit], base: Base, objects: Objects) -> bool:
    """Whether every run of added lines outside tests stands in its file, wherever that is."""
    ours = [one for one in edits if one.added and not one.path.startswith(_TESTS)]
    return bool(ours) and all(_has(one, base, objects) for one in ours)


def _has(one: Edit, base: Base, objects: Objects) -> bool:
    if one.path not in base.tree:
        return False
    lines = objects.read(base.tree[one.path].blob).split(b"\n")
    return _joined(one.added) in _joined(lines)


def _joined(lines: Sequence[bytes]) -> bytes:
    return b"\n" + b"\n".join(_stripped(lines)) + b"\n"


def _stripped(lines: Sequence[bytes]) -> Iterator[bytes]:
    return (line.strip() for line in lines)
