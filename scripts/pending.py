"""A bump that waits for a person: what it is for, in build/bump.json until it is at its end."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from scripts import files, lock
from scripts.errors import LockError, TreeError
from scripts.git import blob_id
from scripts.source import Route
from scripts.workspace import Workspace

PATH = "build/bump.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pending:
    """The texts of the old and the new upstream.lock, the route, and what was decided so far.

    `retired`, `accepted` and `conflicts` are numbers of patches; `tree` says that there was a
    build/sglang before. `files` has the blob of each file that the bump is to replace, by path, and
    `gates` the text of patchset/gates.toml.
    """

    old: str
    new: str
    route: str
    retired: tuple[str, ...]
    accepted: tuple[str, ...]
    conflicts: tuple[str, ...]
    tree: bool
    files: Mapping[str, str]
    gates: str

    def changed(self, workspace: Workspace) -> list[str]:
        """The files that are no longer what they were when the bump began, by path."""
        now = blobs(workspace)
        return sorted(path for path in {*now, *self.files} if now.get(path) != self.files.get(path))


def blobs(workspace: Workspace) -> dict[str, str]:
    """The blob of upstream.lock, of the series and of each patch, by path."""
    patches = workspace.patchset.glob("*.patch")
    places = [path for path in (workspace.lock, workspace.patchset / "series") if path.exists()]
    return {
        path.relative_to(workspace.root).as_posix(): blob_id(path.read_bytes())
        for path in (*places, *patches)
    }


def load(workspace: Workspace) -> Pending | None:
    """The bump that waits; None where none does. Raises TreeError where it cannot be read."""
    path = workspace.root / PATH
    try:
        fields = json.loads(path.read_bytes())
        found = Pending(
            old=str(fields["old"]),
            new=str(fields["new"]),
            route=str(Route(fields["route"])),
            retired=tuple(map(str, fields["retired"])),
            accepted=tuple(map(str, fields["accepted"])),
            conflicts=tuple(map(str, fields["conflicts"])),
            tree=bool(fields["tree"]),
            files={str(name): str(blob) for name, blob in fields["files"].items()},
            gates=str(fields["gates"]),
        )
        for text in (found.old, found.new):
            lock.parse(text)
    except FileNotFoundError:
        return None
    except (ValueError, TypeError, KeyError, AttributeError, LockError) as error:
        raise TreeError(
            f"{path} cannot be read: {error}", then=f"remove {path}; lock and series are as before"
        ) from error
    return found


def refuse(workspace: Workspace) -> None:
    """Raise TreeError where a bump waits for a person."""
    found = load(workspace)
    if found is not None:
        raise TreeError(
            f"a bump to {lock.parse(found.new).requested_revision} is under way; in conflict when "
            f"it began: {', '.join(found.conflicts)}",
            then="resolve it in build/sglang and nox -s bump -- --continue, "
            "or nox -s bump -- --abort",
        )


def save(pending: Pending, workspace: Workspace) -> None:
    """Write down the bump that waits, whole or not at all."""
    with files.replacing(workspace.root / PATH) as new:
        new.write_text(json.dumps(asdict(pending), indent=1))


def path(workspace: Workspace) -> Path:
    """Where a bump that waits is written down."""
    return workspace.root / PATH
