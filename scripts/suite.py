"""A run of test files in one environment, whatever they do to the processes they run in.

Files are dealt into batches, a pytest process each. Where one dies, the test that was running is
to blame, and a new process goes on with the rest of the batch.
"""

import os
import shutil
import tempfile
import threading
from collections.abc import Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path

from scripts.attempt import Attempt, Place
from scripts.case import Case, Cases
from scripts.journal import Journal
from scripts.workspace import Progress


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Test files, or ids of tests, that share a process; relative to the tree of `place`."""

    place: Place
    paths: tuple[str, ...]


def run(batches: Sequence[Batch], *, jobs: int, progress: Progress, title: str) -> list[Cases]:
    """Run the batches, `jobs` at a time, and return how the tests of each ended.

    After Ctrl-C what is known until then comes back, with `whole` false: the caller decides.
    Raises InstallError where pytest cannot even start.
    """
    stop = threading.Event()
    with (  # a short name: paths of sockets are limited to 108 bytes
        tempfile.TemporaryDirectory(prefix="ut", ignore_cleanup_errors=True) as home,
        progress(title, sum(len(batch.paths) for batch in batches)) as advance,
        ThreadPoolExecutor(max_workers=jobs) as pool,
    ):
        runs = [_Run(batch, Path(home) / str(number), stop) for number, batch in enumerate(batches)]
        pending = {pool.submit(each.run) for each in runs}
        whole = True
        try:
            while pending:
                pending = _wait(pending)
                advance(sum(each.files_done for each in runs))
        except KeyboardInterrupt:
            whole = False
        finally:
            stop.set()
            for future in pending:
                future.cancel()
    return [each.ended(whole=whole) for each in runs]


def merged(parts: Iterable[Cases]) -> Cases:
    """The cases of several batches as those of one run, by their ids' order."""
    parts = list(parts)
    by_id = {case.id: case for part in parts for case in part}
    return Cases(
        by_id=dict(sorted(by_id.items())),
        whole=all(part.whole for part in parts),
        notes=tuple(note for part in parts for note in part.notes),
    )


def _wait(pending: set[Future[None]]) -> set[Future[None]]:
    done, left = wait(pending, timeout=0.5, return_when=FIRST_COMPLETED)
    for future in done:
        future.result()
    return left


def _clear(home: Path) -> None:
    """Remove `home`, also where tests took rights away in it."""
    for folder, _, _ in os.walk(home):
        Path(folder).chmod(0o700)
    shutil.rmtree(home)


class _Run:
    """A batch under way: attempts, one after another, until each of its tests has ended."""

    def __init__(self, batch: Batch, home: Path, stop: threading.Event) -> None:
        self._batch = batch
        self._home = home
        self._stop = stop
        self._cases: dict[str, Case] = {}
        self._notes: list[str] = []
        self.files_done = 0

    def run(self) -> None:
        left = list(self._batch.paths)
        while left and not self._stop.is_set():
            attempt = Attempt(self._batch.place, self._home, self._stop, self._see)
            try:
                ended = attempt.run(left, self._cases)
            finally:
                _clear(self._home)
            self._cases.update(ended.cases)
            self._notes.extend(ended.notes)
            left = ended.left
        self.files_done = len(self._batch.paths)

    def _see(self, journal: Journal) -> None:
        known = {case.file for case in (*self._cases.values(), *journal.cases.values())}
        self.files_done = max(self.files_done, min(len(known), len(self._batch.paths)) - 1)

    def ended(self, *, whole: bool) -> Cases:
        return Cases(by_id=dict(self._cases), whole=whole, notes=tuple(self._notes))
