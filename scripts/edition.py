"""The pages of an index as readers see them: an edition of all, and one rename to the next.

    .pages/7/                       an edition: every page, in its place; never changed
    .pages/current -> 7             the one that is shown
    simple -> .pages/current/simple and so on, for each name in FACE

rename(2) replaces `current` in one step, so that readers of any two pages, and whoever comes after
a kill, find the old edition or the new one.
"""

import os
import shutil
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

    Hold the folder's lock. The edition before is kept until the next one, for servers that are in
    the middle of an answer. Raises OSError, and then nothing has changed.
    """
    current = folder / _CURRENT
    for name in FACE:
        _link(folder / name, f"{_CURRENT}/{name}")
    if all(_is(current / path, text) for path, text in pages.items()):
        return
    files.sweep(current.parent)
    before = current.resolve() if current.exists() else None
    numbers = [int(path.name) for path in _editions(folder)]
    after = current.with_name(str(max(numbers, default=0) + 1))
    with files.replacing(after) as new:
        if before:  # what stays the same is the same file on disk, so it costs no writing
            shutil.copytree(before, new, copy_function=_again)
        for path, text in pages.items():
            files.write(new / path, text)
    _link(current, after.name)
    for edition in _editions(folder):
        if edition not in (before, after):
            files.remove(edition)


def _editions(folder: Path) -> list[Path]:
    return [path for path in (folder / _PAGES).glob("[0-9]*") if path.name.isdecimal()]


def _again(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:  # the file system has no hard links, or this user may not make one
        shutil.copyfile(source, target)


def _is(path: Path, text: str) -> bool:
    return path.is_file() and path.read_bytes() == text.encode()


def _link(path: Path, target: str) -> None:
    if not path.is_symlink() or str(path.readlink()) != target:
        with files.replacing(path) as new:
            new.symlink_to(target)
