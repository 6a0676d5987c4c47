"""Take the commits of build/sglang back into patchset/.

A commit that was a patch keeps its file, reworded or amended; a new one becomes a new patch; what
did not change keeps its bytes.
"""

import argparse

from rich.table import Table

from scripts import lock, pending, refresh, series, source
from scripts.refresh import Refreshed
from scripts.report import Outcome
from scripts.verbs.apply import add_route, describe
from scripts.workspace import Workspace


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_route(parser)


def run(arguments: argparse.Namespace, workspace: Workspace) -> Outcome:
    pending.refuse(workspace)
    base = source.obtain(lock.load(workspace.lock), workspace, arguments.route)
    done = refresh.refresh(base, series.load(workspace.patchset), workspace)
    return Outcome(data=describe(done.patched) | difference(done), shown=_table(done))


def difference(done: Refreshed) -> dict[str, object]:
    """How the series differs from the one before, for machines."""
    return {
        "new": list(done.new),
        "changed": list(done.changed),
        "gone": list(done.gone),
        "reordered": done.reordered,
    }


def words(done: Refreshed, name: str) -> str:
    """What happened to the patch of a file name."""
    return "new" if name in done.new else "changed" if name in done.changed else ""


def _table(done: Refreshed) -> Table:
    caption = "in another order" if done.reordered else None
    table = Table("patch", "title", "", title="patchset/", caption=caption)
    for patch in done.patched.series.patches:
        table.add_row(patch.number, patch.title, words(done, patch.name))
    for name in done.gone:
        table.add_row(name[:4], name, "taken out")
    return table
