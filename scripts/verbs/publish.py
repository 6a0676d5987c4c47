"""Put wheels on the package index in index/, or (--to) on the repository of that name."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from rich.console import Group
from rich.table import Column, Table
from rich.text import Text

from scripts import (
    build,
    facts,
    lock,
    notes,
    publish,
    repository,
    revision,
    series,
    upload,
)
from scripts.errors import UsageError, VerifyError, raise_all
from scripts.facts import Facts
from scripts.report import Outcome
from scripts.shelf import LOOPBACK
from scripts.upload import Uploaded
from scripts.workspace import Workspace


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "wheels",
        nargs="*",
        type=Path,
        help="wheels (default: those of dist/ with the lock's version)",
    )
    parser.add_argument(
        "--index", type=Path, metavar="FOLDER", help="the index's folder (default: ROOT/index)"
    )
    parser.add_argument(
        "--url", help="the address of its simple/ as users reach it; remembered in the index"
    )
    parser.add_argument(
        "--to", metavar="NAME", help="upload to this repository of ~/.pypirc instead, with twine"
    )
    parser.add_argument(
        "--simple", metavar="URL", help="where pip finds that repository (default: looked for)"
    )
    parser.add_argument(
        "--patience",
        type=float,
        metavar="SECONDS",
        default=upload.PATIENCE,
        help=f"how long the upload of one wheel may take (default: {upload.PATIENCE})",
    )


def run(arguments: argparse.Namespace, workspace: Workspace) -> Outcome:
    wheels = arguments.wheels or build.in_dist(lock.load(workspace.lock), workspace)
    findings = [f"there is no file {path}" for path in wheels if not path.is_file()]
    raise_all(UsageError, findings, then="nox -s publish, for those of dist/")
    _refuse_other_series(wheels, workspace)
    if arguments.to:
        to = repository.named(arguments.to, workspace, simple=arguments.simple)
        return _uploaded(upload.upload(wheels, to, workspace, patience=arguments.patience))
    folder = arguments.index or workspace.index
    result = publish.publish(wheels, folder.resolve(), workspace, url=arguments.url)
    front = Text(f"index {result.folder}, for people: {result.folder}/index.html")
    if result.url == LOOPBACK:
        workspace.say(
            f"the lines to install it name {LOOPBACK}, where nox -s serve stands; "
            "--url https://HOST/simple/ says where users find it, once"
        )
    return Outcome(
        data={"index": str(result.folder), "url": result.url} | _data(result.new, result.same),
        shown=Group(_table(result.new, result.same), front),
    )


def _refuse_other_series(wheels: Sequence[Path], workspace: Workspace) -> None:
    """Raise VerifyError for wheels of upstream.lock's version that are not of its series.

    Outside a checkout, where there is no lock, wheels that are named are taken as they are.
    """
    if not workspace.lock.exists():
        return
    pinned, known = lock.load(workspace.lock), series.load(workspace.patchset)
    findings = []
    for path in wheels:
        bill = facts.read(path).bill
        ours = bill.version == pinned.distribution_version
        if ours and not revision.is_of(pinned, known, notes.of(bill)):
            findings.append(f"{path.name} was made from another commit or series than there is now")
    raise_all(VerifyError, findings, then="nox -s build_wheel -- --all, and publish those")


def _data(new: Sequence[Facts], same: Sequence[str]) -> dict[str, object]:
    return {
        "new": [{"name": each.name, "sha256": each.sha256} for each in new],
        "same": list(same),
    }


def _uploaded(result: Uploaded) -> Outcome:
    where = result.repository
    return Outcome(
        data={"repository": where.name, "url": where.upload} | _data(result.new, result.same),
        shown=Group(_table(result.new, result.same), Text(f"{where.name}: {where.upload}")),
    )


def _table(new: Sequence[Facts], same: Sequence[str]) -> Table:
    columns = (Column("wheel", overflow="fold"), Column("sha256", overflow="fold"), "")
    table = Table(*columns, box=None, padding=(0, 2, 0, 0))
    for each in new:
        table.add_row(each.name, each.sha256, "new")
    for name in same:
        table.add_row(name, "", "as before")
    return table
