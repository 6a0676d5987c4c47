"""The JSON report of a script of this folder: what each world size found, also when cut short."""

import argparse
import json
import signal
import sys
import time
from pathlib import Path

import torch

from tests.gpu import ranks
from tests.gpu.ranks import Facts, Work


def parser(description: str) -> argparse.ArgumentParser:
    """The arguments that every script takes."""
    made = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    made.add_argument("--tree", type=Path, required=True, help="the patched tree's python/")
    made.add_argument("--world-sizes", default="2,4,6,8")
    made.add_argument("--timeout", type=float, default=240, help="seconds a world size may take")
    return made


def machine() -> Facts:
    """The card and the software, for the record."""
    known = {"torch": torch.__version__, "python": sys.version.split()[0]}
    if not torch.cuda.is_available():
        return known
    free, total = torch.cuda.mem_get_info(0)
    return known | {
        "card": torch.cuda.get_device_name(0),
        "capability": list(torch.cuda.get_device_capability(0)),
        "memory_gib": round(total / 2**30, 1),
        "free_gib": round(free / 2**30, 1),
        "cuda": torch.version.cuda,
    }


def good(facts: Facts) -> bool:
    """Whether a rank ended, and each of its checks held."""
    over = not facts.keys() & {"error", "hung", "at"}
    return over and all(check["ok"] for check in facts["checks"].values())


def write(known: Facts, work: Work, arguments: argparse.Namespace, *, device: str = "cuda") -> int:
    """Run each world size, print what is known of them and return the exit status.

    Whatever ends the run, SIGTERM included, what had been found by then is printed.
    """
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    sizes = [int(size) for size in arguments.world_sizes.split(",")]
    given = {"tree": str(arguments.tree.resolve()), "device": device}
    done: Facts = {}
    try:
        for size in sizes:
            done[str(size)] = _world_size(size, work, given, arguments.timeout)
    finally:
        ok = len(done) == len(sizes) and all(here["ok"] for here in done.values())
        report = known | {
            "world_sizes": done,
            "not_finished": [size for size in sizes if str(size) not in done],
            "ok": ok,
        }
        sys.stdout.write(json.dumps(report, indent=1) + "\n")
        sys.stdout.flush()
    return 0 if ok else 1


def _world_size(size: int, work: Work, given: dict[str, str], timeout: float) -> Facts:
    started = time.perf_counter()
    by_rank = ranks.run(size, work, given, timeout=timeout, device=given["device"])
    failed = {str(rank): facts for rank, facts in enumerate(by_rank) if not good(facts)}
    return {
        "ok": not failed,
        "seconds": round(time.perf_counter() - started, 1),
        "rank_0": by_rank[0],
        "failed": failed,
    }
