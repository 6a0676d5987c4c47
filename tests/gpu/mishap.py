"""Ranks on a CPU of which the last one meets with a mishap, to see what is reported of it.

python -m tests.gpu.mishap raises --tree . --world-sizes 2
"""

import os
import signal
import sys
import time
from collections.abc import Mapping
from functools import partial
from typing import Any

from tests.gpu import report
from tests.gpu.ranks import Checks, Facts


def fine() -> Facts:
    return {"ok": True}


def raises() -> Facts:
    raise RuntimeError("made to raise")


def dies() -> Facts:
    os.kill(os.getpid(), signal.SIGKILL)
    return {"ok": True}


def hangs() -> Facts:
    time.sleep(600)
    return {"ok": True}


def errs() -> Facts:
    return {"ok": False, "error": 2.0}


MISHAPS = {check.__name__: check for check in (fine, raises, dies, hangs, errs)}


def work(mishap: str, rank: int, world_size: int, given: Mapping[str, Any]) -> Checks:
    """One check that is fine, then the mishap."""
    yield "before", fine
    yield "mishap", MISHAPS[mishap] if rank == world_size - 1 else fine


def main() -> int:
    parser = report.parser(__doc__ or "")
    parser.add_argument("mishap", choices=sorted(MISHAPS))
    arguments = parser.parse_args()
    return report.write(report.machine(), partial(work, arguments.mishap), arguments, device="cpu")


if __name__ == "__main__":
    sys.exit(main())
