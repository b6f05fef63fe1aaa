"""vLLM without any device: its host alone, for tests and for PATTON in simulation.

On a real platform (CUDA, say) PATTON is no platform: the device's own stays, and the
attention backend is chosen by `--attention-backend PATTON`. vLLM's CPU platform does
not let a user choose, and needs compiled kernels; this one is that platform with the
choice, on a vLLM built for no device (VLLM_TARGET_DEVICE=empty). It is active where
the environment says PATTON_HOST=1 (see `patton.vllm.plugin`), and leaves that variable
of vLLM's unset at run time.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import torch
from vllm.platforms.cpu import CpuPlatform


class HostPlatform(CpuPlatform):
    """The CPU platform, with a choice of attention and without compiled kernels."""

    @classmethod
    def import_kernels(cls) -> None:
        """Stand in for the kernels that the CPU worker itself calls."""
        define_operations(_HOST_OPERATIONS)

    @classmethod
    def get_attn_backend_cls(
        cls,
        selected_backend: Any,
        attn_selector_config: Any,
        num_heads: int | None = None,
    ) -> str:
        """The backend that was asked for, else the CPU platform's own."""
        if selected_backend is None:
            backend = super().get_attn_backend_cls(
                selected_backend, attn_selector_config, num_heads
            )
        else:
            backend = selected_backend.get_path()
        return str(backend)

    @classmethod
    def check_and_update_config(cls, vllm_config: Any) -> None:
        """As on the CPU platform, all layers in plain torch."""
        super().check_and_update_config(vllm_config)
        vllm_config.compilation_config.custom_ops = ["none"]


Operation = tuple[str, str, Callable[..., Any]]


def define_operations(operations: tuple[Operation, ...]) -> None:
    """Define those of torch's operations that nothing has defined yet.

    operations: (namespace, schema, function).
    """
    for namespace, schema, function in operations:
        name = schema.partition("(")[0]
        with contextlib.suppress(AttributeError):
            getattr(getattr(torch.ops, namespace), name)
            continue
        library = torch.library.Library(namespace, "FRAGMENT")
        library.define(schema)
        library.impl(name, function, "CompositeExplicitAutograd")
        _LIBRARIES.append(library)


_LIBRARIES: list[Any] = []  # an operation lasts as long as its library


def _bind_memory(nodes: list[int]) -> None:
    """Memory comes from wherever the system takes it."""


def _slot_mapping(
    query_start: torch.Tensor,
    positions: torch.Tensor,
    table: torch.Tensor,
    slots: torch.Tensor,
    block_tokens: int,
) -> None:
    """Slots of the batch's tokens, request after request, written to `slots` [tokens].

    A slot is block id * block_tokens + offset. query_start [requests + 1]; positions
    [tokens]; table [requests, blocks].
    """
    counts = query_start.diff()
    request = torch.repeat_interleave(torch.arange(len(counts)), counts)
    first = int(query_start[0])
    position = positions[first : first + len(request)]
    block = table[request, position // block_tokens].long()
    slots[first : first + len(request)] = block * block_tokens + position % block_tokens


def _greedy(logits: torch.Tensor) -> torch.Tensor:
    return logits.argmax(dim=-1)


_HOST_OPERATIONS: tuple[Operation, ...] = (
    ("_C", "init_cpu_memory_env(int[] nodes) -> ()", _bind_memory),
    (
        "_C",
        (
            "compute_slot_mapping_kernel_impl(Tensor query_start, Tensor positions, "
            "Tensor table, Tensor(a!) slots, int block_tokens) -> ()"
        ),
        _slot_mapping,
    ),
    ("_C", "greedy_argmax(Tensor logits) -> Tensor", _greedy),
)
