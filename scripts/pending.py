"""A bump that waits for a person: what it is for, in build/bump.json until it is at its end."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from scripts import files
from scripts.errors import TreeError
from scripts.workspace import Workspace

PATH = "build/bump.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pending:
    """The texts of the old and the new upstream.lock, the route, and what was decided so far.

    `retired`, `accepted` and `conflicts` are numbers of patches; `tree` says that there was a
    build/sglang before.
    """

    old: str
    new: str
    route: str
    retired: tuple[str, ...]
    accepted: tuple[str, ...]
    conflicts: tuple[str, ...]
    tree: bool


def load(workspace: Workspace) -> Pending | None:
    """The bump that waits; None where none does. Raises TreeError where it cannot be read."""
    path = workspace.root / PATH
    try:
        fields = json.loads(path.read_bytes())
        return Pending(
            old=str(fields["old"]),
            new=str(fields["new"]),
            route=str(fields["route"]),
            retired=tuple(fields["retired"]),
            accepted=tuple(fields["accepted"]),
            conflicts=tuple(fields["conflicts"]),
            tree=bool(fields["tree"]),
        )
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise TreeError(
            f"{path} cannot be read: {error}", then=f"remove {path}; lock and series are as before"
        ) from error


def save(pending: Pending, workspace: Workspace) -> None:
    """Write down the bump that waits, whole or not at all."""
    with files.replacing(workspace.root / PATH) as new:
        new.write_text(json.dumps(asdict(pending), indent=1))


def path(workspace: Workspace) -> Path:
    """Where a bump that waits is written down."""
    return workspace.root / PATH
