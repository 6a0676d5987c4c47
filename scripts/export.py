"""Commits back to patches: the same bytes on every machine, and none for a patch that stayed."""

import re
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

from scripts import header, patch
from scripts.files import end_of_line, lines
from scripts.git import CommitId, Repository
from scripts.patch import Patch
from scripts.series import Series

_PINNED = (
    *("--zero-commit", "--full-index", "--binary", "--no-signature", "--no-stat", "--always"),
    *("-N", "-k", "--no-renames", "--pretty=mboxrd", "--encode-email-headers", "--no-attach"),
    *("--no-thread", "--no-base", "--no-notes", "--no-color", "--no-ext-diff", "--no-textconv"),
    *("--src-prefix=a/", "--dst-prefix=b/", "--unified=3", "--inter-hunk-context=0"),
    *("--diff-algorithm=myers", "--indent-heuristic", "--output-indicator-context= "),
)
_ATTRIBUTES = "*.py diff=python\n"  # so that a hunk's heading names the function
_HEADING = re.compile(rb"^(@@ -\S+ \+\S+ @@).*$", re.MULTILINE)
_SLUG = 52  # characters of the title that git format-patch takes into a file name


def patches(
    store: Repository, base: CommitId, commits: Sequence[CommitId], names: Sequence[str]
) -> tuple[Patch, ...]:
    """The commits from `base` on, in order, as patches of these file names.

    Raises SeriesError where a commit's message lacks what the series asks for.
    """
    if not commits:
        return ()
    with tempfile.TemporaryDirectory() as folder:
        attributes = Path(folder) / "attributes"
        attributes.write_text(_ATTRIBUTES)
        out = Path(folder) / "patches"
        store.run(
            *("-c", f"core.attributesFile={attributes}", "format-patch", "--quiet"),
            *(*_PINNED, "-o", str(out), f"{base}..{commits[-1]}"),
        )
        contents = [path.read_bytes() for path in sorted(out.iterdir())]
    return tuple(
        patch.parse(content, name=name) for content, name in zip(contents, names, strict=True)
    )


def settled(fresh: Patch, known: Patch) -> Patch:
    """`known` with its bytes where `fresh` is the same commit, else `fresh`.

    A hunk's heading does not count, nor what git takes off a name: both differ by its version.
    """
    return known if _essence(fresh) == _essence(known) else fresh


def _essence(one: Patch) -> tuple[object, ...]:
    who = header.kept(one.author), header.kept(one.email)
    return *who, one.date, one.message, bare(one.diff)


def bare(diff: bytes) -> bytes:
    """A diff without the headings of its hunks."""
    return _HEADING.sub(rb"\1", diff)


def new_name(title: str, taken: Iterable[str]) -> str:
    """A file name for a new patch: the next number, and the title as git makes names of it."""
    number = max((int(name[:4]) for name in taken), default=0) + 1
    words = re.sub(r"[^A-Za-z0-9._]+", "-", title).strip("-.") or "patch"
    return f"{number:04}-{re.sub(r'[.]{2,}', '.', words)[:_SLUG].rstrip('-.')}.patch"


def files(series: Series, order: str) -> dict[str, bytes]:
    """What patchset/ holds for `series`: each patch, and the series file.

    `order` is the series file as it is; its comments and blank lines stay.
    """
    names = [one.name for one in series.patches]
    return {one.name: one.content for one in series.patches} | {
        "series": reorder(order, names).encode()
    }


def reorder(order: str, names: Sequence[str]) -> str:
    """The series file `order` with `names` in place of those it lists; comments and line ends stay.

    A comment at the end of a line goes with its patch, the lines above a patch stay above it, and
    those of a series of none above all.
    """
    above: dict[str, list[str]] = {}
    rows: dict[str, str] = {}
    waiting: list[str] = []
    end = end_of_line(order)
    for line in lines(order):
        name = line.partition("#")[0].strip()
        if not name:
            waiting.append(line)
        elif name in names:
            above[name], rows[name], waiting = waiting, line, []
    fresh: list[str] = []
    if not rows:
        fresh, waiting = waiting, []
    for name in names:
        fresh += [*above.get(name, []), rows.get(name, name)]
    return "".join(line if line.endswith("\n") else f"{line}{end}" for line in [*fresh, *waiting])
