"""The pinned commit in the object store: from git, or from the pinned release wheel."""

import stat
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum

from scripts import fetch, files, release, wheelfile
from scripts.errors import CommandFailed, FetchError, LockError, SourceError
from scripts.git import IDENTITY, BlobId, CommitId, Repository, Tree
from scripts.lock import UNKNOWN, Lock
from scripts.workspace import Workspace

MARGIN = timedelta(days=30)  # releases are tagged on branches that left main some days before
REACH = 60  # seconds until the git host counts as out of reach


class Route(StrEnum):
    """Where the source comes from; `auto` is git, or the wheel where git is out of reach."""

    AUTO = "auto"
    GIT = "git"
    WHEEL = "wheel"


@dataclass(frozen=True, slots=True, kw_only=True)
class Base:
    """The commit that the series is applied to, and its files; `why` explains the route."""

    lock: Lock
    store: Repository
    commit: CommitId
    tree: Tree
    route: Route
    why: str


def obtain(lock: Lock, workspace: Workspace, route: Route = Route.AUTO) -> Base:
    """The pinned source, fetched on first use and read from the cache ever after.

    Raises SourceError or FetchError where it cannot be had.
    """
    if lock.commit == UNKNOWN:
        route = _without_commit(lock, workspace, route)
    with files.exclusive(workspace.cache):
        store = _store(lock, workspace)
        try:
            cached = _cached(lock, store, route)
        except _Damaged:
            aside = files.set_aside(store.git_dir)
            workspace.say(f"the object store is damaged, and was set aside as {aside}")
            store, cached = _store(lock, workspace), None
        if cached is not None:
            return cached
        if workspace.offline and route is Route.GIT:
            raise SourceError(
                f"commit {lock.commit} is not in the cache ({workspace.cache}), "
                "and --offline was given",
                then="run this again without --offline",
            )
        if route is Route.WHEEL:
            return _from_wheel(lock, store, workspace, why=_why_wheel(lock))
        try:
            return _from_git(lock, store, workspace)
        except SourceError as error:
            if route is Route.GIT or not lock.wheels:
                raise
            return _after_git(error, lock, store, workspace)


def _without_commit(lock: Lock, workspace: Workspace, route: Route) -> Route:
    if route is Route.GIT:
        raise SourceError(
            f"upstream.lock does not know the commit of {lock.name} {lock.version}",
            then="nox -s lock -- --verify, where the git host can be reached",
        )
    workspace.say(
        f"the commit of {lock.name} {lock.version} is UNKNOWN: the source is its release wheel's, "
        "and nobody compared it with git; `nox -s lock -- --verify` does that and fills it in"
    )
    return Route.WHEEL


def _after_git(error: SourceError, lock: Lock, store: Repository, workspace: Workspace) -> Base:
    reason = str(error.args[0]).strip().splitlines()[-1]
    try:
        return _from_wheel(lock, store, workspace, why=f"git could not: {reason}")
    except FetchError as second:
        raise SourceError(f"neither route leads to the source:\n{error}\n{second}") from second


def list_remote(lock: Lock, workspace: Workspace, *patterns: str) -> dict[str, CommitId]:
    """What the git host has at the refs that match. Raises CommandFailed."""
    with files.exclusive(workspace.cache):
        return _store(lock, workspace).list_remote(*patterns, timeout=REACH)


def complete(base: Base, paths: list[str] | None = None) -> None:
    """Bring the blobs of `paths` (None: of all files) into the store, in one fetch.

    Raises SourceError where the git host cannot be reached.
    """
    wanted = base.tree if paths is None else [path for path in paths if path in base.tree]
    bring(base, {base.tree[path].blob for path in wanted})


def bring(base: Base, blobs: Collection[BlobId]) -> None:
    """Bring `blobs` into the store of `base`, in one fetch. Raises SourceError."""
    objects = base.store.objects()
    missing = sorted(blob for blob in blobs if not objects.has(blob))
    if not missing:
        return
    ids = "".join(f"{blob}\n" for blob in missing).encode()
    try:
        with files.exclusive(base.store.git_dir.parent):
            base.store.fetch("--filter=blob:none", "--stdin", "origin", input=ids)
    except CommandFailed as error:
        raise SourceError(
            f"{len(missing)} files of commit {base.commit} could not be fetched:\n{error.output}",
            then="run this again when the git host can be reached, or with --route wheel",
        ) from error


