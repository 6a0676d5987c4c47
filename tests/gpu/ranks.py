"""Runs checks as the ranks of a gloo group, all on the first GPU, and collects what they found."""

import faulthandler
import json
import multiprocessing
import os
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from multiprocessing.connection import wait
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

SETTINGS = {
    "TORCH_SYMM_MEM_ALLOW_OVERLAPPING_DEVICES": "1",
    "TORCH_SYMM_MEM_DISABLE_MULTICAST": "1",
}
"""torch's own switches: several ranks on one card, and no multicast, as on SM12X."""
GRACE = 15.0  # seconds that a rank whose peer failed has to notice
LAST_WORDS = 2.0  # seconds that a rank which is to be killed has to write its stack

Facts = dict[str, Any]
Checks = Iterator[tuple[str, Callable[[], Facts]]]
Work = Callable[[int, int, Mapping[str, Any]], Checks]


@dataclass(frozen=True, slots=True, kw_only=True)
class Seat:
    """A rank's place: who it is, and where its facts go."""

    rank: int
    world_size: int
    folder: Path
    device: str  # "cuda" or "cpu"
    started: float  # on time.monotonic's clock, which all processes share

    @property
    def path(self) -> Path:
        return self.folder / f"{self.rank}.json"

    def say(self, what: str) -> None:
        say(f"rank {self.rank} of {self.world_size}: {what}", since=self.started)

    def join(self) -> None:
        """Enter the group with a share of the processors; on a GPU, with a context of its own."""
        torch.set_num_threads(max(1, (os.cpu_count() or 1) // self.world_size))
        if self.device == "cuda":
            torch.cuda.set_device(0)
            torch.zeros(1, device="cuda")
        store = f"file://{self.folder}/store"
        dist.init_process_group(
            "gloo", rank=self.rank, world_size=self.world_size, init_method=store
        )

    def write(self, facts: Facts) -> None:
        """Whole or not at all: the reader may have to kill the writer."""
        beside = self.path.with_suffix(".part")
        beside.write_text(json.dumps(facts))
        beside.replace(self.path)


def say(what: str, *, since: float) -> None:
    """A line of progress on stderr, headed by the seconds since then."""
    sys.stderr.write(f"{time.monotonic() - since:7.1f} s  {what}\n")
    sys.stderr.flush()


def run(
    world_size: int, work: Work, given: Mapping[str, Any], *, timeout: float, device: str = "cuda"
) -> list[Facts]:
    """What the checks of `work(rank, world_size, given)` returned on each rank, by rank.

    "checks" has each one's facts and seconds. A rank that raised or died has "error", one that
    did not end within `timeout` seconds "hung"; both have "at", the check that was under way, and
    the stack of a hung one is on stderr.
    """
    context = multiprocessing.get_context("spawn")
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        seats = [
            Seat(rank=rank, world_size=world_size, folder=folder, device=device, started=started)
            for rank in range(world_size)
        ]
        processes = [context.Process(target=_rank, args=(seat, work, given)) for seat in seats]
        try:
            for process in processes:
                process.start()
            _wait(processes, started + timeout)
        finally:
            hung = [process.is_alive() for process in processes]
            _stop(processes)
        return [
            _collect(seat.path, hung[seat.rank], processes[seat.rank].exitcode) for seat in seats
        ]


def _wait(processes: list[SpawnProcess], end: float) -> None:
    """Until all have ended or the time is over; once one failed, little is left to the others."""
    running = processes
    while running and (left := end - time.monotonic()) > 0:
        wait([process.sentinel for process in running], left)
        if any(process.exitcode for process in processes):
            end = min(end, time.monotonic() + GRACE)
        running = [process for process in running if process.is_alive()]


def _stop(processes: list[SpawnProcess]) -> None:
    alive = [process for process in processes if process.is_alive()]
    for process in alive:
        if process.pid is not None:
            os.kill(process.pid, signal.SIGUSR1)
            time.sleep(0.1)  # one stack after another
    end = time.monotonic() + LAST_WORDS
    while any(process.is_alive() for process in alive) and time.monotonic() < end:
        time.sleep(0.1)
    for process in alive:
        process.kill()
        process.join()


def _collect(path: Path, hung: bool, exitcode: int | None) -> Facts:
    facts: Facts = json.loads(path.read_text()) if path.exists() else {"checks": {}}
    if hung:
        return facts | {"hung": True}
    if exitcode and "error" not in facts:
        return facts | {"error": f"the process ended with {exitcode}"}
    return facts


def _rank(seat: Seat, work: Work, given: Mapping[str, Any]) -> None:
    os.environ.update(SETTINGS)
    faulthandler.enable()
    faulthandler.register(signal.SIGUSR1, all_threads=True)
    facts: Facts = {"checks": {}, "at": "start"}
    try:
        seat.write(facts)
        seat.join()
        seat.say("joined")
        _check(seat, work(seat.rank, seat.world_size, given), facts)
        del facts["at"]
    except Exception:  # noqa: BLE001  # whatever it was, the parent reports it
        facts["error"] = traceback.format_exc()
        seat.say(facts["error"].splitlines()[-1])
    seat.write(facts)
    sys.stdout.flush()
    os._exit("error" in facts)  # a peer may have died: nothing is torn down in order


def _check(seat: Seat, checks: Checks, facts: Facts) -> None:
    for name, check in checks:
        seat.write(facts | {"at": name})
        facts["at"] = name
        seat.say(f"{name}...")
        started = time.perf_counter()
        found = check()
        facts["checks"][name] = found | {"seconds": round(time.perf_counter() - started, 2)}
        seat.write(facts)
        seat.say(f"{name}: {'ok' if found['ok'] else found}")
        dist.barrier()
