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
    parser.add_argument(
        "--port", type=_port, default=8000, help="0 takes a free one (default: 8000)"
    )
    parser.add_argument(
        "--host", default=serve.LOOPBACK, help="another address of this machine, for a team"
    )


def _port(word: str) -> int:
    number = int(word)
    if not 0 <= number <= 65535:
        raise argparse.ArgumentTypeError(f"{number} is no port: 0 to 65535")
    return number


def run(arguments: argparse.Namespace, workspace: Workspace) -> Outcome:
    folder = (arguments.index or workspace.index).resolve()
    serve.serve(folder, workspace, host=arguments.host, port=arguments.port)
    return Outcome(data={"index": str(folder)}, shown=Text("ended"))
