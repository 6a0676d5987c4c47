"""Mark a release of the index as not to be used, or take that back."""

import argparse
from pathlib import Path

from rich.text import Text

from scripts import lock, publish
from scripts.errors import UsageError
from scripts.report import Outcome
from scripts.workspace import Workspace


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("version", help="the release, such as 0.5.18+sm120.1")
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--reason", help="one line that installers show")
    what.add_argument("--undo", action="store_true", help="take the yank back")
    parser.add_argument(
        "--index", type=Path, metavar="FOLDER", help="the index's folder (default: ROOT/index)"
    )


def run(arguments: argparse.Namespace, workspace: Workspace) -> Outcome:
    project = lock.load(workspace.lock).name
    folder = (arguments.index or workspace.index).resolve()
    if not folder.is_dir():
        raise UsageError(f"there is no index in {folder}", then="nox -s publish")
    reason = None if arguments.undo else arguments.reason
    catalog = publish.yank(arguments.version, folder, project, reason)
    names = [file.filename for file in catalog.of(arguments.version)]
    state = f"yanked: {reason}" if reason else "no longer yanked"
    return Outcome(
        data={"version": arguments.version, "yanked": reason, "files": names},
        shown=Text(f"{arguments.version} is {state} ({len(names)} wheels)"),
    )
