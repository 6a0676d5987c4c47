"""One pytest process: started apart, watched, and ended with all that it started."""

import os
import shutil
import threading
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from scripts.case import Case, Ending
from scripts.environment import Environment
from scripts.errors import InstallError
from scripts.journal import Journal
from scripts.proc import Group

_GRACE = 20.0  # seconds beyond the time limit, until a hanging process is killed from outside
_STARTUP = 600.0  # seconds without an event while no test runs: imports can be slow
_LOOK = 0.1  # seconds between two looks at a process
_MEASURE = 2.0  # seconds between two measurements of the disk
_GIB = 1 << 30
_PLUGIN = "sglang_sm120_recorder"
_RECORDER = Path(__file__).with_name("recorder.py")  # imports pytest, which is not here


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a test may use: `seconds`, and bytes of disk; `reserve` stays free for others."""

    seconds: float = 180.0
    disk: int = 8 * _GIB
    reserve: int = 1 * _GIB


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where tests run: the tree beside them, the environment under test, and what both allow.

    `options` are pytest's; `users` is the environment that this program was started in.
    """

    tree: Path
    environment: Environment
    users: dict[str, str]
    options: tuple[str, ...] = ()
    limits: Limits = field(default_factory=Limits)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """What came of an attempt: the tests that ended, the files to go on with, what to note."""

    cases: dict[str, Case]
    left: list[str]
    notes: tuple[str, ...] = ()


class Attempt:
    """A pytest process on `paths` in a `home` of its own, a folder that does not exist yet.

    `see` is told of each new event.
    """

    def __init__(
        self, place: Place, home: Path, stop: threading.Event, see: Callable[[Journal], None]
    ) -> None:
        self._place = place
        self._home = home
        self._stop = stop
        self._see = see
        self._journal = Journal(path=home / "journal")
        self._moved = time.monotonic()
        self._measured = 0.0

    def run(self, paths: Sequence[str], done: Collection[str]) -> Ended:
        """Run the tests of `paths` that are not `done`. Raises InstallError where none starts."""
        for name in ("home", "tmp", "cache", "plugins"):
            (self._home / name).mkdir(parents=True)
        shutil.copy(_RECORDER, self._home / "plugins" / f"{_PLUGIN}.py")
        (self._home / "done").write_text("".join(f"{name}\n" for name in done))
        group = Group(
            self._argv(paths),
            env=variables(self._place, self._home),
            cwd=self._place.tree,
            log=self._home / "log",
            limit=self._place.limits.disk,
        )
        try:
            cause = self._watch(group)
            if cause is Ending.HUNG:
                group.abort()
                time.sleep(1)
        finally:
            left = group.end()
        self._journal.read()
        if self._stop.is_set():
            return Ended(cases=self._journal.cases, left=[])
        status = group.poll() or 0
        missing = [
            name for name in self._journal.collected or () if name not in self._journal.cases
        ]
        if self._journal.collected is not None and not missing:
            return Ended(
                cases=self._journal.cases, left=[], notes=self._notes(paths, cause, status, left)
            )
        return self._blame(cause or _cause(status, left), paths, missing)

    def _argv(self, paths: Sequence[str]) -> list[str | Path]:
        place = self._place
        ini = place.tree / "test" / "pytest.ini"
        tmp = self._home / "tmp" / "pytest"
        return [
            *(str(place.environment.python), "-m", "pytest", "-q", "--tb=short"),
            *("-p", "no:cacheprovider", "-p", _PLUGIN, f"--journal={self._journal.path}"),
            *(f"--done={self._home / 'done'}", f"--rootdir={place.tree}", f"--basetemp={tmp}"),
            *("-c", str(ini) if ini.exists() else os.devnull, "-o", "asyncio_mode=auto"),
            *(f"--timeout={place.limits.seconds:g}", "--timeout-method=signal"),
            *("--continue-on-collection-errors", *place.options, *paths),
        ]

    def _watch(self, group: Group) -> Ending | None:
        """Wait until the process ends, or say why it has to be ended."""
        while group.poll() is None:
            if self._stop.wait(_LOOK):
                return None
            if self._journal.read():
                self._moved = time.monotonic()
                self._see(self._journal)
            if time.monotonic() - self._moved > self._patience():
                return Ending.HUNG
            if time.monotonic() - self._measured > _MEASURE:
                self._measured = time.monotonic()
                if self._full():
                    return Ending.FILLED_DISK
        return None

    def _patience(self) -> float:
        limit = self._place.limits.seconds + _GRACE
        return limit if self._journal.running or self._journal.ended else max(_STARTUP, limit)

    def _full(self) -> bool:
        limits = self._place.limits
        free = shutil.disk_usage(self._home).free
        return free < limits.reserve or _size(self._home) > limits.disk

    def _blame(self, cause: Ending, paths: Sequence[str], missing: Sequence[str]) -> Ended:
        """Say what the process died of, and which files to go on with."""
        journal, said = self._journal, _tail(self._home / "log")
        culprit = journal.running or journal.collecting or next(iter(missing), None)
        if culprit is None:
            raise InstallError(
                f"pytest could not start for {paths[0]}:\n{said}",
                then="remove the folder environments/ in the cache, and run this again",
            )
        cases = journal.cases | {culprit: Case(id=culprit, ending=cause, detail=said)}
        if journal.collected is None:
            return Ended(cases=cases, left=[path for path in paths if _file(path) != culprit])
        waiting = {_file(name) for name in missing if name != culprit}
        return Ended(cases=cases, left=[path for path in paths if _file(path) in waiting])

    def _notes(
        self, paths: Sequence[str], cause: Ending | None, status: int, left: int
    ) -> tuple[str, ...]:
        """What went wrong after the last test, which therefore is no test's fault."""
        what = []
        if cause is not None:
            what.append(f"{cause} after the last test")
        elif status < 0 or status > 128:
            what.append(f"died of signal {abs(status) % 128} after the last test")
        elif left:
            what.append(f"left {left} processes behind")
        others = f" and {len(paths) - 1} others" if len(paths) > 1 else ""
        return tuple(f"{paths[0]}{others}: {one}" for one in what)


