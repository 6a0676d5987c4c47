"""FlashInfer's trtllm fusion and the CUDA driver without a GPU: gloo does the kernel's work.

For the mechanics of tests.gpu.fusion on a CPU: it proves nothing of FlashInfer's kernels.
"""

import types
from typing import Any
from unittest.mock import MagicMock

import torch
import torch.distributed as dist

from tests.gpu import tree

VERSION = "0.6.17"  # whose interface this is
GRANULARITY = 2 << 20


class Workspace:
    """Large enough for what it was made for."""

    backend = "trtllm"

    def __init__(self, group: Any, numel: int) -> None:
        self.group, self.numel = group, numel
        self.metadata = {"use_fp32_lamport": False}

    def is_buffer_size_sufficient(
        self, tp_size: int, num_tokens: int, hidden_dim: int, dtype: Any
    ) -> bool:
        return num_tokens * hidden_dim <= self.numel


def create_workspace(
    *, max_token_num: int, hidden_dim: int, group: Any, comm_backend: Any, **_: Any
) -> Workspace:
    dist.barrier(group)  # the ranks exchange handles: one that is alone in here waits
    return Workspace(group, max_token_num * hidden_dim)


def allreduce_fusion(
    *, input: Any, workspace: Workspace, pattern: str, trigger_completion_at_end: bool, **named: Any
) -> None:
    total = input.float()
    dist.all_reduce(total, group=workspace.group)
    if pattern == "all-reduce":
        named["output"].copy_(total)
        return
    residual = total + named["residual_in"].float()
    scale = torch.rsqrt(residual.pow(2).mean(-1, keepdim=True) + named["rms_eps"])
    named["residual_out"].copy_(residual)
    named["norm_out"].copy_(residual * scale * named["rms_gamma"].float())


class CommBackend:
    """What FlashInfer's backends are made of."""

    def __init__(self, group: Any) -> None:
        self.group = group


def install() -> None:
    """Put `flashinfer` in place, and one card into torch.cuda."""
    patterns = types.SimpleNamespace(kAllReduce="all-reduce", kARResidualRMSNorm="norm")
    tree.stand_in("flashinfer")
    tree.stand_in(
        "flashinfer.comm",
        allreduce_fusion=allreduce_fusion,
        create_allreduce_fusion_workspace=create_workspace,
        AllReduceFusionPattern=patterns,
    )
    tree.stand_in(
        "flashinfer.comm.mnnvl",
        TorchDistBackend=CommBackend,
        CommBackend=CommBackend,
        is_mnnvl_fabric_supported=lambda _: False,
    )
    torch.cuda.current_device = lambda: 0
    torch.cuda.device_count = lambda: 1
    torch.cuda.get_device_properties = lambda _: types.SimpleNamespace(uuid="the only card")


def driver() -> Any:
    """A driver that grants whatever it is asked for."""
    made = MagicMock()
    success = made.CUresult.CUDA_SUCCESS
    made.cuDeviceGetAttribute.return_value = (success, 1)
    made.cuMemGetAllocationGranularity.return_value = (success, GRANULARITY)
    made.cuMemCreate.return_value = (success, object())
    return made
