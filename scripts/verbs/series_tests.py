"""Prove that each patch's own tests pass with the series, and fail without the patch."""

import argparse
import os

from rich.console import Group
from rich.table import Table
from rich.text import Text

from scripts import build, files, junit, proof, subject, suite
from scripts.case import Cases
from scripts.errors import FailedTests
from scripts.proof import Proof
from scripts.report import Outcome
from scripts.verbs.apply import add_route, describe
from scripts.workspace import Workspace


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_route(parser)
    add_jobs(parser)


def add_jobs(parser: argparse.ArgumentParser) -> None:
    cores = min(os.cpu_count() or 1, 8)
    parser.add_argument(
        "--jobs", type=_count, default=cores, help=f"processes at a time (default: {cores})"
    )


def _count(text: str) -> int:
    if int(text) < 1:
        raise ValueError(text)
    return int(text)


def run(arguments: argparse.Namespace, workspace: Workspace) -> Outcome:
    job = build.job(workspace, arguments.route)
    whole = job.patched()
    with subject.subjects(job) as tested:
        proofs = proof.prove(whole, tested, tested.patched(describe), jobs=arguments.jobs)
    report = workspace.build / "series-tests"
    for name in ("pristine", "whole", "without"):
        cases = suite.merged(getattr(each, name) for each in proofs)
        with files.replacing(report / f"{name}.xml") as new:
            new.write_bytes(junit.format(cases, name=f"series, {name}"))
    if not all(each.complete for each in proofs):
        raise KeyboardInterrupt
    findings = [finding for each in proofs for finding in each.findings]
    return Outcome(
        data={
            "route": str(whole.base.route),
            "proved": not findings,
            "findings": findings,
            "patches": [row(each) for each in proofs],
            "reports": str(report),
        },
        shown=shown(proofs),
        exit_code=FailedTests.exit_code if findings else 0,
    )


def _runs(each: Proof) -> tuple[Cases, Cases, Cases]:
    return each.pristine, each.whole, each.without


def row(each: Proof) -> dict[str, object]:
    """A proof for machines."""
    return {
        "name": each.patch.name,
        "tests": list(each.files),
        "pristine": each.pristine.tally,
        "whole": each.whole.tally,
        "without": each.without.tally,
        "others_kept": each.omission.others,
        "why": each.omission.why,
    }


def shown(proofs: tuple[Proof, ...]) -> Group:
    """The proofs for people."""
    findings = [finding for each in proofs for finding in each.findings]
    table = Table("patch", "pristine", "whole series", "without it", "left out how")
    for each in proofs:
        how = "alone" if each.omission.others else "with those after it"
        table.add_row(
            each.patch.number,
            *(cases.tally for cases in _runs(each)),
            f"{how}: {each.omission.why}",
        )
    said = [Text(f"- {finding}") for finding in findings] or [
        Text("each patch's tests fail without it, and pass with the series")
    ]
    return Group(table, *said)
