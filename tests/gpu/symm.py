"""TorchSymmMemCommunicator of a patched tree as on SM12X: two-shot over peer mappings.

    python -m tests.gpu.symm --tree build/sglang/python [--world-sizes 2,4,6,8]

Compares all_reduce with a float64 sum at the edges and tails of what is admitted, replays it from
a CUDA graph, makes one rank's rendezvous fail, and looks for memory that is not given back. The
capability is faked around the constructor; the kernels are those of the card. Prints one JSON
object, and progress on stderr; exits 1 where a check failed.
"""

import os
import sys
import time
import types
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

from tests.gpu import ranks, report, tree
from tests.gpu.ranks import Checks, Facts
from tests.gpu.tree import replaced

KIB, MIB = 1 << 10, 1 << 20
SIZES = [
    *(64 * KIB + 4 * tail for tail in range(9)),
    *(MIB - 4, MIB, MIB + 12, 9 * 2 * 4096, 16 * MIB + 4, 64 * MIB - 4),
]
"""Bytes: the floor, every tail after it, odd shapes, and the largest payload admitted."""
DECLINED = (4, 64 * KIB - 4, 64 * MIB)
TOLERANCE = 1e-2  # relative, of a sum of up to eight bfloat16 values
CYCLES = 4
LEAK = 32 * MIB  # less than one buffer

_UTILS = {"is_cuda": True, "is_hip": False, "is_musa": False}
_COMMUNICATORS = "sglang.srt.distributed.device_communicators"


def load(python: Path) -> Any:
    """The tree's torch_symm_mem module, with the tree's own tables, preflight and switches.

    What these import besides, and do not use here, is stood in for.
    """
    packages = ["sglang", "sglang.srt", "sglang.srt.distributed", _COMMUNICATORS]
    for name in packages:
        tree.stand_in(name)
    tree.stand_in("sglang.srt.utils", **{name: lambda v=value: v for name, value in _UTILS.items()})
    tree.stand_in("sglang.srt.cuda_vmm_utils", _gpu_fabric_clique=None)
    tree.stand_in(f"{_COMMUNICATORS}.cuda_wrapper", CudaRTLibrary=None)
    tree.stand_in("sglang.srt.distributed.parallel_state", in_the_same_node_as=None)
    execution = types.SimpleNamespace(comm=types.SimpleNamespace(enable_scattered_sconv=False))
    tree.stand_in(
        "sglang.srt.runtime_context", get_exec=lambda: execution, get_server_args=lambda: None
    )
    tree.load(python, "sglang.srt.environ")
    tree.load(python, f"{_COMMUNICATORS}.all_reduce_utils")
    tree.load(python, f"{_COMMUNICATORS}.custom_all_reduce_utils")
    return tree.load(python, f"{_COMMUNICATORS}.torch_symm_mem")


class Rank:
    """One rank: builds communicators as on SM12X and checks them."""

    def __init__(self, rank: int, world_size: int, python: Path) -> None:
        self.rank, self.world_size = rank, world_size
        self.module = load(python)
        self.device = torch.device("cuda:0")
        self.comm: Any = None

    def communicator(self) -> Any:
        with replaced(torch.cuda, get_device_capability=lambda *_: (12, 0)):
            return self.module.TorchSymmMemCommunicator(dist.group.WORLD, self.device)

    def draw(self, rank: int, numel: int, seed: int) -> Any:
        generator = torch.Generator().manual_seed(100 * seed + rank)
        return torch.randn(numel, generator=generator).to(torch.bfloat16)

    def error(self, result: Any, numel: int, seed: int) -> float:
        """Relative to the float64 sum over all ranks."""
        inputs = (self.draw(rank, numel, seed) for rank in range(self.world_size))
        expected = sum(x.double() for x in inputs)
        return float((result.double().cpu() - expected).norm() / expected.norm())

    def settle(self) -> None:
        torch.cuda.synchronize()
        dist.barrier()

    def constructed(self) -> Facts:
        self.comm = comm = self.communicator()
        return {
            "ok": not comm.disabled and not comm.has_multicast and not comm.use_multimem,
            "bytes": comm.buffer_size,
        }

    def sums(self) -> Facts:
        errors = {}
        for seed, nbytes in enumerate(SIZES):
            numel = nbytes // 2
            result = self.comm.all_reduce(self.draw(self.rank, numel, seed).to(self.device))
            self.settle()
            errors[nbytes] = 9.0 if result is None else self.error(result, numel, seed)
        return {
            "ok": max(errors.values()) < TOLERANCE,
            "max_error": max(errors.values()),
            "sizes": len(errors),
        }

    def declines(self) -> Facts:
        empty = [torch.empty(n // 2, device=self.device, dtype=torch.bfloat16) for n in DECLINED]
        wrong = torch.empty(MIB, device=self.device, dtype=torch.float16)
        return {"ok": all(self.comm.all_reduce(x) is None for x in [*empty, wrong])}

    def graph(self) -> Facts:
        numel = MIB // 2 + 6
        given = self.draw(self.rank, numel, 0).to(self.device)
        self.comm.all_reduce(given)
        self.settle()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            result = self.comm.all_reduce(given)
        errors = []
        for seed in range(1, 6):
            given.copy_(self.draw(self.rank, numel, seed))
            self.settle()
            graph.replay()
            self.settle()
            errors.append(self.error(result, numel, seed))
        return {"ok": max(errors) < TOLERANCE, "max_error": max(errors), "replays": len(errors)}

    def one_rank_fails(self) -> Facts:
        """The last rank's rendezvous raises; all must decline, and none wait for long."""
        symm_mem = self.module.torch_symm_mem

        def fail(*_: Any) -> None:
            raise RuntimeError("made to fail")

        self.settle()
        started = time.perf_counter()
        if self.rank == self.world_size - 1:
            with replaced(symm_mem, rendezvous=fail):
                comm = self.communicator()
        else:
            comm = self.communicator()
        seconds = time.perf_counter() - started
        self.settle()
        ok = comm.disabled and comm.buffer is None and seconds < 45
        return {"ok": ok, "declined_after": round(seconds, 1)}

    def switched_off(self) -> Facts:
        switch = self.module.envs.SGLANG_TORCH_SYMM_MEM_TWO_SHOT
        with switch.override("0" if self.rank == 0 else "auto"):  # one rank is enough
            return {"ok": self.communicator().disabled}

    def leak(self) -> Facts:
        """Memory of the card that is still taken after communicators came and went."""

        def free() -> int:
            self.settle()
            return int(torch.cuda.mem_get_info(0)[0])

        def cycle() -> None:
            x = torch.ones(MIB, device=self.device, dtype=torch.bfloat16)
            comm = self.communicator()
            comm.all_reduce(x)
            self.settle()

        cycle()
        before = free()
        for _ in range(CYCLES):
            cycle()
        lost = before - free()
        return {"ok": lost < LEAK, "bytes": lost, "cycles": CYCLES}


def work(rank: int, world_size: int, given: Mapping[str, Any]) -> Checks:
    """All checks on one rank."""
    me = Rank(rank, world_size, Path(given["tree"]))
    yield "constructed", me.constructed
    if not me.comm.disabled:
        yield "sums", me.sums
        yield "declines", me.declines
        yield "graph", me.graph
    me.comm = None
    yield "switched_off", me.switched_off
    yield "leak", me.leak
    yield "one_rank_fails", me.one_rank_fails


def main() -> int:
    arguments = report.parser(__doc__ or "").parse_args()
    os.environ.update(ranks.SETTINGS)
    return report.write(report.machine(), work, arguments)


if __name__ == "__main__":
    sys.exit(main())
