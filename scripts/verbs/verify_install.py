"""Install a release from the index with pip and with uv, in clean environments, and prove it."""

import argparse
from pathlib import Path

from rich.table import Table

from scripts import lock, trial
from scripts.report import Outcome
from scripts.shelf import Shelf
from scripts.workspace import Workspace


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("version", nargs="?", help="the release (default: upstream.lock's)")
    parser.add_argument(
        "--index", type=Path, metavar="FOLDER", help="the index's folder (default: ROOT/index)"
    )
    parser.add_argument(
        "--url", help="install from this address of its simple/ (default: served meanwhile)"
    )


def run(arguments: argparse.Namespace, workspace: Workspace) -> Outcome:
    pinned = lock.load(workspace.lock)
    folder = (arguments.index or workspace.index).resolve()
    version = arguments.version or pinned.distribution_version
    shelf = Shelf(folder=folder, project=pinned.name)
    trials = trial.try_out(shelf, version, workspace, url=arguments.url)
    table = Table("installer", "version", "files", "patched", box=None, padding=(0, 2, 0, 0))
    for each in trials:
        proved = each.installed
        table.add_row(each.installer, proved.version, str(proved.files), str(len(proved.patched)))
    return Outcome(
        data={
            "trials": [
                {
                    "installer": each.installer,
                    "command": each.command,
                    "version": each.installed.version,
                    "files": each.installed.files,
                    "patched": list(each.installed.patched),
                }
                for each in trials
            ]
        },
        shown=table,
    )
