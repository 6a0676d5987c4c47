"""What a bump goes to: a tag, branch or commit at the git host, with its release's wheels."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime

from packaging.utils import InvalidWheelFilename, parse_wheel_filename
from packaging.version import Version

from scripts import fetch, revision, source, wheelfile
from scripts.errors import CommandFailed, LockError, UsageError
from scripts.git import CommitId
from scripts.lock import UNKNOWN, Lock, ReleaseWheel, check_revision, check_version, tagged
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
    development version of its day. Without `wheels` it is a lock that is written nowhere. Raises
    UsageError for what does not exist or cannot be pinned.
    """
    _refuse_revision(wanted)
    if version is not None:
        version = _checked(version)
    elif wheels:
        _refuse_local(wanted)
    refs = asked(lock, workspace)
    if refs is not None:
        return of_refs(wanted, refs, lock, workspace, version=version, wheels=wheels)
    named = version or release(wanted)
    if named is None:
        raise UsageError(
            f"{wanted} is no release, and {lock.url} is out of reach",
            then="give a release (v0.5.19), or check the network and git's insteadOf",
        )
    found = of_index(named, lock, workspace)
    workspace.say(
        f"the commit of {wanted} is UNKNOWN, since the git host is out of reach: only its release "
        "wheels are pinned; `nox -s lock -- --verify` fills it in where git can be reached"
    )
    return replace(found, requested_revision=wanted)


def _refuse_revision(wanted: str) -> None:
    problem = check_revision(wanted)
    if isinstance(problem, str):
        raise UsageError(
            f"{wanted!r} {problem} that upstream.lock can name",
            then="give all 40 digits of the commit",
        )


def _checked(version: str) -> str:
    """`version` as it is normally spelled. Raises UsageError where it cannot be upstream's."""
    problem = check_version(version)
    if isinstance(problem, str):
        raise UsageError(f"--version {version!r} {problem}", then="--version 0.5.19.dev20260821")
    return str(Version(version))


def _refuse_local(wanted: str) -> None:
    named = tagged(wanted)
    if named is not None and named.local:
        raise UsageError(
            f"the tag {wanted} has the local version +{named.local}, and that part is ours to say",
            then=f"nox -s bump -- {wanted} --version {named.base_version}.post1",
        )


Refs = Mapping[str, CommitId]


def of_refs(
    wanted: str,
    refs: Refs,
    lock: Lock,
    workspace: Workspace,
    *,
    version: str | None = None,
    wheels: bool = True,
) -> Lock:
    """As find() does, with the answer of the git host at hand."""
    commit = _commit(wanted, refs, lock)
    asked_for = replace(lock, commit=commit, requested_revision=wanted)
    try:
        when = source.commit_time(asked_for, workspace)
    except LockError as error:
        raise UsageError(str(error.args[0]), then="give a tag, branch or commit") from error
    tagged = release(wanted)
    named = version or tagged or f"{_next(refs)}.dev{when:%Y%m%d}"
    pinned = _wheels(lock.name, named, workspace) if wheels and named == tagged else ()
    return replace(
        lock,
        version=named,
        requested_revision=wanted,
        commit=commit,
        commit_time=when,
        wheels=pinned,
        revision=revision.FIRST,
    )


def of_index(version: str, lock: Lock, workspace: Workspace, *, wheels: int | None = None) -> Lock:
    """The lock for a release as the package index has it; its commit is unknown.

    `wheels` is how many of its wheels are pinned; None: all. Raises UsageError where there is none.
    """
    pinned = _wheels(lock.name, version, workspace, wheels)
    if not pinned:
        raise UsageError(
            f"{lock.url} is out of reach, and the package index has no wheel of "
            f"{lock.name} {version}",
            then=f"pip index versions {lock.name}",
        )
    return replace(
        lock,
        version=version,
        requested_revision=f"v{version}",
        commit=UNKNOWN,
        commit_time=_built(pinned[0], workspace),
        wheels=pinned,
        revision=revision.FIRST,
    )


def release(wanted: str) -> str | None:
    """The version that a tag is named after, as SGLang names its tags."""
    named = tagged(wanted)
    return None if named is None or named.local else str(named)


def asked(lock: Lock, workspace: Workspace) -> Refs | None:
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


def _commit(wanted: str, refs: Refs, lock: Lock) -> CommitId:
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


def releases(refs: Refs) -> dict[Version, str]:
    """The tags of the final releases, by version, oldest first."""
    tags = (name.removeprefix("refs/tags/") for name in refs if name.startswith("refs/tags/"))
    named = {Version(version): tag for tag in tags if (version := release(tag))}
    return {version: named[version] for version in sorted(named) if not version.is_prerelease}


def _next(refs: Refs) -> str:
    """The release that comes after the newest one that is tagged."""
    newest = next(reversed(releases(refs)), Version("0.0.0"))
    return ".".join(map(str, (*newest.release[:-1], newest.release[-1] + 1)))


def _wheels(
    project: str, version: str, workspace: Workspace, count: int | None = None
) -> tuple[ReleaseWheel, ...]:
    """The wheels of a release that the package index has, each fetched and hashed."""
    names = [name for name in _listed(project, workspace) if _is_of(name, version)][:count]
    with workspace.progress(f"hash the wheels of {version}", len(names)) as advance:
        wheels = []
        for number, name in enumerate(names, 1):
            wheels.append(fetch.measured(name, workspace))
            advance(number)
    return tuple(wheels)


def _listed(project: str, workspace: Workspace) -> Iterable[str]:
    """The wheels of the package index, or those of the cache where it must not be asked."""
    if workspace.offline:
        return sorted(path.name for path in (workspace.cache / "wheels").glob(f"{project}-*.whl"))
    return fetch.listed(project, workspace)


def _is_of(name: str, version: str) -> bool:
    try:
        return parse_wheel_filename(name)[1] == Version(version)
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
    refs = asked(lock, workspace)
    if refs is None:
        raise LockError(
            f"the commit of {lock.requested_revision} stays unknown: {lock.url} is out of reach",
            then="run this again where it can be reached",
        )
    commit = _commit(lock.requested_revision, refs, lock)
    when = source.commit_time(replace(lock, commit=commit), workspace)
    return replace(lock, commit=commit, commit_time=when)
