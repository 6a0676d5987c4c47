"""FlashInfer's all-reduce fusion of a patched tree as on SM12X: trtllm without multicast.

    python -m tests.gpu.fusion --tree build/sglang/python [--world-sizes 2,4,8]

Compares the fused all-reduce, residual and norm with float64, replays it from a CUDA graph, lets
the kernel decline in every way, makes one rank unable to fuse, and asks for what SM12X refuses.
The capability is faked; the kernels are those of the card, by FlashInfer 0.6.17 or newer, which
compiles them first (minutes; FLASHINFER_WORKSPACE_BASE names the folder that keeps them). Prints
one JSON object, and progress on stderr; exits 1 where a check failed. With --cpu, gloo stands in
for FlashInfer: the mechanics alone.
"""

import os
import sys
import time
import types
from collections.abc import Mapping
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

from tests.gpu import fusion_gloo, fusion_stubs, ranks, report
from tests.gpu.ranks import Checks, Facts
from tests.gpu.tree import replaced

HIDDEN = 4096
MAX_TOKENS = 2048
TOKENS = (1, 3, 16, 128, MAX_TOKENS)  # the last goes two-shot from 4 ranks on, the others one-shot
EPSILON = 1e-6
TOLERANCE = 1e-2  # relative, of bfloat16 values
PROMPTLY = 20  # seconds
REFUSED = (("mnnvl", 1), ("auto", 2), ("trtllm", 2))  # backend, nodes

_DECLINES: dict[str, Facts] = {
    "non-contiguous": {},
    "no workspace": {"_flashinfer_allreduce_unavailable": True},
    "no flashinfer": {"_flashinfer_comm": None},
}


