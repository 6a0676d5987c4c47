"""An audit for people and machines: a table, JSON, SARIF, and Markdown for a tracking issue."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from rich.table import Table

from scripts.audit import Audit
from scripts.gate import Gate, Key, Kind
from scripts.history import Introduced, Line
from scripts.ratchet import Review, Status

SARIF_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
MEANING: Mapping[Kind, str] = {
    Kind.TABLE: "A table with rows for 9 and 10 and none for 12",
    Kind.LOOKUP: "A look-up of the capability in a table without a row for 12",
    Kind.EITHER: "True on 9 and 10, false on 12",
    Kind.MEMBER: "Membership in a list of capabilities that lacks 12",
    Kind.THRESHOLD: "A threshold at 10 that takes 12 in",
    Kind.CHAIN: "Branches for 9 and 10 and none for 12",
    Kind.CHOICE: "One value on 10, on 12 the one of everything else",
    Kind.NEGATION: "What is not 10 is turned away or treated otherwise",
    Kind.EQUALITY: "A comparison with 10 alone",
    Kind.HELPER: "A test for 10 alone",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """An audit with what is known besides: the record, the series, the history."""

    commit: str
    audit: Audit
    review: Review
    opened: Mapping[Key, str] = field(default_factory=dict)
    introduced: Mapping[Line, Introduced] = field(default_factory=dict)

    def status(self, gate: Gate) -> str:
        """What was decided about a gate; `new` where nothing is on record."""
        if gate.key in self.opened:
            return f"covered by {self.opened[gate.key]}"
        for known, found in (*self.review.standing, *self.review.moved):
            if found.key == gate.key:
                return f"covered by {known.patch}" if known.patch else str(known.status)
        return "new"


def as_data(report: Report) -> dict[str, object]:
    """The report as JSON-able data: every gate, and what changed against the record."""
    review = report.review
    return {
        "commit": report.commit,
        "files": report.audit.files,
        "gates": [_as_dict(report, gate) for gate in report.audit.gates],
        "unread": [{"path": file.path, "why": file.why} for file in report.audit.unread],
        "new": [_place(gate) for gate in review.new],
        "moved": [
            {"from": ":".join(map(str, known.key)), "to": _place(gate)}
            for known, gate in review.moved
        ],
        "vanished": [":".join(map(str, known.key)) for known in review.vanished],
        "false-claims": list(review.false_claims),
        "undecided": [_place(gate) for gate in review.undecided],
    }


def _place(gate: Gate) -> str:
    return f"{gate.path}:{gate.line}"


def _as_dict(report: Report, gate: Gate) -> dict[str, object]:
    came = report.introduced.get((gate.path, gate.line))
    return {
        "path": gate.path,
        "line": gate.line,
        "symbol": gate.symbol,
        "kind": str(gate.kind),
        "condition": gate.condition,
        "occurrence": gate.occurrence,
        "on-12": gate.effect,
        "status": report.status(gate),
        "all-reduce": report.review.ratchet.is_on_all_reduce_path(gate.key),
        "introduced-by": {"commit": came.commit, "title": came.title} if came else None,
    }


def as_table(report: Report) -> Table:
    """The report for people."""
    changed = report.review
    title = (
        f"{len(report.audit.gates)} gates in {report.audit.files} files of {report.commit[:12]}: "
        f"{len(changed.new)} new, {len(changed.moved)} moved, {len(changed.vanished)} vanished"
    )
    table = Table(title=title, box=None, padding=(0, 1, 0, 0))
    for heading in ("where", "in", "kind", "asks", "on 12", "status"):
        table.add_column(heading, overflow="fold")
    for gate in report.audit.gates:
        path = gate.path.rpartition("srt/")[2]
        words = (f"{path}:{gate.line}", gate.symbol, str(gate.kind), gate.condition, gate.effect)
        table.add_row(*words, report.status(gate))
    for file in report.audit.unread:
        table.add_row(file.path, "", "not read", file.why, "", "")
    return table


def as_markdown(report: Report) -> str:
    """The report as the body of a tracking issue: a task a gate, grouped by status."""
    groups: dict[str, list[Gate]] = {}
    for gate in report.audit.gates:
        groups.setdefault(report.status(gate), []).append(gate)
    lines = [
        (
            f"Decisions on compute capability in `{report.commit[:12]}` that leave 12 out, or "
            f"take it in with 10: {len(report.audit.gates)} in {report.audit.files} files."
        )
    ]
    for status in sorted(groups):
        lines += ["", f"### {status} ({len(groups[status])})", ""]
        for gate in groups[status]:
            done = "x" if status.startswith((Status.COVERED, Status.ACCEPTED)) else " "
            came = report.introduced.get((gate.path, gate.line))
            since = f" (since {came.commit[:12]})" if came else ""
            lines.append(
                f"- [{done}] `{_place(gate)}` {gate.kind}: `{gate.condition}` "
                f"in `{gate.symbol or 'module'}`; on 12: {_quiet(gate.effect)}{since}"
            )
    lines += [f"- [ ] `{file.path}` was not read: {file.why}" for file in report.audit.unread]
    return "\n".join(lines) + "\n"


def _quiet(text: str) -> str:
    """Text in which no character is Markdown's."""
    return "".join(f"\\{letter}" if letter in "\\`*_<>[]#|@" else letter for letter in text)


def as_sarif(report: Report) -> dict[str, object]:
    """The report as SARIF 2.1.0 (OASIS), for code scanning and editors."""
    kinds = list(MEANING)
    rules = [
        {"id": str(kind), "shortDescription": {"text": meaning}}
        for kind, meaning in MEANING.items()
    ]
    driver = {
        "name": "sglang-sm120-audit",
        "informationUri": "https://github.com/sgl-project/sglang",
        "rules": rules,
    }
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "results": [_result(report, gate, kinds) for gate in report.audit.gates],
        "invocations": [
            {
                "executionSuccessful": True,
                "toolExecutionNotifications": [
                    {
                        "level": "warning",
                        "message": {"text": f"not read: {file.why}"},
                        "locations": [_location(file.path, 1)],
                    }
                    for file in report.audit.unread
                ],
            }
        ],
    }
    return {"$schema": SARIF_SCHEMA, "version": "2.1.0", "runs": [run]}


def _result(report: Report, gate: Gate, kinds: Sequence[Kind]) -> dict[str, object]:
    status = report.status(gate)
    settled = status.startswith((Status.COVERED, Status.ACCEPTED))
    on_path = report.review.ratchet.is_on_all_reduce_path(gate.key)
    level = "note" if settled or gate.takes_in else "error" if on_path else "warning"
    result: dict[str, object] = {
        "ruleId": str(gate.kind),
        "ruleIndex": kinds.index(gate.kind),
        "level": level,
        "message": {"text": f"{MEANING[gate.kind]}: {gate.condition}; on 12: {gate.effect}"},
        "locations": [_location(gate.path, gate.line)],
        "partialFingerprints": {"gate/v1": ":".join(map(str, gate.key))},
        "properties": {"status": status, "symbol": gate.symbol},
    }
    if settled:
        result["suppressions"] = [{"kind": "external", "justification": status}]
    return result


def _location(path: str, line: int) -> dict[str, object]:
    return {
        "physicalLocation": {
            "artifactLocation": {"uri": path, "uriBaseId": "%SRCROOT%"},
            "region": {"startLine": line},
        }
    }
