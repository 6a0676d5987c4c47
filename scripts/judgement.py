"""A rebased series judged: what is decided, what needs a person, and the gates of the tree."""

from collections.abc import Iterator
from dataclasses import dataclass

from scripts import audit, objection, patched, ratchet
from scripts.lock import Lock
from scripts.objection import Kind, Objection
from scripts.ratchet import Ratchet, Review
from scripts.rebase import Carried, Fate, Rebased
from scripts.workspace import Workspace


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """What a person has decided: which patches to retire, and whose new places are right.

    `all_landed` retires each patch that upstream has as it is; the others are numbers of patches.
    """

    all_landed: bool = False
    retired: frozenset[str] = frozenset()
    accepted: frozenset[str] = frozenset()

    def retires(self, carried: Carried) -> bool:
        """Whether a patch that is not on the new base is to leave the series."""
        landed = self.all_landed and carried.fate is Fate.LANDED
        return landed or carried.before.number in self.retired


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """A rebased series, what speaks against it, and its gates against those on record.

    `gates` and `record`, gates.toml brought up to date, are None where patches are missing.
    """

    rebased: Rebased
    objections: tuple[Objection, ...]
    gates: Review | None = None
    record: Ratchet | None = None

    @property
    def old(self) -> Lock:
        return self.rebased.old.base.lock

    @property
    def new(self) -> Lock:
        return self.rebased.new.lock

    @property
    def conflicts(self) -> tuple[str, ...]:
        """The numbers of the patches that are in conflict."""
        return tuple(one.patch for one in self.objections if one.kind is Kind.CONFLICT)


def judge(rebased: Rebased, workspace: Workspace, answers: Answers) -> Judgement:
    """All that speaks against `rebased` after what a person has decided.

    A module that cannot be looked into for gates is told. Raises GateError where
    patchset/gates.toml cannot be read.
    """
    retired = {one.before.number for one in rebased.carried if answers.retires(one)}
    found = [
        one
        for one in objection.against(rebased, workspace, accepted=answers.accepted)
        if one.patch not in retired
    ]
    if any(one.kind is Kind.CONFLICT for one in found):
        return Judgement(rebased=rebased, objections=tuple(found))
    result = patched.apply(rebased.new, rebased.series, workspace)
    known = ratchet.load(workspace.patchset / "gates.toml")
    with workspace.progress("look for gates"):
        gates, opened = audit.of_series(result)
    for file in gates.unread:
        workspace.say(f"{file.path} was not read, so its gates are not known: {file.why}")
    seen = ratchet.review(gates.gates, known, opened)
    return Judgement(
        rebased=rebased,
        objections=(*found, *_undecided(seen)),
        gates=seen,
        record=ratchet.updated(seen, opened),
    )


def _undecided(seen: Review) -> Iterator[Objection]:
    for gate in seen.undecided:
        yield Objection(
            patch="",
            kind=Kind.GATE,
            what=f"{gate.path}:{gate.line} in {gate.symbol}: {gate.condition} "
            f"(on capability 12: {gate.effect})",
            then="--write-gates adds it to patchset/gates.toml; set its `status` there",
        )
    for claim in seen.false_claims:
        yield Objection(
            patch="",
            kind=Kind.GATE,
            what=claim,
            then="--write-gates takes that back in patchset/gates.toml; set its `status` there",
        )
