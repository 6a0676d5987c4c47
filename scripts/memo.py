"""What was found in a file's content before, by the same code: kept in the cache."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from scripts import files
from scripts.gate import Gate, Kind
from scripts.git import BlobId


class Memo:
    """The gates of files by path and blob; None for a file that was not looked into yet.

    Whatever cannot be read is looked into again: a memo is never the only place of anything.
    """

    def __init__(self, folder: Path, code: Sequence[Path]) -> None:
        digest = hashlib.sha256("".join(files.sha256(path) for path in code).encode()).hexdigest()
        self._path = folder / f"{digest[:16]}.json"
        self._used: dict[str, list[dict[str, object]]] = {}
        self._fresh = False
        try:
            known = json.loads(self._path.read_bytes())
            self._known = known if isinstance(known, dict) else {}
        except (OSError, ValueError):
            self._known = {}

    def get(self, path: str, blob: BlobId) -> tuple[Gate, ...] | None:
        """The gates that were found in `blob` at `path`."""
        rows = self._known.get(f"{blob} {path}")
        if not isinstance(rows, list):
            return None
        try:
            found = tuple(Gate(**{**row, "kind": Kind(row["kind"])}) for row in rows)
        except (TypeError, ValueError, KeyError):
            return None
        self._used[f"{blob} {path}"] = rows
        return found

    def put(self, path: str, blob: BlobId, gates: Sequence[Gate]) -> None:
        """Remember the gates of `blob` at `path`."""
        self._used[f"{blob} {path}"] = [asdict(gate) for gate in gates]
        self._fresh = True

    def save(self) -> None:
        """Keep what was asked for or put since this memo was read; the rest is forgotten."""
        if self._fresh:
            with files.replacing(self._path) as new:
                new.write_text(json.dumps(self._used))
