"""What speaks against a rebased series: each needs a person, and none is passed over."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from scripts import edit, patched, postconditions, rebase, repeat
from scripts.edit import Edit, Move
from scripts.git import Tree
from scripts.patched import Patched
from scripts.rebase import Carried, Fate, Rebased
from scripts.source import Base
from scripts.workspace import Workspace


class Kind(StrEnum):
    """Why a bump stops."""

    CONFLICT = "conflict"
    LANDED = "landed"
    MOVED = "another symbol"
    REPEATED = "there twice"
    POSTCONDITION = "post-condition"
    GATE = "gate"
    EXPORT = "export"


@dataclass(frozen=True, slots=True, kw_only=True)
class Objection:
    """One of them: the number of the patch ("" for the tree as a whole), and the way out."""

    patch: str
    kind: Kind
    what: str
    then: str


def against(
    rebased: Rebased, workspace: Workspace, *, accepted: Collection[str] = ()
) -> tuple[Objection, ...]:
    """All that speaks against `rebased`, patch by patch.

    `accepted` are the numbers of the patches that a person has looked at: that their edits stand in
    other symbols, or twice, is right. What can only be judged on a whole series is not looked at
    before the conflicts are settled.
    """
    found = [one for carried in rebased.carried for one in _not_carried(rebased, carried)]
    if any(one.kind is Kind.CONFLICT for one in found):
        return tuple(found)
    result = patched.apply(rebased.new, rebased.series, workspace)
    if rebase.tree_of(rebased.new.store, result.commit) != rebase.tree_of(
        rebased.new.store, rebased.tip
    ):
        found.append(
            Objection(
                patch="",
                kind=Kind.EXPORT,
                what="the exported patches do not give the tree that the rebase gave",
                then="nox -s bump -- --abort, and report this",
            )
        )
    for carried in rebased.carried:
        if carried.fate in _BY_GIT and carried.before.number not in accepted:
            found += _in_another_symbol(rebased, carried)
    found += _there_twice(rebased, accepted)
    found += _postconditions(result)
    return tuple(found)


_BY_GIT = frozenset({Fate.UNCHANGED, Fate.MOVED, Fate.MERGED})


def _not_carried(rebased: Rebased, carried: Carried) -> Iterator[Objection]:
    number = carried.before.number
    if carried.conflicts:
        where = ", ".join(f"{one.path} ({one.kind})" for one in carried.conflicts)
        given = f", given {', '.join(carried.unsettled)}"
        yield Objection(
            patch=number,
            kind=Kind.CONFLICT,
            what=f"{where}{given if carried.unsettled else ''}{_form(rebased, carried)}",
            then="resolve it in build/sglang, or leave it out: git rebase --skip there "
            f"(or --retire {number}, beforehand)",
        )
    elif carried.fate is Fate.LANDED:
        yield Objection(
            patch=number,
            kind=Kind.LANDED,
            what="upstream has it as it is",
            then=f"--retire {number}, which takes it out of the series",
        )


def _form(rebased: Rebased, carried: Carried) -> str:
    """Why upstream may have a patch that is in conflict."""
    if carried.fate is Fate.LANDED_MODIFIED:
        return "; it can be taken out of upstream's tree, so upstream may have it in another form"
    if _holds_without(rebased, carried):
        return "; its post-condition holds without it, so upstream may have it in another form"
    return ""


def _holds_without(rebased: Rebased, carried: Carried) -> bool:
    condition = postconditions.of(carried.before)
    if condition is None:
        return False
    pristine = Patched(base=rebased.new, series=rebased.series, commits=(), changed=())
    return not postconditions.findings(pristine, [carried.before])


def _in_another_symbol(rebased: Rebased, carried: Carried) -> Iterator[Objection]:
    assert carried.after is not None
    objects = rebased.new.store.objects()
    before, after = edit.edits(carried.before, objects), edit.edits(carried.after, objects)
    number = carried.before.number
    for move in edit.moves(before, after):
        yield Objection(
            patch=number,
            kind=Kind.MOVED,
            what=_side_by_side(move),
            then=f"look at it; --accept {number} where it is right",
        )


def _side_by_side(move: Move) -> str:
    def shown(side: Edit | None) -> str:
        if side is None:
            return "(nowhere)"
        first = next((line for line in side.text if line[1:].strip()), b"")
        place = f"{side.path}:{side.line} in {side.symbol or '(module)'}"
        return f"{place}: {first.decode(errors='replace')}"

    return f"\n    before: {shown(move.before)}\n    after:  {shown(move.after)}"


def _there_twice(rebased: Rebased, accepted: Collection[str]) -> Iterator[Objection]:
    objects = rebased.new.store.objects()
    carried = [
        one
        for one in rebased.carried
        if one.fate in _BY_GIT - {Fate.UNCHANGED} and one.before.number not in accepted
    ]
    if not carried:
        return
    edits = {
        item: one.before.number
        for one in carried
        if one.after
        for item in edit.edits(one.after, objects)
    }
    for found in repeat.repeats(tuple(edits), *_differing(rebased.old.base, rebased.new)):
        first = found.edit.added[0].decode(errors="replace").strip()
        patch = edits[found.edit]
        yield Objection(
            patch=patch,
            kind=Kind.REPEATED,
            what=f"upstream has its lines too, at {found.path}:{found.line}: {first}",
            then=f"--retire {patch}, or --accept {patch}",
        )


def _differing(old: Base, new: Base) -> tuple[Mapping[str, bytes], Mapping[str, bytes]]:
    """The Python files that differ between two bases and are at hand, before and after."""
    objects = new.store.objects()

    def side(tree: Tree, other: Tree) -> dict[str, bytes]:
        entries = [
            (path, entry)
            for path, entry in tree.items()
            if path.endswith(".py") and other.get(path) != entry and objects.has(entry.blob)
        ]
        return dict(new.store.contents(entries))

    return side(old.tree, new.tree), side(new.tree, old.tree)


def _postconditions(result: Patched) -> Iterator[Objection]:
    for finding in postconditions.findings(result, result.series.patches):
        number = finding.patch[:4]
        yield Objection(
            patch=number,
            kind=Kind.POSTCONDITION,
            what=finding.what,
            then="mend the patch, or its post-condition in scripts/postconditions/ "
            "where upstream has changed what it is about",
        )
