"""An upstream.lock in which a person has put another tag alone: what else has to change with it."""

from dataclasses import dataclass

import tomlkit
from tomlkit.exceptions import TOMLKitError

from scripts import files, former, relock, target
from scripts.errors import LockError
from scripts.lock import UNKNOWN, Lock
from scripts.workspace import Workspace


@dataclass(frozen=True, slots=True, kw_only=True)
class Edited:
    """What stands in a lock file that is no lock as it is; None where there is no such key."""

    revision: object
    version: object
    commit: object
    distribution: object

    def asks_for(self, old: Lock) -> str | None:
        """The revision that a person wants in the place of `old`'s; None where it is the same."""
        if isinstance(self.revision, str) and self.revision != old.requested_revision:
            return self.revision
        return f"v{self.version}" if self.version != old.version else None


def complete(workspace: Workspace) -> tuple[str, Lock] | None:
    """The text of upstream.lock with all that follows from its edited tag, and that lock.

    The rest is the newest committed lock's, from which nothing else may differ; None where that is
    not so. Raises LockError where the edit contradicts what the tag is, and as target.find() does.
    """
    found = _read(files.text(workspace.lock, LockError))
    before = next(former.committed(workspace), None)
    if found is None or before is None:
        return None
    text, old = before
    wanted = found.asks_for(old)
    if wanted is None or found.distribution != _distribution(text):
        return None
    new = target.find(wanted, old, workspace)
    if new.commit != UNKNOWN and found.commit not in (old.commit, new.commit):
        raise LockError(
            f"upstream.lock has commit-id {found.commit}; {wanted} is {new.commit}",
            then=f"put that there, or git checkout -- {workspace.lock.name} and nox -s bump",
        )
    return relock.rewrite(text, new), new


def _read(text: str) -> Edited | None:
    try:
        document = tomlkit.parse(text).unwrap()
        upstream = document["upstream"]
        vcs = upstream["vcs"]
        return Edited(
            revision=vcs.get("requested-revision"),
            version=upstream.get("version"),
            commit=vcs.get("commit-id"),
            distribution=document.get("distribution"),
        )
    except (TOMLKitError, KeyError, AttributeError, TypeError):
        return None


def _distribution(text: str) -> object:
    return tomlkit.parse(text).unwrap()["distribution"]
