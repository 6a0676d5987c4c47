"""Show the pin, the series, what is under way, and where build/sglang differs from patchset/."""

import argparse
from collections.abc import Sequence

from rich.console import Group
from rich.table import Column, Table
from rich.text import Text

from scripts import (
    lock,
    omission,
    patched,
    pending,
    pin,
    postconditions,
    refresh,
    series,
    source,
    worktree,
)
from scripts.errors import Error
from scripts.omission import Omission
from scripts.patched import Patched
from scripts.report import Outcome
from scripts.verbs.apply import add_route
from scripts.workspace import Workspace


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_route(parser)
    parser.add_argument("--remote", action="store_true", help="ask the git host about the pin too")


def run(arguments: argparse.Namespace, workspace: Workspace) -> Outcome:
    pinned = lock.load(workspace.lock)
    base = source.obtain(pinned, workspace, arguments.route)
    result = patched.apply(base, series.load(workspace.patchset), workspace)
    left_out = [
        omission.without(result, number, workspace) for number in range(len(result.commits))
    ]
    lines = {
        "pin": f"{pinned.name} {pinned.requested_revision}, commit {pinned.commit}, "
        f"distributed as {pinned.distribution_version}",
        "remote": pin.check(pinned, workspace) if arguments.remote else "not asked (--remote)",
        "under way": _under_way(workspace),
        "build/sglang": _drift(result, workspace),
    }
    shown = [
        Text(f"{key}: {line}", no_wrap=True, overflow="ignore")
        for key, line in lines.items()
        if line
    ]
    return Outcome(
        data={key.replace(" ", "_").replace("/", "_"): line for key, line in lines.items()}
        | {"patches": [_row(result, one) for one in left_out]},
        shown=Group(*shown, _table(result, left_out)),
    )


def _under_way(workspace: Workspace) -> str | None:
    if pending.load(workspace) is None:
        return None
    try:
        pending.refuse(workspace)
    except Error as error:
        return str(error)
    return None


def _drift(result: Patched, workspace: Workspace) -> str:
    """How build/sglang differs from patchset/, in words."""
    if not worktree.is_there(workspace.tree):
        return "not there (nox -s apply)"
    if pending.load(workspace) is not None:
        return "a rebase that waits for a person"
    known = result.series
    try:
        fresh = refresh.series(result.base, known, workspace)
        seen = refresh.difference(known, patched.apply(result.base, fresh, workspace))
    except Error as error:
        return str(error)
    parts = [
        f"{what}: {', '.join(names)}"
        for what, names in (("new", seen.new), ("changed", seen.changed), ("gone", seen.gone))
        if names
    ]
    parts += ["in another order"] if seen.reordered else []
    if not parts:
        return "as patchset/ has it"
    return f"differs from patchset/ ({'; '.join(parts)}); nox -s refresh takes it over"


def _row(result: Patched, left_out: Omission) -> dict[str, object]:
    patch = left_out.patch
    return {
        "name": patch.name,
        "title": patch.title,
        "upstream_status": patch.trailers("Upstream-Status")[0],
        "bugs": list(patch.trailers("Bug")),
        "drop_when": list(patch.trailers("Drop-When")),
        "postcondition": postconditions.of(patch) is not None,
        "droppable_alone": left_out.others,
        "why": left_out.why,
    }


def _table(result: Patched, left_out: Sequence[Omission]) -> Table:
    links = Column("upstream", overflow="fold")
    table = Table("patch", "title", links, "drop when", "can be dropped", title="series")
    for one in left_out:
        patch = one.patch
        upstream = "\n".join([patch.trailers("Upstream-Status")[0], *patch.trailers("Bug")])
        table.add_row(
            patch.number,
            patch.title,
            upstream,
            "\n".join(patch.trailers("Drop-When")),
            "alone" if one.others else f"not alone: {one.why}",
        )
    return table
