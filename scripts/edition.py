"""The pages of an index as readers see them: an edition of all, and one rename to the next.

    .pages/7/                       an edition: every page, in its place; never changed while shown
    .pages/current -> 7             the one that is shown
    simple -> .pages/current/simple and so on, for each name in FACE

rename(2) replaces `current` in one step, so that readers of any two pages, and whoever comes after
a kill, find the old edition or the new one.
"""

from collections.abc import Mapping
from pathlib import Path

from scripts import files
from scripts.errors import PublishError

FACE = ("index.html", "releases", "simple", "url.txt")
_PAGES = ".pages"
_CURRENT = f"{_PAGES}/current"


def shown(folder: Path) -> Path:
    """The folder of the pages that readers see; that of the index itself where it is a copy."""
    current = folder / _CURRENT
    return current if current.is_symlink() or current.exists() else folder


def check(folder: Path) -> None:
    """Raise PublishError where `folder` is no index that a new edition can be shown in."""
    current = folder / _CURRENT
    if current.is_symlink() and not current.exists():
        raise PublishError(
            f"{current} leads to {current.readlink()}, which is gone", then="restore it from a copy"
        )
    for name in FACE:
        path = folder / name
        if path.exists() and not path.is_symlink():
            raise PublishError(
                f"{path} is not the link that publish makes: {folder} is a copy, or something else",
                then="publish to the index itself, or to an empty folder (--index), and copy that",
            )


def turn(folder: Path, pages: Mapping[str, str]) -> None:
    """Show `pages`, text by path, in place of those of the same paths; the others stay.

    Hold the folder's lock. The edition before is kept until the next one, which is made of it: for
    servers that are in the middle of an answer, and since most pages never change. Raises OSError,
    and then readers see what they saw.
    """
    current = folder / _CURRENT
    for name in FACE:
        _link(folder / name, f"{_CURRENT}/{name}")
    if all(_is(current / path, text) for path, text in pages.items()):
        return
    files.sweep(current.parent)
    shown = current.with_name(current.readlink().name) if current.is_symlink() else None
    editions = [path for path in current.parent.glob("[0-9]*") if path.name.isdecimal()]
    after = current.with_name(str(max((int(path.name) for path in editions), default=0) + 1))
    spare = next((path for path in editions if path != shown), after)
    _fill(spare, shown, pages)
    if spare != after:
        spare.rename(after)
    _link(current, after.name)


def _fill(spare: Path, shown: Path | None, pages: Mapping[str, str]) -> None:
    """Make `spare` hold the edition `shown` with `pages` in it, and nothing else."""
    kept = {path: (shown / path).read_text() for path in _files(shown)} if shown else {}
    whole = kept | dict(pages)
    for path, text in whole.items():
        if not (shown and _linked(shown / path, spare / path, text)):
            files.write(spare / path, text)
    for path in _files(spare):
        if path not in whole:
            (spare / path).unlink()


def _linked(page: Path, target: Path, text: str) -> bool:
    """Make `target`, if there is none, the same file as a page that has `text`; whether it is."""
    if target.exists() or not _is(page, text):
        return False
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        target.hardlink_to(page)
    except OSError:  # the file system has no hard links, or this user may not make one
        return False
    return True


def _files(folder: Path) -> list[str]:
    return [str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()]


def _is(path: Path, text: str) -> bool:
    return path.is_file() and path.read_bytes() == text.encode()


def _link(path: Path, target: str) -> None:
    if not path.is_symlink() or str(path.readlink()) != target:
        with files.replacing(path) as new:
            new.symlink_to(target)
