"""A run of test files in one environment, whatever they do to the processes they run in.

Files are dealt into batches, a pytest process each. Where one dies, the test that was running is
to blame, and a new process goes on with the rest of the batch.
"""

import tempfile
import threading
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from pathlib import Path

from scripts import files
from scripts.attempt import Attempt, Place
from scripts.case import Case, Cases
from scripts.journal import Journal
from scripts.workspace import Progress

Batch = Sequence[str]
"""Paths of test files, or ids of tests, that share a process; relative to the tree."""


def run(
    batches: Sequence[Batch], place: Place, *, jobs: int, progress: Progress, title: str = "tests"
) -> Cases:
    """Run every batch, `jobs` at a time, and return how each test ended.

    After Ctrl-C what is known until then comes back, with `whole` false: the caller decides.
    Raises InstallError where pytest cannot even start.
    """
    stop = threading.Event()
    with (  # a short name: paths of sockets are limited to 108 bytes
        tempfile.TemporaryDirectory(prefix="ut", ignore_cleanup_errors=True) as home,
        progress(title, sum(map(len, batches))) as advance,
        ThreadPoolExecutor(max_workers=jobs) as pool,
    ):
        runs = [
            _Run(batch, place, Path(home) / str(number), stop)
            for number, batch in enumerate(batches)
        ]
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
    by_id = {case.id: case for each in runs for case in each.cases.values()}
    notes = tuple(note for each in runs for note in each.notes)
    return Cases(by_id=dict(sorted(by_id.items())), whole=whole, notes=notes)


def _wait(pending: set[Future[None]]) -> set[Future[None]]:
    done, left = wait(pending, timeout=0.5, return_when=FIRST_COMPLETED)
    for future in done:
        future.result()
    return left


class _Run:
    """A batch under way: attempts, one after another, until each of its tests has ended."""

    def __init__(self, batch: Batch, place: Place, home: Path, stop: threading.Event) -> None:
        self._batch = batch
        self._place = place
        self._home = home
        self._stop = stop
        self.cases: dict[str, Case] = {}
        self.notes: list[str] = []
        self.files_done = 0

    def run(self) -> None:
        left = list(self._batch)
        while left and not self._stop.is_set():
            attempt = Attempt(self._place, self._home, self._stop, self._see)
            try:
                ended = attempt.run(left, self.cases)
            finally:
                files.remove(self._home)
            self.cases.update(ended.cases)
            self.notes.extend(ended.notes)
            left = ended.left
        self.files_done = len(self._batch)

    def _see(self, journal: Journal) -> None:
        known = {case.file for case in (*self.cases.values(), *journal.cases.values())}
        self.files_done = max(self.files_done, min(len(known), len(self._batch)) - 1)
