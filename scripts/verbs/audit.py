"""Find upstream's decisions on compute capability that leave 12 out, or take it in unasked.

Compares them with patchset/gates.toml. Exits with 21 where one on the all-reduce paths waits
for a decision, or a record is false.
"""

import argparse
import json
from collections.abc import Mapping
from pathlib import Path

from rich.console import Group
from rich.text import Text

from scripts import audit, files, gate_report, history, lock, patched, ratchet, series, source
from scripts.audit import Audit
from scripts.errors import GateError, UsageError
from scripts.gate import Key
from scripts.gate_report import Report
from scripts.git import CommitId, Repository
from scripts.ratchet import Ratchet, Review
from scripts.report import Outcome
from scripts.verbs.apply import add_route
from scripts.workspace import Workspace


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_route(parser)
    parser.add_argument(
        "--repository",
        type=Path,
        metavar="PATH",
        help="a clone of upstream: the commits that gates come from, and --revision",
    )
    parser.add_argument("--revision", help="audit this revision of --repository, not the pinned")
    parser.add_argument(
        "--under",
        action="append",
        metavar="FOLDER",
        help=f"look below this folder of the tree (default: {', '.join(audit.UNDER)})",
    )
    parser.add_argument("--sarif", type=Path, metavar="FILE", help="write SARIF 2.1.0 too")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write an issue's text too")
    parser.add_argument("--write", action="store_true", help="bring patchset/gates.toml up to date")


def run(arguments: argparse.Namespace, workspace: Workspace) -> Outcome:
    if arguments.revision and not arguments.repository:
        raise UsageError("--revision needs --repository", then="add --repository PATH")
    if arguments.revision and arguments.write:
        raise UsageError("patchset/gates.toml records the pinned tree: no --revision with --write")
    record = workspace.patchset / "gates.toml"
    known = Ratchet(all_reduce=(), known=())
    if record.exists() or not arguments.write:
        known = ratchet.load(record)
    clone = _clone(arguments, workspace)
    found, opened, commit = _audit(arguments, workspace, clone)
    seen = ratchet.review(found.gates, known, None if arguments.revision else opened)
    if arguments.write:
        known = ratchet.updated(seen, opened)
        with files.exclusive(workspace.build):
            ratchet.save(known, record)
        seen = ratchet.review(found.gates, known, opened)
    lines = [(gate.path, gate.line) for gate in found.gates]
    came = history.introduced(clone, commit, lines) if clone else {}
    report = Report(commit=commit, audit=found, review=seen, opened=opened, introduced=came)
    _write(arguments, report)
    return Outcome(
        data=gate_report.as_data(report),
        shown=Group(gate_report.as_table(report), *_remarks(seen)),
        exit_code=GateError.exit_code if seen.undecided or seen.false_claims else 0,
    )


def _clone(arguments: argparse.Namespace, workspace: Workspace) -> Repository | None:
    if arguments.repository is None:
        return None
    path = arguments.repository.resolve()
    git_dir = path / ".git" if (path / ".git").exists() else path
    return Repository(git_dir=git_dir, environment=workspace.environment)


def _audit(
    arguments: argparse.Namespace, workspace: Workspace, clone: Repository | None
) -> tuple[Audit, Mapping[Key, str], CommitId]:
    under = arguments.under or audit.UNDER
    if clone is not None and arguments.revision:
        commit = clone.resolve(arguments.revision)
        if commit is None:
            raise UsageError(f"{arguments.repository} has no revision {arguments.revision}")
        return audit.of_tree(clone, clone.tree(commit), under), {}, commit
    base = source.obtain(lock.load(workspace.lock), workspace, arguments.route)
    applied = patched.apply(base, series.load(workspace.patchset), workspace)
    with workspace.progress("audit"):
        found, opened = audit.of_series(applied, under)
    return found, opened, base.lock.commit  # the wheel route's commit is no one else's


def _write(arguments: argparse.Namespace, report: Report) -> None:
    if arguments.sarif:
        with files.replacing(arguments.sarif) as new:
            new.write_text(json.dumps(gate_report.as_sarif(report), indent=2) + "\n")
    if arguments.markdown:
        with files.replacing(arguments.markdown) as new:
            new.write_text(gate_report.as_markdown(report))


def _remarks(seen: Review) -> list[Text]:
    remarks = [f"new: {gate.path}:{gate.line} {gate.condition}" for gate in seen.new]
    remarks += [
        f"moved: {known.key[0]} {known.key[1]} is now {gate.path}:{gate.line} {gate.symbol}"
        for known, gate in seen.moved
    ]
    remarks += [
        f"vanished: gates.toml has {known.key[0]} {known.key[1]} ({known.key[3]}), "
        "which is no longer there"
        for known in seen.vanished
    ]
    remarks += [f"false: {claim}" for claim in seen.false_claims]
    remarks += [
        f"undecided: {gate.path}:{gate.line} is on the all-reduce paths; set its `status` in "
        "patchset/gates.toml (nox -s audit -- --write adds it)"
        for gate in seen.undecided
    ]
    return [Text(remark) for remark in remarks]