class Rank:
    """One rank: a norm that fuses, and its checks."""

    def __init__(self, rank: int, world_size: int, python: Path, device: str) -> None:
        self.rank, self.world_size = rank, world_size
        self.device = torch.device(device)
        self.server = fusion_stubs.server(rank, world_size, *_below(device))
        self.fusion, layernorm = fusion_stubs.load(python, self.server, device)
        self.norm = layernorm.RMSNorm(HIDDEN, eps=EPSILON).to(self.device, torch.bfloat16)
        weight = torch.rand(HIDDEN, generator=torch.Generator().manual_seed(7)) + 0.5
        self.norm.weight.data.copy_(weight)

    def draw(self, tokens: int, seed: int) -> Any:
        generator = torch.Generator().manual_seed(seed)
        return torch.randn(tokens, HIDDEN, generator=generator).to(torch.bfloat16)

    def given(self, tokens: int, seed: int) -> tuple[Any, Any, Any]:
        """This rank's input, the residual, and the float64 sum of all ranks' inputs."""
        inputs = [self.draw(tokens, 1000 * seed + rank) for rank in range(self.world_size)]
        residual = self.draw(tokens, 1000 * seed + 100)
        total = sum(x.double() for x in inputs)
        return inputs[self.rank].to(self.device), residual.to(self.device), total

    def errors(self, result: Any, total: Any, *added: Any) -> Facts:
        """Of the norm and the residual, relative to float64."""
        residual = total + sum(x.double().cpu() for x in added)
        scale = torch.rsqrt(residual.pow(2).mean(-1, keepdim=True) + EPSILON)
        norm = residual * scale * self.norm.weight.double().cpu()
        return {"norm": _error(result[0], norm), "residual": _error(result[1], residual)}

    def settle(self) -> None:
        if self.device.type == "cuda":
            torch.cuda.synchronize()

    def warm_up(self) -> None:
        self.fusion.pre_initialize_workspaces(
            max_token_num=MAX_TOKENS, hidden_dim=HIDDEN, dtype=torch.bfloat16
        )

    def forward(
        self, tokens: int, *, attn: bool, post: bool, contiguous: bool = True
    ) -> tuple[Facts, bool]:
        """The errors of one norm, and whether its residual was left alone."""
        x, residual, total = self.given(tokens, tokens)
        addition = self.draw(tokens, 9).to(self.device) if post else None
        if not contiguous:
            x = torch.cat([x, x], dim=1)[:, :HIDDEN]
        kept = residual.clone()
        self.server.reduced.clear()
        result = self.norm.forward_with_allreduce_fusion(
            x, residual, addition, use_attn_tp_group=attn
        )
        self.settle()
        added = [kept] if addition is None else [kept, addition]
        return self.errors(result, total, *added), torch.equal(residual, kept)

    def workspaces(self) -> Facts:
        """Preflight, vote and creation, for both workspaces, without a word of multicast."""
        self.warm_up()
        managers = [self.fusion._get_workspace_manager(attn) for attn in (True, False)]
        backends = [manager.backend for manager in managers]
        asked = sorted(self.server.driver.asked)
        ok = (
            backends == ["trtllm", "trtllm"]
            and not self.fusion.is_flashinfer_allreduce_unavailable()
            and "cuMemCreate" in asked
            and "cuMulticastGetGranularity" not in asked
            and not self.server.warnings
        )
        return {"ok": ok, "backends": backends, "warnings": list(self.server.warnings)}

    def fused(self) -> Facts:
        found = {}
        for tokens in TOKENS:
            for attn, post in _FLAGS:
                errors, untouched = self.forward(tokens, attn=attn, post=post)
                plain = list(self.server.reduced)
                found[f"{tokens} {_named(attn, post)}"] = errors
                if plain or not untouched:
                    return {"ok": False, "reduced": plain, "untouched": untouched} | found
        return _within(found)

    def all_reduce_only(self) -> Facts:
        """What GroupCoordinator.all_reduce does past the communicator's gate."""
        group = self.server.groups["attn_tp"]
        found = {}
        for tokens in TOKENS:
            x, _, total = self.given(tokens, tokens)
            if not self.fusion.can_use_flashinfer_allreduce(
                x,
                use_attn_tp_group=True,
                expected_world_size=group.world_size,
                expected_group_key=(group.device_group, group.cpu_group),
            ):
                return {"ok": False, "declined": tokens}
            result = self.fusion.flashinfer_allreduce(x, use_attn_tp_group=True)
            self.settle()
            found[str(tokens)] = {"sum": _error(result, total)}
        return _within(found)

    def graph(self) -> Facts:
        x, residual, _ = self.given(16, 0)
        self.norm.forward_with_allreduce_fusion(x, residual)
        self.settle()
        dist.barrier()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            result = self.norm.forward_with_allreduce_fusion(x, residual)
        found = {}
        for seed in range(1, 6):
            now_x, now_residual, total = self.given(16, seed)
            x.copy_(now_x)
            residual.copy_(now_residual)
            graph.replay()
            self.settle()
            found[str(seed)] = self.errors(result, total, now_residual)
        return _within(found)

    def declined(self) -> Facts:
        """Whatever makes the kernel decline, the sum is not lost: one plain all-reduce."""
        found = {}
        for case, names in _DECLINES.items():
            for attn, post in _FLAGS:
                with replaced(self.fusion, **names):
                    errors, untouched = self.forward(
                        16, attn=attn, post=post, contiguous=case != "non-contiguous"
                    )
                plain = list(self.server.reduced)
                found[f"{case} {_named(attn, post)}"] = errors
                if plain != ["attn_tp" if attn else "moe_tp"] or not untouched:
                    return {"ok": False, "reduced": plain, "untouched": untouched} | found
        return _within(found)

    def one_rank_without_p2p(self) -> Facts:
        found = self._one_rank_without("_peer_access_refusal", lambda _: "made to refuse")
        said_once = len(found["warnings"]) == (self.rank == 0)
        return found | {"ok": found["ok"] and said_once}

    def one_rank_without_memory(self) -> Facts:
        return self._one_rank_without("_probe_cumem_create_sequence", lambda *_: False)

    def _one_rank_without(self, name: str, value: Any) -> Facts:
        """Fresh workspaces, and the last rank cannot have one: all decline, promptly."""
        self.server.buffers.clear()
        self.server.warnings.clear()
        last = self.rank == self.world_size - 1
        started = time.perf_counter()
        with replaced(self.fusion, _flashinfer_allreduce_unavailable=False):
            with replaced(self.fusion, **({name: value} if last else {})):
                self.warm_up()
            seconds = time.perf_counter() - started
            declined = self.fusion.is_flashinfer_allreduce_unavailable()
            errors, _ = self.forward(16, attn=True, post=False)
        found = _within({"16": errors})
        plain = list(self.server.reduced)
        ok = found["ok"] and declined and plain == ["attn_tp"] and seconds < PROMPTLY
        warnings = list(self.server.warnings)
        return found | {"ok": ok, "declined_after": round(seconds, 2), "warnings": warnings}

    def refused(self) -> Facts:
        """What SM12X cannot run resolves to nothing, and raises nothing."""
        resolved = {}
        for backend, nodes in REFUSED:
            arguments = types.SimpleNamespace(
                flashinfer_allreduce_fusion_backend=backend, nnodes=nodes
            )
            resolve = self.fusion.resolve_flashinfer_allreduce_fusion_backend
            resolved[f"{backend}, {nodes} nodes"] = resolve(arguments)
        return {"ok": not any(resolved.values())} | resolved


