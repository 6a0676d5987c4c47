"""Prove that built wheels are what they say: RECORD, version, pins, patches, and nothing else."""

import argparse
from pathlib import Path

from packaging.utils import InvalidWheelFilename, parse_wheel_filename
from rich.table import Table

from scripts import build, fetch, release, verify
from scripts.build import Job
from scripts.errors import UsageError, VerifyError, raise_all
from scripts.report import Outcome
from scripts.source import Route
from scripts.verify import Verified
from scripts.workspace import Workspace


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("wheels", nargs="*", type=Path, help="wheels (default: those of dist/)")


def run(arguments: argparse.Namespace, workspace: Workspace) -> Outcome:
    paths = arguments.wheels or sorted(workspace.dist.glob("*.whl"))
    if not paths:
        raise UsageError(f"no wheel in {workspace.dist}", then="nox -s build_wheel")
    job = build.job(workspace, Route.AUTO)
    proved: list[Verified] = []
    findings: list[str] = []
    with workspace.progress("verify", len(paths)) as advance:
        for number, path in enumerate(paths, 1):
            try:
                proved.append(_verify(path, job))
            except VerifyError as error:
                findings.append(str(error.args[0]))
            advance(number)
    raise_all(VerifyError, findings, then="do not publish; build again (nox -s build_wheel)")
    table = Table("wheel", "members", "patched", box=None, padding=(0, 2, 0, 0))
    for wheel in proved:
        table.add_row(wheel.name, str(wheel.members), str(len(wheel.patched)))
    return Outcome(
        data={
            "wheels": [
                {"name": w.name, "version": w.version, "members": w.members, "patched": w.patched}
                for w in proved
            ]
        },
        shown=table,
    )


def _verify(path: Path, job: Job) -> Verified:
    tag = _tag(path)
    if verify.built_from_source(path):
        return verify.verify_source_build(path, job.patched())
    base = release.for_tag(job.lock, tag)
    file = fetch.wheel(base, job.workspace)
    return verify.verify(path, job.lock, job.series, base, file)


def _tag(path: Path) -> str:
    try:
        parse_wheel_filename(path.name)
    except InvalidWheelFilename as error:
        raise UsageError(f"{path} is no wheel: {error}", then="nox -s verify") from error
    return path.name.removesuffix(".whl").split("-", 2)[2]
