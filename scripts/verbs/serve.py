"""Serve the index in index/ over HTTP, on loopback."""

import argparse
from pathlib import Path

from rich.text import Text

from scripts import serve
from scripts.report import Outcome
from scripts.workspace import Workspace


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--index", type=Path, metavar="FOLDER", help="the index's folder (default: ROOT/index)"
    )
    parser.add_argument("--port", type=int, default=8000, help="0 takes a free one (default: 8000)")
    parser.add_argument(
        "--host", default=serve.LOOPBACK, help="another address of this machine, for a team"
    )


def run(arguments: argparse.Namespace, workspace: Workspace) -> Outcome:
    folder = (arguments.index or workspace.index).resolve()
    serve.serve(folder, workspace, host=arguments.host, port=arguments.port)
    return Outcome(data={"index": str(folder)}, shown=Text("ended"))
