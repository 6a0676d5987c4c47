"""Prove that wheels are what they say: built ones, published ones, or what is installed of one.

Without --published or --installed: RECORD, version, pins, patches, and nothing else, against this
checkout's lock and series. Statements and attestations beside a wheel have to be true throughout.
"""

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from packaging.utils import InvalidWheelFilename, parse_wheel_filename
from rich.table import Column, Table
from rich.text import Text
from securesystemslib.signer import Key
from simple_repository.model import File

from scripts import attest, build, facts, fetch, installed, lock, release, trial, verify
from scripts.attest import Attested
from scripts.build import Job
from scripts.errors import UsageError, VerifyError, raise_all
from scripts.report import Outcome
from scripts.shelf import Shelf
from scripts.source import Route
from scripts.verify import Verified
from scripts.workspace import Workspace

_Wheel = TypeVar("_Wheel")
_Proof = TypeVar("_Proof")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "wheels",
        nargs="*",
        type=Path,
        help="wheels (default: those of dist/ with the lock's version)",
    )
    which = parser.add_mutually_exclusive_group()
    which.add_argument(
        "--published",
        action="store_true",
        help="wheels of any release with what stands beside them (default: all of the index)",
    )
    which.add_argument(
        "--installed",
        action="store_true",
        help="what an environment has, against its wheel (default: the index's of that version)",
    )
    parser.add_argument(
        "--trust",
        metavar="KEY",
        type=Path,
        action="append",
        default=[],
        help="a public key's file; each wheel must be signed by one of those",
    )
    parser.add_argument(
        "--python", type=Path, help="for --installed: its interpreter (default: the one of this)"
    )
    parser.add_argument(
        "--index", type=Path, metavar="FOLDER", help="the index's folder (default: ROOT/index)"
    )


def run(arguments: argparse.Namespace, workspace: Workspace) -> Outcome:
    keys = [attest.trusted(path) for path in arguments.trust]
    if arguments.installed:
        return _installed(arguments, workspace, keys)
    if arguments.python:
        raise UsageError("--python is for what is installed", then="verify --installed --python ..")
    if arguments.published:
        return _published(arguments, workspace, keys)
    return _built(arguments, workspace, keys)


def _built(arguments: argparse.Namespace, workspace: Workspace, keys: Sequence[Key]) -> Outcome:
    job = build.job(workspace, Route.AUTO)
    paths = arguments.wheels or build.in_dist(job.lock, workspace)

    def prove(path: Path) -> tuple[Verified, Attested]:
        proved = _verify(path, job)
        return proved, attest.beside(facts.read(path), keys, published=False)

    then = "do not publish; build again (nox -s build_wheel)"
    if keys:
        then = "verify --published --trust KEY, for the wheels of the index"
    found = _each(paths, prove, workspace, then)
    wheel = Column("wheel", overflow="fold")
    table = Table(wheel, "members", "patched", "signed by", box=None, padding=(0, 2, 0, 0))
    for proved, attested in found:
        table.add_row(
            proved.name, str(proved.members), str(len(proved.patched)), _shown(attested.keys)
        )
    rows = [
        {
            "name": proved.name,
            "version": proved.version,
            "members": proved.members,
            "patched": proved.patched,
            "keys": attested.keys,
        }
        for proved, attested in found
    ]
    return Outcome(data={"wheels": rows}, shown=table)


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


def _published(arguments: argparse.Namespace, workspace: Workspace, keys: Sequence[Key]) -> Outcome:
    shelf = _shelf(arguments, workspace)
    wheels: Sequence[Path | File] = arguments.wheels or shelf.catalog().files
    if not wheels:
        raise UsageError(f"there is no wheel in {shelf.folder}", then="nox -s publish")

    def prove(wheel: Path | File) -> Attested:
        path = wheel if isinstance(wheel, Path) else shelf.intact(wheel)
        return attest.beside(facts.read(path), keys, published=True)

    found = _each(wheels, prove, workspace, "do not install these; ask who published them")
    table = Table("wheel", "signed by", box=None, padding=(0, 2, 0, 0))
    for each in found:
        table.add_row(each.name, _shown(each.keys))
    rows = [{"name": each.name, "keys": each.keys} for each in found]
    return Outcome(data={"wheels": rows}, shown=table)


def _installed(arguments: argparse.Namespace, workspace: Workspace, keys: Sequence[Key]) -> Outcome:
    if len(arguments.wheels) > 1:
        raise UsageError("one wheel at most was installed", then="verify --installed WHEEL")
    python = (arguments.python or Path(sys.executable)).absolute()
    if arguments.wheels:
        (wheel,) = arguments.wheels
    else:
        shelf = _shelf(arguments, workspace)
        wheel = trial.published(shelf, shelf.catalog(), python, workspace)
    attested = attest.beside(facts.read(wheel), keys, published=not arguments.wheels)
    proved = installed.verify(python, wheel, workspace)
    return Outcome(
        data={
            "folder": str(proved.folder),
            "version": proved.version,
            "files": proved.files,
            "patched": list(proved.patched),
            "wheel": str(wheel),
            "keys": attested.keys,
        },
        shown=Text(
            f"{proved.folder} has {proved.version}: {proved.files} files are those of "
            f"{wheel.name}, {len(proved.patched)} of them patched"
            + (f"; signed by {_shown(attested.keys)}" if attested.keys else "")
        ),
    )


def _shelf(arguments: argparse.Namespace, workspace: Workspace) -> Shelf:
    folder = (arguments.index or workspace.index).resolve()
    if not arguments.wheels and not folder.is_dir():
        raise UsageError(f"there is no index in {folder}", then="name the wheel, or --index FOLDER")
    return Shelf(folder=folder, project=lock.load(workspace.lock).name)


def _each(
    wheels: Sequence[_Wheel], prove: Callable[[_Wheel], _Proof], workspace: Workspace, then: str
) -> list[_Proof]:
    """Prove every wheel, and raise VerifyError for all that are not what they say."""
    proved: list[_Proof] = []
    findings: list[str] = []
    with workspace.progress("verify", len(wheels)) as advance:
        for number, wheel in enumerate(wheels, 1):
            try:
                proved.append(prove(wheel))
            except VerifyError as error:
                findings.append(str(error.args[0]))
            advance(number)
    raise_all(VerifyError, findings, then=then)
    return proved


def _shown(keys: Sequence[str]) -> str:
    return ", ".join(key[:16] for key in keys)
