"""An audit as table, JSON, SARIF and Markdown."""

import io
import json
from collections.abc import Mapping

from rich.console import Console

from scripts import gate_report, ratchet
from scripts.audit import Audit, Unread
from scripts.gate import Gate, Key, Kind
from scripts.gate_report import Report
from scripts.git import CommitId
from scripts.history import Introduced
from scripts.ratchet import Known, Ratchet, Status

COMMIT = "71de97b264b04dcd514cf904003028aefe9775c8"


def gate(symbol: str, kind: Kind = Kind.HELPER, path: str = "python/sglang/srt/a.py") -> Gate:
    return Gate(
        path=path,
        line=7,
        symbol=symbol,
        kind=kind,
        condition="sm100 and ...",
        effect="skipped: returns `x` <b>",
    )


def report(*gates: Gate, opened: Mapping[Key, str] | None = None, **known: Status) -> Report:
    entries = tuple(
        Known(key=g.key, status=known[g.symbol], why="so" if "accepted" in known[g.symbol] else "")
        for g in gates
        if g.symbol in known
    )
    record = Ratchet(all_reduce=("*::*reduce*",), known=entries)
    found = Audit(gates=gates, unread=(Unread(path="b.py", why="is broken"),), files=2)
    came = Introduced(commit=CommitId("a" * 40), title="a change")
    return Report(
        commit=COMMIT,
        audit=found,
        review=ratchet.review(gates, record, opened),
        opened=opened or {},
        introduced={("python/sglang/srt/a.py", 7): came},
    )


def test_json_has_every_fact_of_a_gate() -> None:
    one = gate("f")
    data = json.loads(json.dumps(gate_report.as_data(report(one, opened={one.key: "0007"}))))
    assert data["gates"] == [
        {
            "path": "python/sglang/srt/a.py",
            "line": 7,
            "symbol": "f",
            "kind": "helper",
            "condition": "sm100 and ...",
            "occurrence": 1,
            "on-12": "skipped: returns `x` <b>",
            "status": "covered by 0007",
            "all-reduce": False,
            "introduced-by": {"commit": "a" * 40, "title": "a change"},
        }
    ]
    assert data["unread"] == [{"path": "b.py", "why": "is broken"}]
    assert data["new"] == ["python/sglang/srt/a.py:7"]


def test_sarif_has_a_rule_a_place_and_a_level_for_each_gate() -> None:
    gates = (gate("f"), gate("all_reduce"), gate("g", Kind.THRESHOLD), gate("fine"))
    sarif = gate_report.as_sarif(report(*gates, fine=Status.ACCEPTED))
    assert sarif["version"] == "2.1.0"
    (run,) = json.loads(json.dumps(sarif))["runs"]
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert set(rules) == set(Kind)
    results = run["results"]
    assert [result["level"] for result in results] == ["warning", "error", "note", "note"]
    for result in results:
        assert rules[result["ruleIndex"]] == result["ruleId"]
        place = result["locations"][0]["physicalLocation"]
        assert place["region"]["startLine"] == 7
        assert place["artifactLocation"]["uri"] == "python/sglang/srt/a.py"
    assert len({result["partialFingerprints"]["gate/v1"] for result in results}) == 4
    assert "suppressions" in results[3]
    notes = run["invocations"][0]["toolExecutionNotifications"]
    assert notes[0]["message"]["text"] == "not read: is broken"


def test_markdown_ticks_what_is_settled_and_keeps_upstreams_text_quiet() -> None:
    text = gate_report.as_markdown(report(gate("f"), gate("fine"), fine=Status.ACCEPTED))
    assert "### accepted (1)\n\n- [x]" in text
    assert "### new (1)\n\n- [ ]" in text
    assert r"returns \`x\` \<b\>" in text
    assert f"(since {'a' * 12})" in text
    assert "`b.py` was not read: is broken" in text


def test_the_table_shows_every_gate_and_what_was_not_read() -> None:
    console = Console(width=200, record=True, file=io.StringIO())
    console.print(gate_report.as_table(report(gate("f"), gate("g", Kind.TABLE))))
    text = console.export_text()
    assert "2 gates in 2 files" in text
    assert "2 new, 0 moved, 0 vanished" in text
    assert "is broken" in text
    assert "table" in text
