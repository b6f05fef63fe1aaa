"""A pytest plug-in that puts PATTON's gate into every KVCacheManager it can serve.

For vLLM's own tests, which know nothing of it (`pytest -p ...gate_everywhere`). They
allocate without ever scheduling a step, so each allocation is followed by the output
that vLLM's scheduler would have made of it. Classes are patched here, and only here.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from vllm.v1.core.kv_cache_manager import KVCacheManager

from patton.errors import ConfigError
from patton.runtime import Runtime
from patton.vllm import capacity
from patton.vllm.adapter import Adapter
from patton.vllm.geometry import layout_of, only_group
from patton.vllm.lifecycle import Lifecycle
from patton.vllm.options import Options
from patton.vllm.watch import NOTHING, on_verified

CREATE, ALLOCATE = KVCacheManager.__init__, KVCacheManager.allocate_slots

# Room for all that these tests allocate; no more, since every check looks at all of it.
DEVICE = Options(capacity_gib=0.25)

# Managers that were gated, or why they were not, and steps that were applied.
COUNT: Counter[str] = Counter()


def create(manager: Any, kv_cache_config: Any, *arguments: Any, **options: Any) -> None:
    """A manager with the gate, if its cache is one that PATTON serves."""
    try:
        layout = layout_of(
            kv_cache_config,
            query_heads=only_group(kv_cache_config).kv_cache_spec.num_kv_heads,
            max_model_len=16,
            options=DEVICE,
        )
    except ConfigError as refusal:
        COUNT[f"{refusal.parameter} {refusal.value}"] += 1
        CREATE(manager, kv_cache_config, *arguments, **options)
        return
    capacity.register()
    groups = [
        replace(group, kv_cache_spec=capacity.customize(group.kv_cache_spec))
        for group in kv_cache_config.kv_cache_groups
    ]
    gated = replace(kv_cache_config, kv_cache_groups=groups)
    CREATE(manager, gated, *arguments, **options)
    (single,) = manager.coordinator.single_type_managers
    runtime = Runtime.of(layout, blocks=kv_cache_config.num_blocks, commit_zone=False)
    single.lifecycle = Lifecycle.of(runtime, manager.block_pool)
    on_verified(manager, single.lifecycle.verify)
    manager.patton = Adapter(single.lifecycle, told=True)
    COUNT["gated"] += 1


def allocate_slots(
    manager: Any,
    request: Any,
    num_new_tokens: int,
    num_new_computed_tokens: int = 0,
    *arguments: Any,
    **options: Any,
) -> Any:
    """Allocate, and compute the tokens that this was for."""
    blocks = ALLOCATE(
        manager, request, num_new_tokens, num_new_computed_tokens, *arguments, **options
    )
    adapter: Adapter | None = getattr(manager, "patton", None)
    if blocks is not None and adapter is not None:
        name = request.request_id
        first = request.num_computed_tokens + num_new_computed_tokens
        said = SimpleNamespace(
            scheduled_new_reqs=[],
            scheduled_cached_reqs=SimpleNamespace(
                req_ids=[name], num_computed_tokens=[first]
            ),
            num_scheduled_tokens={name: num_new_tokens},
            scheduled_spec_decode_tokens={},
            finished_req_ids=(),
            preempted_req_ids=(),
        )
        adapter.step(said, NOTHING)
        adapter.lifecycle.runtime.check()
        COUNT["steps"] += 1
    return blocks


def pytest_configure(config: pytest.Config) -> None:
    """Before any test is imported."""
    KVCacheManager.__init__ = create
    KVCacheManager.allocate_slots = allocate_slots


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """What was gated."""
    terminalreporter.write_line(f"gated: {dict(COUNT)}")
