"""Several files of the checkout replaced together: all of them, also across a kill.

The new contents are staged below build/ and the folder is renamed into its place: from then on the
swap is decided. The files are put in place one by one, and whoever runs next finishes that.
"""

import errno
import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

from scripts import files
from scripts.errors import TreeError
from scripts.git import blob_id
from scripts.workspace import Workspace

_MANIFEST = "manifest.json"


def replace(contents: Mapping[str, bytes | None], workspace: Workspace) -> None:
    """Put `contents` at their paths below the checkout's root; None removes what is there.

    Raises OSError, or TreeError where a swap that was cut short cannot be finished; until all is
    staged, and each folder can be written to, nothing has changed.
    """
    with files.exclusive(workspace.build):
        _finish(workspace)
        changed = {path: new for path, new in contents.items() if _read(workspace, path) != new}
        if not changed:
            return
        for folder in {(workspace.root / path).parent for path in changed}:
            with tempfile.TemporaryFile(dir=folder):
                pass
        staged = _staged(workspace)
        with files.replacing(staged) as beside:
            beside.mkdir()
            manifest = []
            for number, (path, new) in enumerate(sorted(changed.items())):
                if new is not None:
                    _write(beside / str(number), new)
                manifest.append([path, _id(_read(workspace, path)), _id(new)])
            _write(beside / _MANIFEST, json.dumps(manifest).encode())
        _finish(workspace)


def finish(workspace: Workspace) -> bool:
    """Finish a swap that was cut short after it was decided; whether there was one.

    Raises TreeError where a file was changed by someone else meanwhile.
    """
    if not _staged(workspace).exists():
        return False
    with files.exclusive(workspace.build):
        return _finish(workspace)


def _finish(workspace: Workspace) -> bool:
    staged = _staged(workspace)
    if not staged.exists():
        return False
    manifest = json.loads((staged / _MANIFEST).read_bytes())
    for path, before, after in manifest:
        if _id(_read(workspace, path)) not in (before, after):
            raise TreeError(
                f"{path} was changed after a run was stopped while it replaced it",
                then=f"move {path} away and run this again, or remove {staged} to keep yours",
            )
    for number, (path, _, after) in enumerate(manifest):
        place = workspace.root / path
        for left_over in place.parent.glob(f".{place.name}.*.new"):
            files.remove(left_over)
        if after is None:
            place.unlink(missing_ok=True)
        elif _id(_read(workspace, path)) != after:
            _put(staged / str(number), place.resolve())
    files.remove(staged)
    return True


def _put(new: Path, place: Path) -> None:
    """Rename a staged file into its place, which takes no room; copy it to another file system."""
    try:
        new.replace(place)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        with files.replacing(place) as copy:
            copy.write_bytes(new.read_bytes())


def _staged(workspace: Workspace) -> Path:
    return workspace.build / "swap"


def _read(workspace: Workspace, path: str) -> bytes | None:
    try:
        return (workspace.root / path).read_bytes()
    except FileNotFoundError:
        return None


def _id(content: bytes | None) -> str | None:
    return None if content is None else blob_id(content)


def _write(path: Path, content: bytes) -> None:
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
