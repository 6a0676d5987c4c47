"""The record of gates: its format, and what is new, moved, vanished or claimed in vain."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scripts import ratchet
from scripts.errors import GateError
from scripts.gate import Gate, Kind
from scripts.ratchet import Known, Ratchet, Status

PLACES = ("srt/distributed/*", "*::*all_reduce*")


def gate(
    path: str = "srt/a.py", symbol: str = "f", condition: str = "sm100", line: int = 1
) -> Gate:
    return Gate(
        path=path,
        line=line,
        symbol=symbol,
        kind=Kind.HELPER,
        condition=condition,
        effect="skipped",
    )


def known(at: Gate, status: Status = Status.OPEN, patch: str = "", why: str = "") -> Known:
    return Known(key=at.key, status=status, patch=patch, why=why)


def record(*entries: Known) -> Ratchet:
    return Ratchet(all_reduce=PLACES, known=entries)


words = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), min_size=1)


@given(path=words, symbol=words, condition=words, why=words, occurrence=st.integers(1, 9))
def test_what_is_written_is_read_back(
    path: str, symbol: str, condition: str, why: str, occurrence: int
) -> None:
    one = replace(gate(path, symbol, condition), occurrence=occurrence)
    kept = record(known(one, Status.ACCEPTED, why=why))
    assert ratchet.parse(ratchet.format(kept)) == kept


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("all-reduce = [", "not TOML"),
        ("all-reduce = 'x'", "expected all-reduce"),
        ("gates = [1]", "expected all-reduce"),
        ("[[gates]]\npath = 'a'", "lacks 'symbol'"),
        ("[[gates]]\nsite = 'a'", "unknown keys: site"),
    ],
)
def test_a_malformed_record_says_where(text: str, said: str) -> None:
    with pytest.raises(GateError, match=said):
        ratchet.parse(text)


ENTRY = "[[gates]]\npath = 'a'\nsymbol = 's'\nkind = 'helper'\ncondition = 'c'\n"


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ("status = 'done'", "not a valid Status"),
        ("status = 'covered'", "`patch` belongs to status covered"),
        ("status = 'open'\npatch = '0001'", "`patch` belongs to status covered"),
        ("status = 'accepted'", "needs a `why`"),
        ("status = 'open'\noccurrence = 'one'", "not a number"),
        ("status = 'open'\noccurrence = 0", "no such gate"),
        ("status = 'open'\n" + ENTRY + "status = 'open'", "twice"),
    ],
)
def test_a_half_valid_entry_does_not_exist(lines: str, said: str) -> None:
    with pytest.raises(GateError, match=said):
        ratchet.parse(ENTRY + lines)


def test_every_finding_is_told_at_once() -> None:
    with pytest.raises(GateError, match=r"2 problems(.|\n)*gate 1(.|\n)*gate 2"):
        ratchet.parse(ENTRY + "status = 'x'\n" + ENTRY + "status = 'y'\n")


def test_what_stands_is_neither_new_nor_moved_nor_vanished() -> None:
    seen = ratchet.review([gate(line=99)], record(known(gate(line=1))))
    assert (seen.new, seen.moved, seen.vanished) == ((), (), ())
    assert len(seen.standing) == 1


@pytest.mark.parametrize(
    "elsewhere",
    [
        gate(path="srt/other.py"),
        gate(symbol="renamed"),
        gate(condition="sm100 and ..."),
    ],
    ids=["path", "symbol", "condition"],
)
def test_a_gate_that_moved_keeps_its_decision(elsewhere: Gate) -> None:
    decided = record(known(gate(), Status.ACCEPTED, why="fine"))
    seen = ratchet.review([elsewhere], decided)
    assert [(old.why, now) for old, now in seen.moved] == [("fine", elsewhere)]
    (kept,) = ratchet.updated(seen, {}).known
    assert (kept.key, kept.status, kept.why) == (elsewhere.key, Status.ACCEPTED, "fine")


def test_one_that_is_gone_and_another_that_came_are_not_one_that_moved() -> None:
    other = gate(path="srt/other.py", symbol="g", condition="sm90 or sm100")
    seen = ratchet.review([other], record(known(gate())))
    assert seen.moved == ()
    assert (seen.new, len(seen.vanished)) == ((other,), 1)
    assert [entry.key for entry in ratchet.updated(seen, {}).known] == [other.key]


def test_where_two_could_be_the_one_that_moved_none_is() -> None:
    here, there = gate(path="srt/x.py"), gate(path="srt/y.py")
    seen = ratchet.review([here, there], record(known(gate(), Status.ACCEPTED, why="fine")))
    assert seen.moved == ()
    assert len(seen.new) == 2


@pytest.mark.parametrize(
    ("place", "stops"),
    [
        (gate(path="srt/distributed/deep/a.py"), True),
        (gate(symbol="C.fused_all_reduce_rms"), True),
        (gate(), False),
    ],
)
def test_a_new_gate_on_the_all_reduce_paths_stops_a_bump(place: Gate, stops: bool) -> None:
    seen = ratchet.review([place], record())
    if not stops:
        ratchet.stop_undecided(seen)
        return
    with pytest.raises(GateError, match=r"all_reduce|distributed"):
        ratchet.stop_undecided(seen)
    written = ratchet.updated(seen, {})
    assert written.known[0].status is Status.UNDECIDED
    with pytest.raises(GateError):
        ratchet.stop_undecided(ratchet.review([place], written))
    decided = record(known(place, Status.OPEN))
    ratchet.stop_undecided(ratchet.review([place], decided))


def test_a_patch_that_does_not_open_what_it_is_said_to_is_told() -> None:
    covered = record(known(gate(), Status.COVERED, patch="0004"))
    assert ratchet.review([gate()], covered, {gate().key: "0004"}).false_claims == ()
    (none,) = ratchet.review([gate()], covered, {}).false_claims
    assert "no patch of the series does" in none
    (other,) = ratchet.review([gate()], covered, {gate().key: "0007"}).false_claims
    assert "patch 0007 does" in other


def test_bringing_it_up_to_date_takes_coverage_from_the_series() -> None:
    seen = ratchet.review([gate()], record())
    (entry,) = ratchet.updated(seen, {gate().key: "0004"}).known
    assert (entry.status, entry.patch) == (Status.COVERED, "0004")


def test_coverage_that_is_lost_is_not_kept() -> None:
    seen = ratchet.review([gate()], record(known(gate(), Status.COVERED, patch="0004")), {})
    (entry,) = ratchet.updated(seen, {}).known
    assert (entry.status, entry.patch) == (Status.OPEN, "")
