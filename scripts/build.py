"""The main job: from the lock and the series to verified wheels in dist/."""

import hashlib
import json
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter

from scripts import fetch, files, lock, overlay, patched, postconditions, series, source, verify
from scripts.errors import UsageError
from scripts.lock import Lock, ReleaseWheel
from scripts.patched import Patched
from scripts.series import Series
from scripts.source import Route
from scripts.workspace import Workspace


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """A verified wheel in dist/: size in bytes, sha256 in hexadecimal.

    `facts` describes the source it was made from; `reused` says that it was there already.
    """

    path: Path
    size: int
    sha256: str
    facts: dict[str, object]
    reused: bool


@dataclass(frozen=True, slots=True)
class Clock:
    """Seconds spent in each step, by its name."""

    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        started = perf_counter()
        try:
            yield
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + perf_counter() - started


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What is to be built: the lock with the series, by which route, in which workspace."""

    lock: Lock
    series: Series
    route: Route
    workspace: Workspace
    clock: Clock = field(default_factory=Clock)

    def patched(self) -> Patched:
        """The series on its base, and does what it is for.

        Raises SourceError, ApplyError or PostconditionError.
        """
        with self.clock.step("source"):
            base = source.obtain(self.lock, self.workspace, self.route)
        with self.clock.step("apply"):
            result = patched.apply(base, self.series, self.workspace)
        with self.clock.step("post-conditions"):
            postconditions.prove(result)
        return result


def job(workspace: Workspace, route: Route) -> Job:
    """The job that upstream.lock and patchset/ describe. Raises LockError or SeriesError."""
    return Job(
        lock=lock.load(workspace.lock),
        series=series.load(workspace.patchset),
        route=route,
        workspace=workspace,
    )


def in_dist(pinned: Lock, workspace: Workspace) -> list[Path]:
    """The wheels of dist/ that have the lock's version; others, of older locks, are told.

    Raises UsageError where there is none.
    """
    version = pinned.distribution_version
    found = sorted(workspace.dist.glob("*.whl"))
    wheels = [path for path in found if path.name.startswith(f"{pinned.name}-{version}-")]
    if others := [path.name for path in found if path not in wheels]:
        workspace.say(f"left out of dist/: {', '.join(others)} (upstream.lock has {version})")
    if not wheels:
        raise UsageError(f"no wheel of {version} in {workspace.dist}", then="nox -s build_wheel")
    return wheels


def wheels(
    job: Job, releases: Sequence[ReleaseWheel], describe: Callable[[Patched], dict[str, object]]
) -> tuple[Built, ...]:
    """Overlay, verify and place one wheel for each of `releases`.

    What was built before from the same lock, series and code, and still has its hash, is left as
    it is. Raises FetchError, WheelError or VerifyError; wheels finished before that stay.
    """
    payload: overlay.Payload | None = None
    built: list[Built] = []
    workspace = job.workspace
    with files.exclusive(workspace.dist), workspace.progress("wheels", len(releases)) as advance:
        for number, release in enumerate(releases, 1):
            with job.clock.step("look for a finished wheel"):
                found = _finished(job, release)
            if found is None:
                payload = payload or overlay.prepare(job.patched())
                found = _build(job, payload, release, describe(payload.patched))
            built.append(found)
            advance(number)
    return tuple(built)


def _build(
    job: Job, payload: overlay.Payload, release: ReleaseWheel, facts: dict[str, object]
) -> Built:
    workspace = job.workspace
    with job.clock.step("fetch"):
        base = fetch.wheel(release, workspace)
    path = _path(job, release)
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=".", suffix=".new") as folder:
        new = Path(folder) / path.name
        with job.clock.step("overlay"):
            overlay.overlay(payload, release, base, new)
        with job.clock.step("verify"):
            verify.verify(new, job.lock, job.series, release, base)
        sha256 = files.sha256(new)
        with files.replacing(path) as beside:
            new.rename(beside)
    built = Built(path=path, size=path.stat().st_size, sha256=sha256, facts=facts, reused=False)
    stamp = _stamp(job, release)
    with files.replacing(stamp) as beside:
        record = {"key": _key(job, release), "sha256": sha256, "facts": facts}
        beside.write_text(json.dumps(record))
    return built


def _path(job: Job, release: ReleaseWheel) -> Path:
    return job.workspace.dist / overlay.file_name(job.lock, release.tag)


def _stamp(job: Job, release: ReleaseWheel) -> Path:
    return job.workspace.build / "stamps" / f"{_path(job, release).name}.json"


def _finished(job: Job, release: ReleaseWheel) -> Built | None:
    """The wheel in dist/, where nothing that it was made from has changed since."""
    path = _path(job, release)
    try:
        record = json.loads(_stamp(job, release).read_bytes())
        facts = dict(record["facts"])
        if record["key"] != _key(job, release) or files.sha256(path) != record["sha256"]:
            return None
    except (OSError, ValueError, KeyError, TypeError):
        return None  # no stamp, or one cut off: the wheel is built again
    if job.route not in (Route.AUTO, facts["route"]):
        return None
    return Built(
        path=path,
        size=path.stat().st_size,
        sha256=record["sha256"],
        facts=facts,
        reused=True,
    )


def _key(job: Job, release: ReleaseWheel) -> str:
    """A hash of all that a wheel is made from: lock, series, release, and this code."""
    code = sorted(Path(__file__).parent.rglob("*.py"))
    parts = [repr(job.lock), repr(release), *(patch.sha256 for patch in job.series.patches)]
    parts += [files.sha256(path) for path in code]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()
