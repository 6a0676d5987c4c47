"""What a bump goes to: a tag, branch or commit at the git host, with its release's wheels."""

import re
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime

from packaging.utils import InvalidWheelFilename, parse_wheel_filename
from packaging.version import InvalidVersion, Version

from scripts import fetch, revision, source, wheelfile
from scripts.errors import CommandFailed, LockError, UsageError
from scripts.git import CommitId
from scripts.lock import UNKNOWN, Lock, ReleaseWheel
from scripts.workspace import Workspace

_COMMIT = re.compile(r"[0-9a-f]{40}")


def find(
    wanted: str,
    lock: Lock,
    workspace: Workspace,
    *,
    version: str | None = None,
    wheels: bool = True,
) -> Lock:
    """The lock for the revision `wanted`: `lock` with another commit, version and `wheels`.

    Where the git host is out of reach and `wanted` is a release, its wheels are pinned and the
    commit stays unknown. A commit that is no release has the `version` that is given, else a
    development version of its day. Raises UsageError for what does not exist.
    """
    release = version or _release(wanted)
    refs = _refs(lock, workspace)
    if refs is None:
        if release is None:
            raise UsageError(
                f"{wanted} is no release, and {lock.url} is out of reach",
                then="give a release (v0.5.19), or check the network and git's insteadOf",
            )
        return _of_wheels(wanted, release, lock, workspace)
    commit = _commit(wanted, refs, lock)
    when = source.commit_time(replace(lock, commit=commit), workspace)
    if release is None:
        release = f"{_next(refs)}.dev{when:%Y%m%d}"
    pinned = _wheels(lock.name, release, workspace) if wheels and _release(wanted) else ()
    return replace(
        lock,
        version=release,
        requested_revision=wanted,
        commit=commit,
        commit_time=when,
        wheels=pinned,
        revision=revision.FIRST,
    )


def _release(wanted: str) -> str | None:
    """The version that a tag is named after, as SGLang names its tags."""
    try:
        return str(Version(wanted.removeprefix("v"))) if wanted.startswith("v") else None
    except InvalidVersion:
        return None


def _refs(lock: Lock, workspace: Workspace) -> dict[str, CommitId] | None:
    """Every branch and tag of the git host; None where it is out of reach."""
    if workspace.offline:
        return None
    try:
        with workspace.progress(f"ask {lock.url}"):
            return source.list_remote(lock, workspace, "refs/heads/*", "refs/tags/*")
    except CommandFailed as error:
        reason = error.output.strip().splitlines()[-1:] or ["no answer"]
        workspace.say(f"{lock.url} is out of reach: {reason[0]}")
        return None


def _commit(wanted: str, refs: dict[str, CommitId], lock: Lock) -> CommitId:
    if _COMMIT.fullmatch(wanted):
        return CommitId(wanted)
    for name in (f"refs/tags/{wanted}^{{}}", f"refs/tags/{wanted}", f"refs/heads/{wanted}"):
        if name in refs:
            return refs[name]
    near = f"refs/tags/v{wanted}" in refs
    short = re.fullmatch(r"[0-9a-f]{7,39}", wanted)
    raise UsageError(
        f"{lock.url} has no tag or branch {wanted}",
        then=f"nox -s bump -- v{wanted}"
        if near
        else "give all 40 digits of a commit"
        if short
        else f"git ls-remote --tags --heads {lock.url}",
    )


def _next(refs: dict[str, CommitId]) -> str:
    """The release that comes after the newest one that is tagged."""
    tags = (name.removeprefix("refs/tags/") for name in refs if name.startswith("refs/tags/"))
    releases = [Version(release) for release in map(_release, tags) if release]
    newest = max((one for one in releases if not one.is_prerelease), default=Version("0.0.0"))
    return ".".join(map(str, (*newest.release[:-1], newest.release[-1] + 1)))


def _of_wheels(wanted: str, release: str, lock: Lock, workspace: Workspace) -> Lock:
    wheels = _wheels(lock.name, release, workspace)
    if not wheels:
        raise UsageError(
            f"{lock.url} is out of reach, and the package index has no wheel of "
            f"{lock.name} {release}",
            then=f"pip index versions {lock.name}",
        )
    workspace.say(
        f"the commit of {wanted} is UNKNOWN, since the git host is out of reach: only its release "
        "wheels are pinned; `nox -s lock -- --verify` fills it in where git can be reached"
    )
    return replace(
        lock,
        version=release,
        requested_revision=wanted,
        commit=UNKNOWN,
        commit_time=_built(wheels[0], workspace),
        wheels=wheels,
        revision=revision.FIRST,
    )


def _wheels(name: str, release: str, workspace: Workspace) -> tuple[ReleaseWheel, ...]:
    """The wheels of a release that the package index has, each fetched and hashed."""
    names = [name for name in _listed(name, workspace) if _is_of(name, release)]
    with workspace.progress(f"hash the wheels of {release}", len(names)) as advance:
        wheels = []
        for number, one in enumerate(names, 1):
            wheels.append(fetch.measured(one, workspace))
            advance(number)
    return tuple(wheels)


def _listed(project: str, workspace: Workspace) -> Iterable[str]:
    if workspace.offline:
        return sorted(path.name for path in (workspace.cache / "wheels").glob(f"{project}-*.whl"))
    return fetch.listed(project, workspace)


def _is_of(name: str, release: str) -> bool:
    try:
        return parse_wheel_filename(name)[1] == Version(release)
    except InvalidWheelFilename:
        return False


def _built(wheel: ReleaseWheel, workspace: Workspace) -> datetime:
    """When the newest file of a wheel was made, as far as zip tells (two seconds, no zone)."""
    with wheelfile.opened(fetch.wheel(wheel, workspace)) as opened:
        newest = max(info.date_time for info in opened.members.values())
    return datetime(*newest, tzinfo=UTC)


def fill(lock: Lock, workspace: Workspace) -> Lock:
    """`lock` with the commit of its requested revision where that was unknown.

    Raises LockError where the git host is out of reach.
    """
    if lock.commit != UNKNOWN:
        return lock
    refs = _refs(lock, workspace)
    if refs is None:
        raise LockError(
            f"the commit of {lock.requested_revision} stays unknown: {lock.url} is out of reach",
            then="run this again where it can be reached",
        )
    commit = _commit(lock.requested_revision, refs, lock)
    when = source.commit_time(replace(lock, commit=commit), workspace)
    return replace(lock, commit=commit, commit_time=when)