def variables(place: Place, home: Path) -> dict[str, str]:
    """The whole environment of a test: nothing of the user's but where programs and GPUs are."""
    kept = ("LD_LIBRARY_PATH", "CUDA_HOME", "CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES")
    users = place.users
    return {name: users[name] for name in kept if users.get(name)} | {
        "PATH": f"{place.environment.path}:{users.get('PATH', '/usr/bin:/bin')}",
        "PYTHONPATH": str(home / "plugins"),
        "HOME": str(home / "home"),
        "TMPDIR": str(home / "tmp"),
        "XDG_CACHE_HOME": str(home / "cache"),
        "HF_HOME": str(home / "cache" / "hub"),
        "HF_HUB_OFFLINE": "1",
        "TRANSFORMERS_OFFLINE": "1",
        "SGLANG_IS_IN_CI": "true",
        "PYTHONHASHSEED": "0",
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_CONFIG_NOSYSTEM": "1",
        "LANG": "C.UTF-8",
        "TZ": "UTC",
    }


def _cause(status: int | None, left: int) -> Ending:
    """The shell around pytest was killed while pytest lived, or pytest itself died."""
    return Ending.KILLED_PARENT if left and status is not None and status < 0 else Ending.CRASHED


def _tail(log: Path) -> str:
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - 8000))
        return file.read().decode(errors="replace").strip()


def _size(folder: Path) -> int:
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            try:
                total += (Path(place) / name).lstat().st_blocks * 512
            except OSError:
                continue  # removed meanwhile
    return total


def _file(name: str) -> str:
    return name.partition("::")[0]