_FLAGS = [(attn, post) for attn in (True, False) for post in (False, True)]


def _named(attn: bool, post: bool) -> str:
    return ("attn_tp" if attn else "moe_tp") + (", with an addition" if post else "")


def _error(result: Any, expected: Any) -> float:
    return float((result.double().cpu() - expected).norm() / expected.norm())


def _within(found: dict[str, Facts]) -> Facts:
    """The largest error of each kind, and whether all are small."""
    worst = {
        f"max_{kind}_error": max(errors[kind] for errors in found.values())
        for kind in next(iter(found.values()))
    }
    ok = all(error < TOLERANCE for errors in found.values() for error in errors.values())
    return {"ok": ok, "cases": len(found)} | worst


def _below(device: str) -> tuple[Any, str]:
    """The CUDA driver, and FlashInfer's version."""
    if device == "cpu":
        fusion_gloo.install()
        return fusion_gloo.driver(), fusion_gloo.VERSION
    return import_module("cuda.bindings.driver"), version("flashinfer-python")


def work(rank: int, world_size: int, given: Mapping[str, Any]) -> Checks:
    """All checks on one rank."""
    with torch.inference_mode():
        me = Rank(rank, world_size, Path(given["tree"]), given["device"])
        yield "workspaces", me.workspaces
        yield "fused", me.fused
        yield "all_reduce_only", me.all_reduce_only
        if given["device"] == "cuda":
            yield "graph", me.graph
        yield "declined", me.declined
        yield "one_rank_without_p2p", me.one_rank_without_p2p
        yield "one_rank_without_memory", me.one_rank_without_memory
        yield "refused", me.refused


def _compiled(started: float) -> Facts:
    """In one process, before any rank starts: ranks that compile look hung."""
    ranks.say("FlashInfer compiles its kernels, unless it has them...", since=started)
    before = time.perf_counter()
    import_module("flashinfer.comm.trtllm_ar").get_trtllm_comm_module()
    seconds = round(time.perf_counter() - before, 1)
    ranks.say("compiled", since=started)
    return {"flashinfer": version("flashinfer-python"), "compiled_after": seconds}


def main() -> int:
    parser = report.parser(__doc__ or "")
    parser.set_defaults(world_sizes="2")
    parser.add_argument("--cpu", action="store_true", help="without GPU and FlashInfer")
    arguments = parser.parse_args()
    os.environ.update(ranks.SETTINGS)
    known = report.machine() | {"hidden": HIDDEN, "dtype": "bfloat16"}
    if arguments.cpu:
        return report.write(known, work, arguments, device="cpu")
    known |= _compiled(time.monotonic())
    return report.write(known, work, arguments)


if __name__ == "__main__":
    sys.exit(main())
