"""Try every patch on upstream's last releases, and on its main branch where git can be reached.

Nothing is checked out or changed. Exit code 1 where a patch needs a person on any of them.
"""

import argparse
from dataclasses import replace
from pathlib import Path

from rich.table import Table
from rich.text import Text

from scripts import build, files, matrix, source
from scripts.errors import UsageError
from scripts.matrix import Cell, Matrix
from scripts.report import Outcome
from scripts.source import Route
from scripts.verbs.apply import add_route
from scripts.workspace import Workspace


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--last", type=_count, default=8, help="how many releases (default: 8)")
    parser.add_argument(
        "--html", type=Path, metavar="FILE", help="the page (default: build/matrix.html)"
    )
    add_route(parser)


def _count(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return number


def _page(wanted: Path | None, workspace: Workspace) -> Path:
    """Where the page goes, behind any links. Raises UsageError where that is a folder."""
    page = (wanted or workspace.build / "matrix.html").resolve()
    if page.is_dir():
        raise UsageError(f"--html {wanted or page} is a folder", then=f"--html {page}/matrix.html")
    return page


def run(arguments: argparse.Namespace, workspace: Workspace) -> Outcome:
    page = _page(arguments.html, workspace)
    quiet = replace(workspace, say=lambda line: None)  # that commits are unknown, the table says
    job = build.job(workspace, arguments.route)
    others = matrix.locks(job.lock, arguments.last, workspace, arguments.route)
    route = Route.WHEEL if others and others[0].wheels else Route.GIT
    old = replace(job, route=route).patched()
    columns = []
    with workspace.progress("matrix", len(others)) as advance:
        for number, lock in enumerate(others, 1):
            columns.append(matrix.column(old, source.obtain(lock, quiet, route), quiet))
            advance(number)
    titles = {patch.number: patch.title for patch in job.series.patches}
    found = Matrix(pinned=job.lock, titles=titles, columns=tuple(columns))
    with files.replacing(page) as new:
        new.write_text(matrix.as_page(found))
    bad = [cell for column in columns for cell in column.cells if not cell.holds]
    return Outcome(
        data=matrix.as_data(found) | {"route": str(route), "page": str(page)},
        shown=_table(found, f"route {route}; the page is {page}"),
        exit_code=1 if bad else 0,
    )


_STYLES = {
    "unchanged": "green",
    "moved": "green",
    "merged": "green",
    "landed": "yellow",
    "landed-modified": "yellow",
    "conflict": "red",
    matrix.UNDONE: "red",
}


def _table(found: Matrix, caption: str) -> Table:
    table = Table("patch", *(column.revision for column in found.columns), caption=caption)
    for place, number in enumerate(found.titles):
        cells = [column.cells[place] for column in found.columns]
        table.add_row(number, *(_shown(cell) for cell in cells))
    return table


def _shown(cell: Cell) -> Text:
    return Text(f"({cell.fate})" if cell.given else cell.fate, style=_STYLES.get(cell.fate, ""))