def deepen(bases: Sequence[Base], workspace: Workspace) -> None:
    """Fetch the commits, and no files, that lead to `bases`, from some time before the oldest.

    Raises SourceError where the git host cannot be reached.
    """
    if workspace.offline:
        raise SourceError("upstream's history is not in the cache, and --offline was given")
    since = min(base.lock.commit_time for base in bases) - MARGIN
    store, commits = bases[0].store, [base.commit for base in bases]
    depth = f"--shallow-since={since:%Y-%m-%dT%H:%M:%SZ}"
    with (
        files.exclusive(workspace.cache),
        workspace.progress(f"fetch upstream's history since {since:%Y-%m-%d}"),
    ):
        try:
            store.fetch("--quiet", "--filter=blob:none", depth, "origin", *commits)
        except CommandFailed as error:
            raise SourceError(
                f"upstream's history could not be fetched:\n{error.output}",
                then="run this again when the git host can be reached",
            ) from error


def _store(lock: Lock, workspace: Workspace) -> Repository:
    """The bare store, made beside and renamed, so that a kill leaves none or a whole one."""
    git_dir = workspace.cache / "store.git"
    if not git_dir.exists():
        with files.replacing(git_dir) as new:
            new.mkdir()
            half = Repository(git_dir=new, environment=workspace.environment)
            half.run("init", "--quiet", "--bare", "--template=", str(new))
            half.run("config", "core.repositoryFormatVersion", "1")
            half.run("config", "extensions.partialClone", "origin")
            half.run("config", "remote.origin.promisor", "true")
    for left_over in (*git_dir.glob("*.lock"), *git_dir.glob("refs/**/*.lock")):
        left_over.unlink()  # a killed git's: the cache is held, so no other git runs here
    store = Repository(git_dir=git_dir, environment=workspace.environment)
    store.run("config", "remote.origin.url", lock.url)
    return store


def _ref(lock: Lock, route: Route) -> str:
    if lock.commit == UNKNOWN:
        return f"refs/pins/{route}/{lock.version}-{lock.epoch}-{lock.wheels[0].sha256[:12]}"
    return f"refs/pins/{route}/{lock.commit}"


def _why_wheel(lock: Lock) -> str:
    return "its commit is unknown" if lock.commit == UNKNOWN else "--route wheel"


_WHY_CACHED_WHEEL = "in the cache, since git was out of reach once; --route git asks again"


class _Damaged(Exception):
    """A commit that was obtained before can no longer be read."""


def _cached(lock: Lock, store: Repository, route: Route) -> Base | None:
    for candidate in (Route.GIT, Route.WHEEL) if route is Route.AUTO else (route,):
        ref = _ref(lock, candidate)
        try:
            if not store.run("for-each-ref", ref):
                continue
            commit = CommitId(store.run("rev-parse", "--verify", ref).decode().strip())
            tree = store.tree(commit)
        except CommandFailed as error:
            raise _Damaged from error
        why = "in the cache" if candidate is Route.GIT else _WHY_CACHED_WHEEL
        if route is Route.WHEEL:
            why = _why_wheel(lock)
        return Base(lock=lock, store=store, commit=commit, tree=tree, route=candidate, why=why)
    return None


def commit_time(lock: Lock, workspace: Workspace) -> datetime:
    """When the commit of `lock` was made, whatever its commit-time says.

    Raises SourceError where the commit cannot be had, LockError where it is a tag's id, or a
    tree's or a file's.
    """
    with files.exclusive(workspace.cache):
        store = _store(lock, workspace)
        if store.resolve(lock.commit) is None:
            _fetch(lock, store, workspace)
        return _made(lock, store)


