"""Put wheels on the package index in index/, for any web server or object store."""

import argparse
from pathlib import Path

from rich.console import Group
from rich.table import Table
from rich.text import Text

from scripts import publish
from scripts.errors import UsageError
from scripts.publish import Published
from scripts.report import Outcome
from scripts.workspace import Workspace


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("wheels", nargs="*", type=Path, help="wheels (default: those of dist/)")
    parser.add_argument(
        "--index", type=Path, metavar="FOLDER", help="the index's folder (default: ROOT/index)"
    )
    parser.add_argument(
        "--url", help="the address of its simple/ as users reach it; remembered in the index"
    )


def run(arguments: argparse.Namespace, workspace: Workspace) -> Outcome:
    wheels = arguments.wheels or sorted(workspace.dist.glob("*.whl"))
    if not wheels:
        raise UsageError(f"no wheel in {workspace.dist}", then="nox -s build_wheel")
    folder = arguments.index or workspace.index
    result = publish.publish(wheels, folder.resolve(), workspace, url=arguments.url)
    return Outcome(data=_data(result), shown=_shown(result))


def _data(result: Published) -> dict[str, object]:
    return {
        "index": str(result.folder),
        "url": result.url,
        "new": [{"name": each.name, "sha256": each.sha256} for each in result.new],
        "same": list(result.same),
    }


def _shown(result: Published) -> Group:
    table = Table("wheel", "sha256", "", box=None, padding=(0, 2, 0, 0))
    for each in result.new:
        table.add_row(each.name, each.sha256, "new")
    for name in result.same:
        table.add_row(name, "", "as before")
    return Group(table, Text(f"index {result.folder}, for people: {result.folder}/index.html"))
