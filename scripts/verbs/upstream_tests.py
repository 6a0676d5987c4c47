"""Run SGLang's own unit tests, pristine and patched, and say what the series changed."""

import argparse
import json
from pathlib import Path

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from scripts import build, files, ground, junit, proof, subject, upstream_tests
from scripts.attempt import Limits
from scripts.case import Case
from scripts.errors import FailedTests, UsageError
from scripts.proof import Proof
from scripts.report import Outcome
from scripts.selection import Name
from scripts.upstream_tests import Compared
from scripts.verbs import series_tests
from scripts.verbs.apply import add_route, describe
from scripts.verdict import Change
from scripts.workspace import Workspace

_SHOWN = 20  # changes with their tracebacks in the table; the report has all


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_route(parser)
    series_tests.add_jobs(parser)
    parser.add_argument("paths", nargs="*", help="test files, folders or ids (default: affected)")
    parser.add_argument(
        "--selection",
        type=Name,
        choices=list(Name),
        default=Name.AFFECTED,
        help="affected by the series (default), all of upstream's cpu suite, or all",
    )
    parser.add_argument("-k", dest="expression", default="", help="as pytest's -k")
    parser.add_argument("--timeout", type=float, default=180.0, help="seconds a test (180)")
    parser.add_argument(
        "--per-patch",
        action="store_true",
        help="name the patch that broke a test, and prove each patch by its own tests",
    )


def run(arguments: argparse.Namespace, workspace: Workspace) -> Outcome:
    if not arguments.timeout > 0:
        raise UsageError(f"--timeout {arguments.timeout:g}: a test needs more seconds than that")
    wanted = ground.Wanted(
        name=arguments.selection,
        paths=tuple(arguments.paths),
        expression=arguments.expression,
        limits=Limits(seconds=arguments.timeout),
    )
    job = build.job(workspace, arguments.route)
    whole = job.patched()
    folder = workspace.build / "upstream-tests"
    proofs: tuple[Proof, ...] = ()
    with subject.subjects(job) as tested:
        ours = tested.patched(describe)
        bench = upstream_tests.bench(wanted, whole, tested, ours, jobs=arguments.jobs)
        compared = upstream_tests.compare(bench, per_patch=arguments.per_patch)
        data = _data(compared) | {"route": str(whole.base.route)}
        if arguments.per_patch and compared.verdict.whole:
            _write(folder, compared, data | {"whole": False})
            proofs = proof.prove(whole, tested, ours, jobs=arguments.jobs)
            data |= _proved(compared, proofs)
    _write(folder, compared, data)
    if not data["whole"]:
        raise KeyboardInterrupt
    if not compared.pristine.by_id and not compared.patched.by_id:
        raise UsageError(
            f"the selection {wanted.title} has no test", then="give another -k, or paths"
        )
    return Outcome(
        data=data,
        shown=_shown(compared, proofs),
        exit_code=0 if data["good"] else FailedTests.exit_code,
    )


def _write(folder: Path, compared: Compared, data: dict[str, object]) -> None:
    contents = {
        "pristine.xml": junit.format(compared.pristine, name="pristine"),
        "patched.xml": junit.format(compared.patched, name="patched"),
        "report.json": json.dumps(data, indent=2, ensure_ascii=False).encode(errors="replace"),
    }
    for name, content in contents.items():
        with files.replacing(folder / name) as new:
            new.write_bytes(content)


def _data(compared: Compared) -> dict[str, object]:
    judged = compared.verdict
    return {
        "selection": compared.ground.wanted.title,
        "full": compared.ground.full,
        "whole": judged.whole,
        "good": judged.good,
        "files": sum(map(len, compared.ground.batches)) + len(compared.ground.brought),
        "pristine": compared.pristine.tally,
        "pristine_reused": compared.reused,
        "patched": compared.patched.tally,
        "same": judged.same,
        "regressions": [_change(change) for change in judged.regressions],
        "fixed": [_change(change) for change in judged.fixed],
        "flaky": [_change(change) for change in judged.flaky],
        "failing": [_change(change) for change in judged.failing],
        "reasons": dict(judged.reasons()),
        "missing_packages": judged.missing_packages(),
        "new": [_case(case) for case in judged.new],
        "notes": list(judged.notes),
        "proof": [],
        "findings": [],
    }


def _proved(compared: Compared, proofs: tuple[Proof, ...]) -> dict[str, object]:
    """What the proof of each patch adds to the data, or changes in it."""
    findings = [finding for each in proofs for finding in each.findings]
    return {
        "whole": compared.verdict.whole and all(each.complete for each in proofs),
        "good": compared.verdict.good and not findings,
        "proof": [series_tests.row(each) for each in proofs],
        "findings": findings,
    }


def _change(change: Change) -> dict[str, object]:
    before, after = upstream_tests.side_by_side(change)
    return {
        "id": change.id,
        "what": change.words,
        "patch": change.patch,
        "pristine": before,
        "patched": after,
    }


def _case(case: Case) -> dict[str, object]:
    return {"id": case.id, "ending": str(case.ending), "detail": case.detail}


def _shown(compared: Compared, proofs: tuple[Proof, ...]) -> Group:
    judged = compared.verdict
    table = Table("", "tests", box=None, padding=(0, 2, 0, 0))
    where = "as cached" if compared.reused else "run now"
    table.add_row("pristine", f"{compared.pristine.tally} ({where})")
    table.add_row("patched", compared.patched.tally)
    for name, found in (
        ("regressions", judged.regressions),
        ("fixed", judged.fixed),
        ("flaky", judged.flaky),
        ("failing on both", judged.failing),
        ("new", judged.new),
        ("new and failing", judged.new_failing),
    ):
        table.add_row(name, str(len(found)))
    lines: list[RenderableType] = [Text(f"SGLang's own tests: {compared.ground.wanted.title}")]
    if not compared.ground.full:
        lines.append(
            Text(
                "NOT A FULL RUN: the source came from the release wheel, which carries few of "
                "upstream's tests; these and the series' own were run. --route git runs all."
            )
        )
    lines.append(table)
    if not judged.passed:
        lines.append(Text("not one test passes with the series: nothing is proved"))
    lines += [Text(f"{count} fail on both: {reason}") for reason, count in judged.reasons()]
    lines += [Text(f"missing package: {name}") for name in judged.missing_packages()]
    lines += [Text(f"note: {note}") for note in judged.notes]
    lines += [Text(f"flaky: {change.id}: {change.words}") for change in judged.flaky]
    lines += [Text(f"fixed: {change.id}: {change.words}") for change in judged.fixed]
    lines += [_sides(change) for change in judged.regressions[:_SHOWN]]
    lines += [Text(f"new, {case.ending}: {case.id}: {case.reason}") for case in judged.new_failing]
    if proofs:
        lines.append(series_tests.shown(proofs))
    return Group(*lines)


def _sides(change: Change) -> Table:
    """Both tracebacks of a changed test, side by side."""
    before, after = upstream_tests.side_by_side(change)
    patch = f", since {change.patch}" if change.patch else ""
    table = Table(title=f"{change.id}: {change.words}{patch}", expand=True, title_justify="left")
    table.add_column("pristine", ratio=1)
    table.add_column("patched", ratio=1)
    table.add_row(Text(before), Text(after))
    return table
