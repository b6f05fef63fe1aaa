"""Options, geometry, outputs that cannot be placed: refused, with the value named."""

from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from patton.config import model_preset, tiny_device
from patton.errors import (
    ConfigError,
    DeviceConfigError,
    EngineStateError,
    SchedulerOutputError,
)
from patton.layout import Layout
from patton.runtime import Runtime
from patton.vllm.adapter import Adapter
from patton.vllm.geometry import layout_of, window_of
from patton.vllm.lifecycle import Lifecycle
from patton.vllm.options import Options
from patton.vllm.watch import NOTHING
from patton.vllm.worker import Worker
from tests.vllm.said import new, output

LAYOUT = Layout.of(tiny_device(), model_preset("tiny"))


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"devise": "tiny"}, "devise is 'tiny'; accepted: one of device, "),
        ({"check": "all"}, "check is 'all'; accepted: data or placement"),
        ({"element": "int8"}, "element is 'int8'; accepted: bf16 or fp16"),
        ({"choice": 3}, "choice is 3; accepted: spread or packed"),
        ({"adoption": "no"}, "adoption is 'no'; accepted: true or false"),
        ({"eviction": "queue"}, "eviction is 'queue'; accepted: pairs or lru"),
        ({"capacity_gib": "16"}, "capacity_gib is '16'; accepted: a number of GiB"),
        ({"unwritten": None}, "unwritten is None; accepted: error or withdraw"),
    ],
)
def test_options_are_checked(settings: dict[str, Any], text: str) -> None:
    """A name that is none, or a value that a name does not have."""
    with pytest.raises(ConfigError, match=text):
        Options.of(settings)


def test_the_device_is_a_preset_of_any_size() -> None:
    """Its name and its size are checked by those who know them."""
    assert 2 == Options.of({"capacity_gib": 2}).device_config().capacity_bytes >> 30
    assert Options.of({"element": "fp16"}).device_config().element.label == "fp16"
    for settings in ({"device": "gpu"}, {"capacity_gib": 0}):
        with pytest.raises(DeviceConfigError):
            Options.of(settings).device_config()


def config(*specs: Any) -> Any:
    groups = [SimpleNamespace(layer_names=["a", "b"], kv_cache_spec=s) for s in specs]
    return SimpleNamespace(kv_cache_groups=groups)


def spec(*kinds: str, **fields: Any) -> Any:
    """An object of a class that is named like vLLM's, and derived from others."""
    kind: type = object
    for name in reversed(kinds):
        kind = type(name, (kind,), {})
    made = kind()
    vars(made).update({"block_size": 16, "num_kv_heads": 1, "head_size": 128} | fields)
    return made


FULL = spec("FullAttentionSpec")


@pytest.mark.parametrize(
    ("cache", "text"),
    [
        (config(FULL, FULL), "kv_cache_groups is 2; accepted: 1"),
        (config(spec("MambaSpec")), "kv_cache_spec is 'MambaSpec'"),
        (config(spec("MLAAttentionSpec", "FullAttentionSpec")), "'MLAAttentionSpec'"),
    ],
)
def test_only_one_group_of_keys_and_values(cache: Any, text: str) -> None:
    """Hybrid models, state spaces and latent attention."""
    with pytest.raises(ConfigError, match=text):
        layout_of(cache, query_heads=2, max_model_len=64, options=Options())


def test_the_layout_of_a_cache() -> None:
    """Layers, heads and block size are the cache's, the context must fit."""
    options = Options(device="tiny")
    layout = layout_of(config(FULL), query_heads=2, max_model_len=64, options=options)
    assert (2, 1, 16) == (layout.model.layers, layout.model.kv_heads, 16)
    with pytest.raises(ConfigError, match="max_model_len is 99999; accepted: at most"):
        layout_of(config(FULL), query_heads=2, max_model_len=99_999, options=options)


def test_windows() -> None:
    """Of the group's spec, if it has one."""
    sliding = spec("PattonWindowSpec", "SlidingWindowSpec", sliding_window=96)
    assert 96 == window_of(config(sliding))
    assert window_of(config(FULL)) is None


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"kv_cache_block_copies": [(1, 2)]}, "kv_cache_block_copies: 1 copies"),
        (
            {
                "scheduled_new_reqs": [
                    SimpleNamespace(
                        req_id="r", block_ids=([1], [2]), num_computed_tokens=0
                    )
                ],
                "num_scheduled_tokens": {"r": 1},
            },
            "block_ids: tables of 2 cache groups",
        ),
        (
            {
                "scheduled_new_reqs": [new("r", [1, 2], 20)],
                "num_scheduled_tokens": {"r": 1},
            },
            "num_computed_tokens: 20 of request r, which ends inside a block",
        ),
    ],
)
def test_outputs_that_cannot_be_placed(fields: dict[str, Any], text: str) -> None:
    """Partial hits with their copies, and several cache groups."""
    adapter = Adapter(Lifecycle.of(Runtime.of(LAYOUT)))
    with pytest.raises(SchedulerOutputError, match=text):
        adapter.step(output(**fields), NOTHING)


def test_a_worker_leaves_out_no_step() -> None:
    """It would place everything after it elsewhere than the scheduler."""
    adapter = Adapter(Lifecycle.of(Runtime.of(LAYOUT)))
    worker = Worker.of(Runtime.of(LAYOUT), Options())
    worker.advance(0, adapter.step(output(), NOTHING))
    adapter.step(output(), NOTHING)
    with pytest.raises(EngineStateError, match="step 2 follows step 0"):
        worker.advance(2, adapter.step(output(), NOTHING))


def test_the_pure_part_loads_neither_vllm_nor_torch() -> None:
    """Nor does the entry point, before it is called."""
    names = ("adapter", "worker", "watch", "geometry", "options", "plugin")
    code = f"""
import sys
for name in {names}:
    __import__("patton.vllm." + name)
loaded = {{name.partition(".")[0] for name in sys.modules}}
assert not loaded & {{"vllm", "torch"}}, loaded
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert 0 == done.returncode, done.stderr
