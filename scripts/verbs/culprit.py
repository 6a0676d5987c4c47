"""Find the first upstream commit after which a patch no longer applies, or no longer does its job.

By bisection along upstream's first-parent commits that touch the patch's files, from the pin to
another revision; nothing is checked out. Release wheels have no history: by that route it is the
first release.
"""

import argparse
from collections.abc import Sequence

from packaging.version import Version
from rich.console import Group
from rich.text import Text

from scripts import build, culprit, landing, matrix, rebase, source, span, target
from scripts.build import Job
from scripts.culprit import Culprit
from scripts.errors import UsageError
from scripts.patched import Patched
from scripts.report import Outcome
from scripts.source import Base, Route
from scripts.span import Span, Step
from scripts.verbs.apply import add_route
from scripts.workspace import Workspace


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("patch", help="its number: 0004")
    parser.add_argument("--to", default="main", help="a tag, branch or commit (default: main)")
    add_route(parser)


def run(arguments: argparse.Namespace, workspace: Workspace) -> Outcome:
    job = build.job(workspace, arguments.route)
    names = {patch.number: patch.name for patch in job.series.patches}
    if arguments.patch not in names:
        raise UsageError(
            f"the series has no patch {arguments.patch}; it has {', '.join(names)}",
            then="nox -s status",
        )
    old = job.patched()
    if old.base.route is Route.WHEEL:
        return _by_release(old, arguments, workspace)
    new = _base(job, arguments.to)
    way = span.between(old.base, new, workspace)
    with workspace.progress(f"bisect {len(way.steps())} commits for {arguments.patch}"):
        found = culprit.find(old, way, arguments.patch, workspace)
    if found is None:
        return _holds(old, way, arguments, workspace)
    return Outcome(
        data={"patch": names[arguments.patch], "to": arguments.to} | describe(found),
        shown=Group(
            Text(f"{names[arguments.patch]}, on the way to {arguments.to}:"), *shown(found)
        ),
        exit_code=1,
    )


def _by_release(old: Patched, arguments: argparse.Namespace, workspace: Workspace) -> Outcome:
    """The first release on the way on which the patch does not hold; each is looked at."""
    workspace.say("release wheels have no history: releases are looked at, and not commits")
    pinned = old.base.lock
    known = matrix.published(pinned, workspace)
    here, there = Version(pinned.version), _release(arguments.to, known)
    way = [one for one in known if min(here, there) <= one <= max(here, there)]
    way = way if there > here else way[::-1]
    for version in way:
        at = target.of_index(str(version), pinned, workspace, wheels=1)
        new = source.obtain(at, workspace, Route.WHEEL)
        cells = {cell.patch: cell for cell in matrix.column(old, new, workspace).cells}
        cell = cells[arguments.patch]
        if not cell.holds:
            details = [f"  {detail}" for detail in cell.details]
            return Outcome(
                data={
                    "patch": arguments.patch,
                    "release": str(version),
                    "fate": cell.fate,
                    "details": list(cell.details),
                },
                shown=Text("\n".join([f"v{version}: {cell.fate}", *details])),
                exit_code=1,
            )
    line = f"{arguments.patch} holds on each of {', '.join(map(str, way))}"
    return Outcome(data={"patch": arguments.patch, "release": None}, shown=Text(line))


def _release(wanted: str, known: Sequence[Version]) -> Version:
    if wanted == matrix.BRANCH and known:
        return known[-1]
    named = target.release(wanted)
    if named is None or Version(named) not in known:
        raise UsageError(
            f"{wanted} is no release of the package index, and git is not asked",
            then="give one of: " + ", ".join(f"v{one}" for one in known[-8:]),
        )
    return Version(named)


def _base(job: Job, wanted: str) -> Base:
    new = target.find(wanted, job.lock, job.workspace, wheels=False)
    return source.obtain(new, job.workspace, Route.GIT)


def _holds(old: Patched, way: Span, arguments: argparse.Namespace, workspace: Workspace) -> Outcome:
    rebased = rebase.rebase(old, way.new, workspace)
    step = landing.reverted(rebased, way, workspace).get(arguments.patch)
    line = f"{arguments.patch} applies at {arguments.to}, and does its job there"
    if step is not None:
        line += f"; upstream had it after {words(step)}, and has it no more"
    return Outcome(
        data={"patch": arguments.patch, "to": arguments.to, "culprit": None}
        | {"reverted": step and describe_step(step)},
        shown=Text(line),
    )


def describe(found: Culprit) -> dict[str, object]:
    """A culprit for machines."""
    return {
        "culprit": describe_step(found.step),
        "fate": str(found.carried.fate),
        "conflicts": [one.path for one in found.carried.conflicts],
        "findings": list(found.findings),
        "probes": found.probes,
        "among": found.among,
    }


def describe_step(step: Step) -> dict[str, object]:
    """An upstream commit for machines."""
    return {
        "commit": step.commit,
        "title": step.title,
        "pull_request": step.pull,
        "time": step.when.isoformat(),
        "undone": step.undone,
    }


def words(step: Step) -> str:
    """An upstream commit for people; on the way back it is the one that is missing."""
    back = "without " if step.undone else ""
    return f"{back}{step.commit[:12]} {step.title}"


def shown(found: Culprit) -> list[Text]:
    """A culprit for people."""
    lines = [f"{words(found.step)}  [{found.step.when:%Y-%m-%d}]", f"  {found.carried.fate}"]
    lines += [f"  {one.path}: {one.kind}" for one in found.carried.conflicts]
    lines += [f"  post-condition: {finding}" for finding in found.findings]
    lines.append(f"  found by bisection: {found.probes} of {found.among} commits tried")
    return [Text(line) for line in lines]
