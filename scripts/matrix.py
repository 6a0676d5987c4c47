"""Every patch on many releases: what would become of the series on each, from one base."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from packaging.utils import parse_wheel_filename
from packaging.version import Version

from scripts import fetch, patched, postconditions, rebase, source, target
from scripts.errors import UsageError
from scripts.git import CommitId
from scripts.lock import Lock
from scripts.patched import Patched
from scripts.rebase import WANTS_A_PERSON, Carried
from scripts.source import Base, Route
from scripts.workspace import Workspace

BRANCH = "main"
_PAGES = Environment(
    loader=FileSystemLoader(Path(__file__).parent / "pages"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
)
UNDONE = "post-condition"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """A patch on a release: its fate in one word, and what there is to know of it.

    `given` says that it is what to expect once conflicts below it are settled.
    """

    patch: str
    fate: str
    details: tuple[str, ...]
    given: bool

    @property
    def holds(self) -> bool:
        """Whether nobody has to look at it."""
        return self.fate not in {*map(str, WANTS_A_PERSON), UNDONE}


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A release, or upstream's main branch, with a cell for each patch, in the series' order."""

    revision: str
    commit: CommitId
    cells: tuple[Cell, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Matrix:
    """The series as it is pinned, and what becomes of it on each release, oldest first."""

    pinned: Lock
    titles: Mapping[str, str]
    columns: tuple[Column, ...]


def locks(pinned: Lock, last: int, workspace: Workspace, route: Route) -> list[Lock]:
    """The newest `last` releases, oldest first, and where git can be reached the branch main.

    A tag that is no commit's is passed over, and told. By the wheel route they are those of the
    package index, each with one wheel. Raises FetchError.
    """
    refs = None if route is Route.WHEEL else target.asked(pinned, workspace)
    if refs is None:
        newest = published(pinned, workspace)[-last:]
        return [target.of_index(str(one), pinned, workspace, wheels=1) for one in newest]
    found: list[Lock] = []
    for tag in reversed(target.releases(refs).values()):
        if len(found) == last:
            break
        try:
            found.insert(0, target.of_refs(tag, refs, pinned, workspace, wheels=False))
        except UsageError as error:
            workspace.say(f"passed over: {error.args[0]}")
    if f"refs/heads/{BRANCH}" in refs:
        found.append(target.of_refs(BRANCH, refs, pinned, workspace, wheels=False))
    return found


def published(pinned: Lock, workspace: Workspace) -> list[Version]:
    """The final releases that the package index has, oldest first. Raises FetchError."""
    names = fetch.listed(pinned.name, workspace)
    versions = {parse_wheel_filename(name)[1] for name in names}
    return sorted(version for version in versions if not version.is_prerelease)


def column(old: Patched, new: Base, workspace: Workspace) -> Column:
    """What becomes of each patch of `old` on `new`. Raises SourceError."""
    rebased = rebase.rebase(old, new, workspace)
    result = patched.of_commits(new, rebased.series, rebased.commits)
    source.complete(new, list(old.series.paths))
    undone: dict[str, list[str]] = {}
    for finding in postconditions.findings(result, rebased.series.patches):
        undone.setdefault(finding.patch[:4], []).append(finding.what)
    return Column(
        revision=new.lock.requested_revision,
        commit=new.lock.commit,
        cells=tuple(_cell(one, undone.get(one.before.number, [])) for one in rebased.carried),
    )


def _cell(carried: Carried, undone: Sequence[str]) -> Cell:
    details = [f"{one.path}: {one.kind}" for one in carried.conflicts]
    if carried.unsettled:
        details.append(f"given that {', '.join(carried.unsettled)} is settled")
    return Cell(
        patch=carried.before.number,
        fate=UNDONE if undone else str(carried.fate),
        details=(*details, *undone),
        given=bool(carried.unsettled),
    )


def as_data(matrix: Matrix) -> dict[str, object]:
    """The matrix for machines."""
    return {
        "from": matrix.pinned.requested_revision,
        "patches": dict(matrix.titles),
        "releases": [
            {
                "revision": column.revision,
                "commit": column.commit,
                "patches": {
                    cell.patch: {"fate": cell.fate, "details": list(cell.details)}
                    for cell in column.cells
                },
            }
            for column in matrix.columns
        ],
    }


def as_page(matrix: Matrix) -> str:
    """The matrix as an HTML page that needs nothing else."""
    page = _PAGES.get_template("matrix.html")
    rows = [
        (number, title, [(column, column.cells[place]) for column in matrix.columns])
        for place, (number, title) in enumerate(matrix.titles.items())
    ]
    return page.render(matrix=matrix, rows=rows)
