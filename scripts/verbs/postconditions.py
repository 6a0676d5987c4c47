"""Prove that the patched tree is what each patch of the series is for."""

import argparse

from rich.text import Text

from scripts import build, postconditions, series
from scripts.report import Outcome
from scripts.verbs.apply import add_route
from scripts.workspace import Workspace


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_route(parser)
    parser.add_argument(
        "--lint", action="store_true", help="only look that every patch has a post-condition"
    )


def run(arguments: argparse.Namespace, workspace: Workspace) -> Outcome:
    if arguments.lint:
        order = series.load(workspace.patchset)
        postconditions.lint(order)
        patches = len(order.patches)
        line = f"{patches} patches, each with a post-condition"
    else:
        patches = postconditions.prove(build.job(workspace, arguments.route).patched())
        line = f"{patches} patches do what they are for"
    return Outcome(data={"patches": patches, "proved": not arguments.lint}, shown=Text(line))
