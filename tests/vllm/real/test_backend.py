"""The backend PATTON as vLLM asks of it, the host's arithmetic, and the host platform.

Not covered here: whole models (test_outputs).
"""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("vllm.v1.core.sched.scheduler", reason="needs the extra vllm")

import torch
from vllm.platforms import current_platform
from vllm.v1.attention.backend import AttentionType
from vllm.v1.attention.backends.registry import AttentionBackendEnum

from patton.errors import ConfigError
from patton.vllm import plugin
from patton.vllm.backend import (
    PattonAttention,
    PattonBackend,
    PattonBatch,
    PattonBuilder,
)
from patton.vllm.platform import HostPlatform

HEADS, KV_HEADS, SIZE = 4, 2, 8


def attention(**options: Any) -> PattonAttention:
    return PattonAttention(HEADS, SIZE, SIZE**-0.5, KV_HEADS, **options)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"alibi_slopes": [1.0]}, "alibi_slopes"),
        ({"logits_soft_cap": 30.0}, "logits_soft_cap"),
        ({"kv_sharing_target_layer_name": "other"}, "kv_sharing"),
        ({"sinks": torch.zeros(HEADS)}, "sinks"),
        ({"attn_type": AttentionType.ENCODER}, "attn_type"),
    ],
)
def test_what_the_device_does_not_compute_is_refused(
    options: dict[str, Any], text: str
) -> None:
    """Instead of being left out."""
    with pytest.raises(ConfigError, match=text):
        attention(**options)


def test_another_scale_is_refused() -> None:
    """The host scales scores by 1 / sqrt(D) before the softmax."""
    with pytest.raises(ConfigError, match=r"scale is 1\.0"):
        PattonAttention(HEADS, SIZE, 1.0, KV_HEADS)


def test_a_quantised_output_is_refused() -> None:
    """Nothing would be multiplied by its scale."""
    no = torch.zeros(1)
    with pytest.raises(ConfigError, match="output_scale"):
        attention().forward(no, no, no, no, no, None, no, output_scale=no)


@pytest.mark.parametrize("name", [None, "MultiConnector"])
def test_without_its_connector_the_backend_is_refused(name: str | None) -> None:
    """Nothing would say where blocks lie, or another would write to them."""
    transfer = name and SimpleNamespace(kv_connector=name)
    config = SimpleNamespace(kv_transfer_config=transfer)
    with pytest.raises(ConfigError, match=f"kv_connector is {name!r}.*PattonConnector"):
        PattonBuilder(None, ["layer"], config, torch.device("cpu"))


@pytest.mark.parametrize(("size", "supported"), [(16, True), (48, True), (8, False)])
def test_blocks_are_multiples_of_16_tokens(size: int, supported: bool) -> None:
    """Smaller ones cannot be shared out evenly among banks and lanes."""
    assert supported is PattonBackend.supports_block_size(size)


def test_names_are_registered_however_often() -> None:
    """The class that the name leads to says the same name."""
    plugin.register()
    plugin.register()
    backend = AttentionBackendEnum["PATTON"].get_class()

    assert backend is PattonBackend
    assert plugin.BACKEND == backend.get_name()


SENT = """
import pickle, sys
member = pickle.loads(sys.stdin.buffer.read())
assert "PATTON" == member.name and "PattonBackend" == member.get_class().__name__
"""


def test_the_backend_can_be_sent_to_a_process_without_plug_ins() -> None:
    """As vLLM sends its configuration to the engine's."""
    plugin.register()
    member = AttentionBackendEnum["PATTON"]
    sent = pickle.dumps(member)

    assert member is pickle.loads(sent)  # noqa: S301  (our own)
    assert member is copy.deepcopy(member)
    subprocess.run([sys.executable, "-c", SENT], input=sent, check=True)


def test_a_run_that_measures_memory_has_no_batch() -> None:
    """Its output is zero."""
    no, ones = torch.zeros(1), torch.ones(3, HEADS, SIZE)
    output = attention().forward(no, no, no, no, no, None, ones)

    assert not output.any()


@pytest.mark.parametrize("window", [None, 5])
def test_the_host_attends_causally(window: int | None) -> None:
    """Against the formula, head by head, token by token."""
    torch.manual_seed(0)
    query = torch.randn(3, HEADS, SIZE)
    keys, values = torch.randn(2, 10, KV_HEADS, SIZE)
    found = attention(sliding_window=window)._attend(query, keys, values)
    for row in range(3):
        end = 8 + row
        start = 0 if window is None else end - window
        for head in range(HEADS):
            kv_head = head // (HEADS // KV_HEADS)
            scores = keys[start:end, kv_head] @ query[row, head] * SIZE**-0.5
            due = torch.softmax(scores, 0) @ values[start:end, kv_head]

            assert torch.allclose(due, found[row, head], atol=1e-6)


def test_padding_is_no_request() -> None:
    """Requests without tokens, and rows after the last, are left out."""
    batch = PattonBatch(
        [0, 2, 2, 5], [2, 9, 7], torch.zeros(3, 1), torch.zeros(8), {"layer": 0}
    )

    assert 5 == batch.rows
    assert [(0, 0, 2), (2, 2, 5)] == batch.spans()


def test_the_host_platform_lets_a_user_choose() -> None:
    """What was asked for, where vLLM's CPU platform takes its own."""
    assert isinstance(current_platform, HostPlatform)
    chosen = AttentionBackendEnum.FLEX_ATTENTION
    assert chosen.get_path() == current_platform.get_attn_backend_cls(chosen, None)


def test_slots_are_block_times_size_plus_offset() -> None:
    """Two requests at positions 14..17 and 3, the second with other blocks."""
    current_platform.import_kernels()
    slots = torch.full((7,), -1)
    torch.ops._C.compute_slot_mapping_kernel_impl(
        torch.tensor([0, 4, 5], dtype=torch.int32),
        torch.tensor([14, 15, 16, 17, 3]),
        torch.tensor([[7, 2], [9, 0]], dtype=torch.int32),
        slots,
        16,
    )

    assert [126, 127, 32, 33, 147, -1, -1] == slots.tolist()


def test_the_host_platform_is_off_unless_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A device's own platform stays."""
    monkeypatch.setenv("PATTON_HOST", "0")
    assert plugin.host_platform() is None
    monkeypatch.setenv("PATTON_HOST", "1")
    assert "patton.vllm.platform.HostPlatform" == plugin.host_platform()
