"""TorchSymmMemCommunicator of a patched tree as on SM12X: two-shot over peer mappings.

    python -m tests.gpu.symm --tree build/sglang/python [--world-sizes 2,4,6,8]

Compares all_reduce with a float64 sum at the edges and tails of what is admitted, replays it from
a CUDA graph, makes one rank's rendezvous fail, and looks for memory that is not given back. The
capability is faked around the constructor; the kernels are those of the card. Prints one JSON
object; exits 1 where a check failed.
"""

import argparse
import importlib.util
import json
import os
import sys
import time
import types
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

from tests.gpu import ranks
from tests.gpu.ranks import Facts

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


def load(tree: Path) -> Any:
    """The tree's torch_symm_mem module, with the tree's own tables, preflight and switches.

    What these import besides, and do not use here, is stood in for.
    """
    packages = ["sglang", "sglang.srt", "sglang.srt.distributed", _COMMUNICATORS]
    for name in packages:
        _stand_in(name, __path__=[])
    _stand_in("sglang.srt.utils", **{name: lambda v=value: v for name, value in _UTILS.items()})
    _stand_in("sglang.srt.cuda_vmm_utils", _gpu_fabric_clique=None)
    _stand_in(f"{_COMMUNICATORS}.cuda_wrapper", CudaRTLibrary=None)
    _stand_in("sglang.srt.distributed.parallel_state", in_the_same_node_as=None)
    execution = types.SimpleNamespace(comm=types.SimpleNamespace(enable_scattered_sconv=False))
    _stand_in(
        "sglang.srt.runtime_context", get_exec=lambda: execution, get_server_args=lambda: None
    )
    _from_tree(tree, "sglang.srt.environ")
    _from_tree(tree, f"{_COMMUNICATORS}.all_reduce_utils")
    _from_tree(tree, f"{_COMMUNICATORS}.custom_all_reduce_utils")
    return _from_tree(tree, f"{_COMMUNICATORS}.torch_symm_mem")


def _stand_in(name: str, **names: Any) -> None:
    module = types.ModuleType(name)
    vars(module).update(names)
    sys.modules[name] = module


def _from_tree(tree: Path, name: str) -> Any:
    path = tree.joinpath(*name.split(".")).with_suffix(".py")
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


@contextmanager
def _patched(target: Any, **names: Any) -> Iterator[None]:
    before = {name: getattr(target, name) for name in names}
    for name, value in names.items():
        setattr(target, name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            setattr(target, name, value)


class Rank:
    """One rank: builds communicators as on SM12X and checks them."""

    def __init__(self, rank: int, world_size: int, tree: Path) -> None:
        self.rank, self.world_size = rank, world_size
        self.module = load(tree)
        self.device = torch.device("cuda:0")

    def communicator(self) -> Any:
        with _patched(torch.cuda, get_device_capability=lambda *_: (12, 0)):
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

    def sums(self, comm: Any) -> Facts:
        errors = {}
        started = time.perf_counter()
        for seed, nbytes in enumerate(SIZES):
            numel = nbytes // 2
            result = comm.all_reduce(self.draw(self.rank, numel, seed).to(self.device))
            self.settle()
            errors[nbytes] = 9.0 if result is None else self.error(result, numel, seed)
        return {
            "ok": max(errors.values()) < TOLERANCE,
            "max_error": max(errors.values()),
            "sizes": len(errors),
            "seconds": round(time.perf_counter() - started, 2),
        }

    def declines(self, comm: Any) -> Facts:
        empty = [torch.empty(n // 2, device=self.device, dtype=torch.bfloat16) for n in DECLINED]
        wrong = torch.empty(MIB, device=self.device, dtype=torch.float16)
        return {"ok": all(comm.all_reduce(x) is None for x in [*empty, wrong])}

    def graph(self, comm: Any) -> Facts:
        numel = MIB // 2 + 6
        given = self.draw(self.rank, numel, 0).to(self.device)
        comm.all_reduce(given)
        self.settle()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            result = comm.all_reduce(given)
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
            with _patched(symm_mem, rendezvous=fail):
                comm = self.communicator()
        else:
            comm = self.communicator()
        seconds = time.perf_counter() - started
        self.settle()
        ok = comm.disabled and comm.buffer is None and seconds < 45
        return {"ok": ok, "seconds": round(seconds, 1)}

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


def work(rank: int, world_size: int, given: Mapping[str, Any]) -> Facts:
    """All checks on one rank."""
    me = Rank(rank, world_size, Path(given["tree"]))
    started = time.perf_counter()
    comm = me.communicator()
    facts: Facts = {
        "constructed": {
            "ok": not comm.disabled and not comm.has_multicast and not comm.use_multimem,
            "bytes": comm.buffer_size,
            "seconds": round(time.perf_counter() - started, 2),
        }
    }
    if facts["constructed"]["ok"]:
        facts["sums"] = me.sums(comm)
        facts["declines"] = me.declines(comm)
        facts["graph"] = me.graph(comm)
    del comm
    facts["switched_off"] = me.switched_off()
    facts["leak"] = me.leak()
    facts["one_rank_fails"] = me.one_rank_fails()
    return facts


def good(facts: Facts) -> bool:
    """Whether a rank ended, and each of its checks held."""
    return "constructed" in facts and all(check["ok"] for check in facts.values())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tree", type=Path, required=True, help="the patched tree's python/")
    parser.add_argument("--world-sizes", default="2,4,6,8")
    parser.add_argument("--timeout", type=float, default=240, help="seconds a world size may take")
    arguments = parser.parse_args()
    os.environ.update(ranks.SETTINGS)
    report: Facts = ranks.machine() | {"world_sizes": {}}
    ok = True
    for size in map(int, arguments.world_sizes.split(",")):
        started = time.perf_counter()
        given = {"tree": str(arguments.tree.resolve())}
        by_rank = ranks.run(size, work, given, timeout=arguments.timeout)
        here = all(good(facts) for facts in by_rank)
        ok = ok and here
        report["world_sizes"][size] = {
            "ok": here,
            "seconds": round(time.perf_counter() - started, 1),
            "rank_0": by_rank[0],
            "failed": {rank: facts for rank, facts in enumerate(by_rank) if not good(facts)},
        }
    sys.stdout.write(json.dumps(report | {"ok": ok}, indent=1) + "\n")
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
