"""Prove what an environment has installed: its version, its files, and what is imported."""

import argparse
import sys
from pathlib import Path

from rich.text import Text

from scripts import installed, lock, trial
from scripts.errors import UsageError
from scripts.report import Outcome
from scripts.shelf import Shelf
from scripts.workspace import Workspace


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--python",
        type=Path,
        default=Path(sys.executable),
        help="the environment's interpreter (default: the one that runs this)",
    )
    parser.add_argument(
        "--wheel", type=Path, help="what was installed (default: the index's of that version)"
    )
    parser.add_argument(
        "--index", type=Path, metavar="FOLDER", help="the index's folder (default: ROOT/index)"
    )


def run(arguments: argparse.Namespace, workspace: Workspace) -> Outcome:
    python = arguments.python.absolute()
    wheel = arguments.wheel
    if wheel is None:
        project = lock.load(workspace.lock).name
        folder = (arguments.index or workspace.index).resolve()
        if not folder.is_dir():
            raise UsageError(f"there is no index in {folder}", then="--wheel FILE")
        shelf = Shelf(folder=folder, project=project)
        wheel = trial.published(shelf, shelf.catalog(), python, workspace)
    proved = installed.verify(python, wheel, workspace)
    return Outcome(
        data={
            "folder": str(proved.folder),
            "version": proved.version,
            "files": proved.files,
            "patched": list(proved.patched),
            "wheel": str(wheel),
        },
        shown=Text(
            f"{proved.folder} has {proved.version}: {proved.files} files are those of "
            f"{wheel.name}, {len(proved.patched)} of them patched"
        ),
    )
