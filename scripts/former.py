"""The upstream.lock that the series was made for, where the one at hand was edited since."""

from collections.abc import Iterator
from dataclasses import replace

from scripts import lock, patched, proc, source
from scripts.errors import (
    ApplyError,
    CommandFailed,
    FetchError,
    LockError,
    SourceError,
    UsageError,
    raise_all,
)
from scripts.git import connected
from scripts.lock import Lock
from scripts.series import Series
from scripts.source import Route
from scripts.workspace import Workspace

_AS_FAR_BACK = 50  # commits that changed upstream.lock


def find(series: Series, present: Lock, workspace: Workspace, route: Route) -> Lock:
    """The newest committed upstream.lock but `present`, on whose source `series` applies.

    One whose source cannot be had is passed over, and told. Raises UsageError where there is none,
    and SourceError where it may be one of those.
    """
    lost = []
    reach = workspace
    for _, former in committed(workspace):
        if former.commit == present.commit and former.version == present.version:
            continue
        try:
            patched.apply(source.obtain(former, reach, route), series, workspace)
        except ApplyError:
            continue
        except (SourceError, FetchError, LockError) as error:
            lost.append(f"{former.requested_revision} ({former.commit}): {error.args[0]}")
            if not _answers(former, reach):
                reach = replace(workspace, offline=True)  # the cache may have an older one
            continue
        for line in lost:
            workspace.say(f"a former upstream.lock was passed over: {line}")
        return former
    raise_all(
        SourceError,
        lost,
        then="bring upstream's commit back, or git checkout -- upstream.lock, and "
        "nox -s bump -- REVISION",
    )
    raise UsageError(
        "no upstream.lock in this repository's history is one that the series applies to",
        then="git checkout -- upstream.lock, and nox -s bump -- REVISION",
    )


def _answers(former: Lock, workspace: Workspace) -> bool:
    """Whether the git host can be asked at all."""
    try:
        return not workspace.offline and bool(source.list_remote(former, workspace, "HEAD"))
    except CommandFailed:
        return False


def committed(workspace: Workspace) -> Iterator[tuple[str, Lock]]:
    """Each upstream.lock in this repository's history, the newest first, with its text.

    Raises UsageError where there is no history.
    """
    name = workspace.lock.name
    seen = set()
    for commit in _git(workspace, "log", f"-{_AS_FAR_BACK}", "--format=%H", "--", name).split():
        text = _git(workspace, "show", f"{commit}:./{name}")
        if text in seen:
            continue
        seen.add(text)
        try:
            yield text, lock.parse(text)
        except LockError:
            continue  # of another format, or broken at that time


def _git(workspace: Workspace, *args: str) -> str:
    env = connected(workspace.environment)
    try:
        return proc.run(["git", *args], env=env, cwd=workspace.root).decode(errors="replace")
    except CommandFailed as error:
        raise UsageError(
            f"the former upstream.lock is looked for in {workspace.root}'s git history:\n{error}",
            then="nox -s bump -- REVISION",
        ) from error
