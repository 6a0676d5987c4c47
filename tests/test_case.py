"""How tests ended: reasons, JUnit XML, the journal, and the verdict on two runs."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scripts import junit, verdict
from scripts.case import Case, Cases, Ending
from scripts.journal import Journal
from scripts.verdict import Verdict

TEXT = st.text(st.characters(codec="utf-8"))
LEGAL = TEXT.map(junit._legal)
CASES = st.lists(
    st.builds(
        Case,
        id=LEGAL,
        ending=st.sampled_from(Ending),
        detail=LEGAL,
        seconds=st.integers(0, 10**6).map(lambda thousandths: thousandths / 1000),
        skips=st.lists(LEGAL).map(tuple),
    ),
    unique_by=lambda case: case.id,
)


def of(*cases: Case, whole: bool = True) -> Cases:
    return Cases(by_id={case.id: case for case in cases}, whole=whole)


def case(name: str, ending: Ending = Ending.PASSED, detail: str = "") -> Case:
    return Case(id=name, ending=ending, detail=detail)


@given(cases=CASES, whole=st.booleans(), notes=st.lists(LEGAL))
def test_junit_round_trip(cases: list[Case], whole: bool, notes: list[str]) -> None:
    run = Cases(
        by_id={
            one.id: one if one.ending is not Ending.PASSED else replace(one, detail="")
            for one in cases
        },
        whole=whole,
        notes=tuple(notes),
    )
    assert junit.parse(junit.format(run, name="run")) == run


@given(detail=st.text(), name=st.text())
def test_junit_is_xml_whatever_a_test_says(detail: str, name: str) -> None:
    run = of(case(name, Ending.FAILED, detail))
    (back,) = junit.parse(junit.format(run, name="run"))
    assert back.ending is Ending.FAILED


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        (b"</testsuites>", b"", "not XML"),
        (b"testsuites>", b"suites>", "no <testsuite>"),
        (b'tests="2"', b'tests="3"', "2 tests, announced were 3"),
        (b'name="id"', b'name="x"', "has no id"),
        (b'type="failed"', b'type="sad"', "sad"),
        (b'tests="2"', b"", "announced were None"),
        (b'time="0.000"', b'time="soon"', "soon"),
    ],
)
def test_damaged_junit_is_refused(old: bytes, new: bytes, why: str) -> None:
    text = junit.format(of(case("a.py::a"), case("a.py::b", Ending.FAILED)), name="run")
    assert old in text
    with pytest.raises(junit.Malformed, match=why):
        junit.parse(text.replace(old, new))


@pytest.mark.parametrize(
    ("detail", "reason"),
    [
        ("a.py:3: in test\n    f()\nE   ValueError: of 12 at 0x7f", "ValueError: of * at *"),
        ("ImportError while importing\nE   ImportError: x (/a/b/c.py)", "ImportError: x (*c.py)"),
        ("Fatal Python error: Aborted\n\nthread 1", "thread *"),
        ("", "failed"),
    ],
)
def test_reasons(detail: str, reason: str) -> None:
    assert case("a", Ending.FAILED, detail).reason == reason


def test_a_missing_package_is_told_of_what_fails_alone() -> None:
    said = "E   ModuleNotFoundError: No module named 'diffusers.models'"
    assert case("a", Ending.ERROR, said).missing_package == "diffusers.models"
    assert case("a", Ending.SKIPPED, said).missing_package is None


def journal(path: Path, *events: object, end: str = "\n") -> Journal:
    path.write_text("\n".join(json.dumps(event) for event in events) + end)
    made = Journal(path=path)
    made.read()
    return made


def test_a_line_cut_off_is_read_when_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    read = journal(path, {"event": "start", "id": "a"}, {"event": "finish", "id": "a"}, end="")
    assert (read.events, read.running) == (1, "a")
    with path.open("a") as file:
        file.write("\n")
    assert (read.read(), read.running) == (1, None)
    assert read.cases["a"].ending is Ending.ERROR  # finished, and nothing was reported


def test_the_worst_report_counts(tmp_path: Path) -> None:
    def report(outcome: str, when: str = "call") -> dict[str, object]:
        return {"event": "report", "id": "a", "outcome": outcome, "when": when, "text": outcome}

    path = tmp_path / "journal"
    assert journal(path, report("failed"), report("passed")).cases["a"].ending is Ending.FAILED
    late = journal(path, report("passed"), report("failed", "teardown"))
    assert late.cases["a"].ending is Ending.ERROR


P, F, S = Ending.PASSED, Ending.FAILED, Ending.SKIPPED


@pytest.mark.parametrize(
    ("before", "after", "where"),
    [
        (P, P, "same"),
        (S, S, "same"),
        (S, P, "same"),
        (P, F, "regressions"),
        (P, S, "regressions"),
        (P, Ending.CRASHED, "regressions"),
        (P, None, "regressions"),
        (S, F, "regressions"),
        (F, P, "fixed"),
        (F, S, "fixed"),
        (F, F, "failing"),
        (F, Ending.HUNG, "failing"),
        (F, None, "failing"),
        (None, P, "new"),
        (None, F, "new"),
    ],
)
def test_every_pair_of_endings(before: Ending | None, after: Ending | None, where: str) -> None:
    sides = [
        of(case("x")) if one is None else of(case("a", one), case("x")) for one in (before, after)
    ]
    judged = verdict.judge(sides[0], sides[1], ())
    sizes = {
        "regressions": len(judged.regressions),
        "fixed": len(judged.fixed),
        "failing": len(judged.failing),
        "new": len(judged.new),
        "same": judged.same - 1,
    }
    assert sizes.pop(where) == 1
    assert not any(sizes.values())
    assert judged.good is (where != "regressions" and (before, after) != (None, F))


@pytest.mark.parametrize(("before", "after"), [(0, 0), (1, 1), (2, 1), (0, 1), (1, 2)])
def test_a_subtest_that_is_skipped_now_is_a_regression(before: int, after: int) -> None:
    """One that is not skipped any more is none."""
    sides = [of(replace(case("a"), skips=("no GPU",) * count)) for count in (before, after)]
    judged = verdict.judge(sides[0], sides[1], ())
    found = [change.words for change in judged.regressions]
    few, more = (f"passed, {count} of its subtests skipped" for count in (before, after))
    before_words = few if before else "passed"
    assert found == ([f"{before_words}, now {more}"] if after > before else [])


def test_a_stopped_run_has_no_regressions_where_it_did_not_come() -> None:
    judged = verdict.judge(of(case("a"), case("b")), of(case("a", F), whole=False), ())
    assert [change.id for change in judged.regressions] == ["a"]
    assert not judged.whole


def test_what_a_second_run_does_not_confirm_is_flaky() -> None:
    before = of(*(case(name, F if name == "fix" else P) for name in ("real", "once", "fix")))
    after = of(case("real", F), case("once", F), case("fix"), case("new.py::a", F))
    first = verdict.judge(before, after, ("new.py",))
    assert verdict.doubtful(first) == {"real", "once", "fix", "new.py"}
    again = verdict.judge(
        of(case("real"), case("once"), case("fix")),
        of(case("real", F), case("once"), case("fix"), case("new.py::a")),
        ("new.py",),
    )
    judged = verdict.confirm(first, again)
    assert [change.id for change in judged.regressions] == ["real"]
    assert [change.id for change in judged.flaky] == ["fix", "new.py::a", "once"]
    assert not judged.fixed
    assert not judged.new_failing
    assert not judged.good


def test_failures_are_grouped_and_missing_packages_named() -> None:
    lost = "E   ModuleNotFoundError: No module named 'diffusers'"
    cases = of(*(case(str(n), F, lost) for n in range(3)), case("x", F, "E   OSError: no 12"))
    judged = verdict.judge(cases, cases, ())
    assert judged.reasons() == [
        ("ModuleNotFoundError: No module named 'diffusers'", 3),
        ("OSError: no *", 1),
    ]
    assert judged.missing_packages() == ["diffusers"]


def test_where_nothing_passes_nothing_is_proved() -> None:
    """Two environments that are broken alike agree on every test."""
    broken = of(case("a", F), case("b", S))
    assert not verdict.judge(broken, broken, ()).good
    assert not Verdict().good
    assert of().tally == "no tests"
