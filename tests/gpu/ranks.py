"""Runs a function as the ranks of a gloo group, all on the first GPU, and collects the facts."""

import json
import multiprocessing
import os
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

SETTINGS = {
    "TORCH_SYMM_MEM_ALLOW_OVERLAPPING_DEVICES": "1",
    "TORCH_SYMM_MEM_DISABLE_MULTICAST": "1",
}
"""torch's own switches: several ranks on one card, and no multicast, as on SM12X."""

Facts = dict[str, Any]


def run(
    world_size: int,
    work: Callable[[int, int, Mapping[str, Any]], Facts],
    given: Mapping[str, Any],
    *,
    timeout: float,
) -> list[Facts]:
    """What `work(rank, world_size, given)` returned on each rank, by rank.

    A rank that raised has "error", one that did not end within `timeout` seconds has "hung".
    """
    context = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as folder:
        processes = [
            context.Process(target=_rank, args=(rank, world_size, work, given, folder))
            for rank in range(world_size)
        ]
        end = time.monotonic() + timeout
        for process in processes:
            process.start()
        for process in processes:
            process.join(max(0.0, end - time.monotonic()))
        hung = [process.is_alive() for process in processes]
        for process in processes:
            process.kill()
        return [_collect(Path(folder, f"{rank}.json"), hung[rank]) for rank in range(world_size)]


def _collect(path: Path, hung: bool) -> Facts:
    if hung:
        return {"hung": True}
    if not path.exists():
        return {"error": "the process ended without a word"}
    facts: Facts = json.loads(path.read_text())
    return facts


def _rank(
    rank: int,
    world_size: int,
    work: Callable[[int, int, Mapping[str, Any]], Facts],
    given: Mapping[str, Any],
    folder: str,
) -> None:
    os.environ.update(SETTINGS)
    try:
        torch.cuda.set_device(0)
        torch.zeros(1, device="cuda")  # a context of its own
        store = f"file://{folder}/store"
        dist.init_process_group("gloo", rank=rank, world_size=world_size, init_method=store)
        facts = work(rank, world_size, given)
    except Exception:  # noqa: BLE001  # whatever it was, the parent reports it
        facts = {"error": traceback.format_exc()}
    Path(folder, f"{rank}.json").write_text(json.dumps(facts))
    sys.stdout.flush()
    os._exit(0)  # a peer may have died: nothing is torn down in order


def machine() -> Facts:
    """The card and the software, for the record."""
    free, total = torch.cuda.mem_get_info(0)
    return {
        "card": torch.cuda.get_device_name(0),
        "capability": list(torch.cuda.get_device_capability(0)),
        "memory_gib": round(total / 2**30, 1),
        "free_gib": round(free / 2**30, 1),
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        "python": sys.version.split()[0],
    }