def _from_git(lock: Lock, store: Repository, workspace: Workspace) -> Base:
    _fetch(lock, store, workspace)
    when = _made(lock, store)
    if when != lock.commit_time:
        raise LockError(
            f"commit-time in upstream.lock is {lock.commit_time:%Y-%m-%dT%H:%M:%SZ}, "
            f"commit {lock.commit} is of {when:%Y-%m-%dT%H:%M:%SZ}",
            then="put the commit's time into upstream.lock",
        )
    return _pin(lock, store, lock.commit, Route.GIT, why=f"fetched from {lock.url}")


def _fetch(lock: Lock, store: Repository, workspace: Workspace) -> None:
    if workspace.offline:
        raise SourceError("--offline was given")
    with workspace.progress(f"fetch {lock.commit[:12]} from {lock.url}"):
        try:
            store.list_remote("HEAD", timeout=REACH)
            store.fetch("--depth=1", "--filter=blob:none", "--quiet", "origin", lock.commit)
        except CommandFailed as error:
            raise SourceError(
                f"commit {lock.commit} could not be fetched from {lock.url}:\n{error.output}",
                then="check the network, or git config --global url.<mirror>.insteadOf <host>; "
                "or --route wheel",
            ) from error


def _made(lock: Lock, store: Repository) -> datetime:
    commit = store.resolve(lock.commit)
    if commit is None:
        kind = store.run("cat-file", "-t", lock.commit).decode().strip()
        raise LockError(
            f"{lock.requested_revision} is no commit: {lock.commit} is a {kind} of git's",
            then="put a commit's id into upstream.lock",
        )
    if commit != lock.commit:
        raise LockError(
            f"commit-id {lock.commit} is the id of an annotated tag; its commit is {commit}",
            then="put the commit's id into upstream.lock",
        )
    return datetime.fromtimestamp(int(store.run("log", "-1", "--format=%ct", commit)), UTC)


def _from_wheel(lock: Lock, store: Repository, workspace: Workspace, *, why: str) -> Base:
    path = fetch.wheel(release.any_of(lock), workspace)
    ref = _ref(lock, Route.WHEEL)
    with workspace.progress(f"import {path.name}"), wheelfile.opened(path) as wheel:
        stream = _commit(lock, wheel, ref)
        store.run("fast-import", "--quiet", "--force", "--done", input=stream)
    commit = store.resolve(ref)
    if commit is None:
        raise SourceError(f"git fast-import made no commit of {path.name}")
    return _pin(lock, store, commit, Route.WHEEL, why=why)


def _pin(lock: Lock, store: Repository, commit: CommitId, route: Route, *, why: str) -> Base:
    tree = store.tree(commit)
    store.run("update-ref", _ref(lock, route), commit)
    return Base(lock=lock, store=store, commit=commit, tree=tree, route=route, why=why)


def _commit(lock: Lock, wheel: wheelfile.Wheel, ref: str) -> Iterator[bytes]:
    """A git-fast-import(1) stream of what all wheels of a release have in common."""
    name, address = IDENTITY
    message = f"{lock.name} {lock.version} as its release wheels have it\n".encode()
    yield f"commit {ref}\ncommitter {name} <{address}> {lock.epoch} +0000\n".encode()
    yield b"data %d\n%b" % (len(message), message)
    for path, info in sorted(wheel.members.items()):
        if info.is_dir() or not is_source(path, lock.name, wheel.dist_info):
            continue
        mode = "100755" if (info.external_attr >> 16) & stat.S_IXUSR else "100644"
        content = wheel.read(path)
        yield f"M {mode} inline {_quoted(f'{lock.subdirectory}/{path}')}\n".encode()
        yield b"data %d\n%b\n" % (len(content), content)
    yield b"done\n"


def is_source(path: str, package: str, dist_info: str) -> bool:
    """Whether a member is a file of the source tree, and not one made by the build."""
    made = path.startswith(f"{dist_info}/") or path == f"{package}/_version.py"
    return not made and not path.endswith(".so")


def _quoted(path: str) -> str:
    return '"' + path.replace("\\", "\\\\").replace('"', '\\"') + '"'
