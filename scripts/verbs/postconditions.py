"""Prove that the patched tree is what each patch of the series is for."""

import argparse

from rich.text import Text

from scripts import build, postconditions
from scripts.report import Outcome
from scripts.verbs.apply import add_route
from scripts.workspace import Workspace


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_route(parser)
    parser.add_argument(
        "--lint", action="store_true", help="only look that every patch has a post-condition"
    )


def run(arguments: argparse.Namespace, workspace: Workspace) -> Outcome:
    job = build.job(workspace, arguments.route)
    postconditions.lint(job.series)
    patches = len(job.series.patches)
    line = f"{patches} patches, each with a post-condition"
    if not arguments.lint:
        job.patched()
        line = f"{patches} patches do what they are for"
    return Outcome(data={"patches": patches, "proved": not arguments.lint}, shown=Text(line))
