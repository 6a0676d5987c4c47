"""What the tree's flashinfer_comm_fusion and layernorm see of SGLang: as little as they need.

SM12X is faked by the capability probes, and the driver that the preflight is given refuses
multicast, as it does there.
"""

import logging
import types
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from packaging.version import Version

from tests.gpu import tree

GROUPS = ("tp", "attn_tp", "moe_ep", "moe_tp")
_LAYERS = "sglang.srt.layers"


@dataclass(slots=True, kw_only=True)
class Server:
    """The state that the modules read, and what they did."""

    parallel: Any
    arguments: Any
    driver: "Driver"
    flashinfer: str  # its version
    groups: dict[str, "Group"] = field(default_factory=dict)
    buffers: dict[str, Any] = field(default_factory=dict)
    reduced: list[str] = field(default_factory=list)  # groups, one entry a plain all-reduce
    warnings: list[str] = field(default_factory=list)


def server(rank: int, world_size: int, driver: Any, flashinfer: str) -> Server:
    """A server on one node whose attention and MoE ranks are all `world_size` ranks."""
    parallel = types.SimpleNamespace(
        tp_size=world_size,
        attn_tp_size=world_size,
        attn_tp_rank=rank,
        moe_ep_size=1,
        moe_ep_rank=0,
        moe_tp_size=world_size,
        moe_tp_rank=rank,
    )
    arguments = types.SimpleNamespace(flashinfer_allreduce_fusion_backend="auto", nnodes=1)
    made = Server(
        parallel=parallel, arguments=arguments, driver=Driver(driver), flashinfer=flashinfer
    )
    made.groups.update({name: Group(name, made) for name in GROUPS})
    return made


class Group:
    """As much of a GroupCoordinator as is needed: the world, and an all-reduce over gloo."""

    def __init__(self, name: str, server: Server) -> None:
        self.name = name
        self.device_group = self.cpu_group = dist.group.WORLD
        self.world_size = dist.get_world_size()
        self.server = server

    def all_reduce(self, x: Any) -> Any:
        assert x.is_contiguous()
        self.server.reduced.append(self.name)
        total = x.float().cpu()
        dist.all_reduce(total)
        return total.to(x.device, x.dtype)


class Driver:
    """The driver without multicast; remembers the calls it was asked for."""

    def __init__(self, real: Any) -> None:
        self.real = real
        self.asked: set[str] = set()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("cu"):
            self.asked.add(name)
        if name == "cuMulticastGetGranularity":
            return lambda *_: (self.real.CUresult.CUDA_ERROR_NOT_SUPPORTED, 0)
        return getattr(self.real, name)


class _Warnings(logging.Handler):
    def __init__(self, server: Server) -> None:
        super().__init__(logging.WARNING)
        self.server = server

    def emit(self, record: logging.LogRecord) -> None:
        self.server.warnings.append(record.getMessage())


def load(python: Path, server: Server, device: str) -> tuple[Any, Any]:
    """The tree's flashinfer_comm_fusion and layernorm, for this server."""
    for package in ("sglang", "sglang.kernels", "sglang.srt", _LAYERS, "sglang.srt.model_executor"):
        tree.stand_in(package)
    _for_layernorm()
    _for_both(server, device)
    fusion = tree.load(python, f"{_LAYERS}.flashinfer_comm_fusion")
    if fusion._flashinfer_comm is None:
        raise RuntimeError("flashinfer.comm did not load")
    fusion.logger.addHandler(_Warnings(server))
    return fusion, tree.load(python, f"{_LAYERS}.layernorm")


def _for_layernorm() -> None:
    def forward(norm: Any, x: Any, residual: Any, addition: Any) -> Any:
        # As sgl_kernel's, which writes to what it was given.
        for given, result in zip(
            (x, residual), norm.forward_native(x, residual, addition), strict=True
        ):
            given.copy_(result)
        return x, residual

    base = type("BaseFusedOp", (torch.nn.Module,), {"forward": forward})
    tree.stand_in("sglang.kernels.fused_op", BaseFusedOp=base)
    tree.stand_in(
        "sglang.srt.batch_invariant_ops",
        is_batch_invariant_mode_enabled=lambda: False,
        rms_norm_batch_invariant=None,
    )
    tree.stand_in("sglang.srt.environ", envs=None)
    tree.stand_in(
        "sglang.srt.model_executor.cuda_graph_config",
        Backend=None,
        Phase=None,
        check_cuda_graph_backend=None,
    )


def _for_both(server: Server, device: str) -> None:
    tree.stand_in(
        "sglang.srt.runtime_context",
        get_parallel=lambda: server.parallel,
        get_server_args=lambda: server.arguments,
        get_resources=lambda: types.SimpleNamespace(buffers=server.buffers),
        get_exec=None,
    )
    getters = {f"get_{name}_group": lambda name=name: server.groups[name] for name in GROUPS}
    tree.stand_in(
        "sglang.srt.distributed",
        tensor_model_parallel_all_reduce=None,
        tensor_model_parallel_fused_allreduce_rmsnorm=None,
        **getters,
    )
    tree.stand_in(
        "sglang.srt.distributed.parallel_state",
        GroupCoordinator=Group,
        in_the_same_node_as=lambda group, source_rank: [True] * dist.get_world_size(group),
    )
    tree.stand_in("sglang.srt.utils", **_utils(server))
    tree.stand_in(
        "sglang.srt.utils.custom_op",
        register_custom_op=_register_custom_op("CUDA" if device == "cuda" else "CPU"),
    )


def _utils(server: Server) -> dict[str, Any]:
    # Not is_cuda: layernorm then uses its native norm, and nothing of sgl_kernel.
    false = ("cpu_has_amx_support", "is_cpu", "is_cuda", "is_hip", "is_musa", "is_npu", "is_xpu")
    probes = {"is_sm90_supported": False, "is_sm100_supported": False, "is_sm120_supported": True}
    return {
        **{name: lambda: False for name in false},
        **{name: lambda value=value: value for name, value in probes.items()},
        "ceil_align": lambda x, y: (x + y - 1) // y * y,
        "check_pkg_version_at_least": lambda _, least: Version(server.flashinfer) >= Version(least),
        "get_bool_env_var": lambda _: False,
        "get_cuda_driver_bindings": lambda: server.driver,
        "is_flashinfer_available": lambda: True,
        "print_warning_once": lru_cache(server.warnings.append),
    }


def _register_custom_op(dispatch_key: str) -> Callable[..., Any]:
    """As SGLang's own, through torch.library: a kernel that declines returns None through it."""
    library = torch.library.Library("fusion_on_a_gpu", "FRAGMENT")

    def register_custom_op(*, mutates_args: list[str], fake_impl: Any) -> Callable[[Any], Any]:
        def decorate(op: Any) -> Any:
            library.define(op.__name__ + torch.library.infer_schema(op, mutates_args=mutates_args))
            library.impl(op.__name__, op, dispatch_key)
            library._register_fake(op.__name__, fake_impl)
            return getattr(torch.ops.fusion_on_a_gpu, op.__name__)

        return decorate

    return register_custom_op
