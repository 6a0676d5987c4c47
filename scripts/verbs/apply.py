"""Apply the series into a work tree at build/sglang, one commit a patch."""

import argparse

from rich.table import Table

from scripts import lock, patched, pending, series, source, worktree
from scripts.patched import Patched
from scripts.report import Outcome
from scripts.source import Route
from scripts.workspace import Workspace


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_route(parser)
    parser.add_argument(
        "--force", action="store_true", help="set a build/sglang with unsaved work aside"
    )


def add_route(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--route",
        type=Route,
        choices=list(Route),
        default=Route.AUTO,
        help="where the source comes from (auto: git, or the wheel where git is out of reach)",
    )


def run(arguments: argparse.Namespace, workspace: Workspace) -> Outcome:
    pending.refuse(workspace)
    order = series.load(workspace.patchset)
    base = source.obtain(lock.load(workspace.lock), workspace, arguments.route)
    result = patched.apply(base, order, workspace)
    fresh = worktree.check_out(result, workspace, force=arguments.force)
    return Outcome(
        data=describe(result) | {"tree": str(workspace.tree), "fresh": fresh},
        shown=patches_table(result, title=f"{workspace.tree} at {result.commit[:12]}"),
    )


def describe(result: Patched) -> dict[str, object]:
    """The route, base and patches of `result` for machines."""
    return {
        "route": str(result.base.route),
        "why": result.base.why,
        "base": result.base.commit,
        "commit": result.commit,
        "patches": [
            {
                "name": patch.name,
                "title": patch.title,
                "commit": commit,
                "files": [change.path for change in patch.changes],
            }
            for patch, commit in zip(result.series.patches, result.commits, strict=True)
        ],
    }


def patches_table(result: Patched, *, title: str) -> Table:
    """The patches of `result` for people: number, title, files."""
    caption = f"route {result.base.route} ({result.base.why}), base {result.base.commit[:12]}"
    table = Table("patch", "title", "files", title=title, caption=caption)
    for patch in result.series.patches:
        table.add_row(patch.number, patch.title, str(len(patch.changes)))
    return table
