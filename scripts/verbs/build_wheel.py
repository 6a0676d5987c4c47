"""Build the patched wheel into dist/, and verify it."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from rich.console import Group
from rich.table import Column, Table
from rich.text import Text

from scripts import build, files, release, source_build
from scripts.build import Built, Job
from scripts.errors import PublishError
from scripts.lock import ReleaseWheel
from scripts.report import Outcome
from scripts.shelf import Shelf
from scripts.verbs.apply import add_route, describe
from scripts.workspace import Workspace


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_route(parser)
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--all", action="store_true", help="a wheel for every pinned one")
    which.add_argument("--tag", help="a wheel with this tag, such as cp312-cp312-manylinux_...")
    which.add_argument(
        "--from-source", action="store_true", help="build with `python -m build` instead"
    )


def run(arguments: argparse.Namespace, workspace: Workspace) -> Outcome:
    job = build.job(workspace, arguments.route)
    if arguments.from_source:
        built: Sequence[Built] = (_from_source(job),)
    else:
        built = build.wheels(job, _releases(arguments, job), describe)
    advice = _advice(job, built)
    if advice:
        workspace.say(advice)
    return Outcome(data=_data(job, built) | {"advice": advice}, shown=_shown(job, built))


def _advice(job: Job, built: Sequence[Built]) -> str | None:
    """Why what was built cannot be published; a build needs no index, so it was made."""
    try:
        shelf = Shelf(folder=job.workspace.index, project=job.lock.name)
        return shelf.advice(
            job.lock, job.series, {wheel.path.name: wheel.sha256 for wheel in built}
        )
    except PublishError as error:
        return str(error)


def _releases(arguments: argparse.Namespace, job: Job) -> Sequence[ReleaseWheel]:
    if arguments.all and job.lock.wheels:
        return job.lock.wheels
    if arguments.tag:
        return (release.for_tag(job.lock, arguments.tag),)
    return (release.for_interpreter(job.lock),)


def _from_source(job: Job) -> Built:
    result = job.patched()
    with job.clock.step("build"):
        path = source_build.build(result, job.workspace)
    return Built(
        path=path,
        size=path.stat().st_size,
        sha256=files.sha256(path),
        facts=describe(result),
        reused=False,
    )


def _data(job: Job, built: Sequence[Built]) -> dict[str, object]:
    return dict(built[0].facts) | {
        "version": job.lock.distribution_version,
        "seconds": {step: round(spent, 3) for step, spent in job.clock.seconds.items()},
        "wheels": [
            {
                "path": str(wheel.path),
                "size": wheel.size,
                "sha256": wheel.sha256,
                "reused": wheel.reused,
            }
            for wheel in built
        ],
    }


def _shown(job: Job, built: Sequence[Built]) -> Group:
    facts = built[0].facts
    patches = Table("patch", "title", "files", box=None, padding=(0, 2, 0, 0))
    for patch in job.series.patches:
        patches.add_row(patch.number, patch.title, str(len(patch.changes)))
    made = Table(
        *(Column("wheel", overflow="fold"), "MB", Column("sha256", overflow="fold"), ""),
        box=None,
        padding=(0, 2, 0, 0),
    )
    for wheel in built:
        made.add_row(
            _relative(wheel.path, job.workspace.root),
            f"{wheel.size / 1e6:.1f}",
            wheel.sha256,
            "as before" if wheel.reused else "new",
        )
    spent = ", ".join(f"{step} {seconds:.2f} s" for step, seconds in job.clock.seconds.items())
    return Group(
        Text(f"{job.lock.name} {job.lock.distribution_version}"),
        Text(f"route {facts['route']}: {facts['why']}", overflow="fold"),
        Text(f"base commit {facts['base']}"),
        Text(f"patched commit {facts['commit']}"),
        patches,
        made,
        Text(spent),
    )


def _relative(path: Path, root: Path) -> str:
    return str(path.relative_to(root) if path.is_relative_to(root) else path)
