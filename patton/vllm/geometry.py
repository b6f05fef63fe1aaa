"""The layout for a model as vLLM serves it, from its KV cache configuration."""

from __future__ import annotations

from typing import Any

from patton.config import ModelConfig
from patton.errors import ConfigError
from patton.layout import Layout
from patton.vllm.options import Options

SOURCE = "KV cache of vLLM"


def layout_of(
    kv_cache_config: Any, *, query_heads: int, max_model_len: int, options: Options
) -> Layout:
    """How the device is divided for the layers and heads of this worker.

    kv_cache_config: vLLM's KVCacheConfig; query_heads: of this worker. Raises
    ConfigError (hybrid groups, no per-head Key and Value, a context that does not fit
    even alone) and LayoutError.
    """
    group = only_group(kv_cache_config)
    spec = group.kv_cache_spec
    model = ModelConfig(
        name="the served model",
        layers=len(group.layer_names),
        kv_heads=spec.num_kv_heads,
        query_heads=query_heads,
        head_dim=spec.head_size,
        max_context=max_model_len,
    )
    layout = Layout.of(
        options.device_config(),
        model,
        block_tokens=spec.block_size,
        pair_blocks=options.pair_blocks,
        slots=options.slots,
    )
    if max_model_len > layout.tokens:
        accepted = f"at most {layout.tokens} tokens, which fill the device"
        raise ConfigError(SOURCE, "max_model_len", max_model_len, accepted)
    return layout


def only_group(kv_cache_config: Any) -> Any:
    """The KV cache group, if there is one of per-head Keys and Values.

    Raises ConfigError.
    """
    groups = kv_cache_config.kv_cache_groups
    if len(groups) != 1:
        accepted = "1, so a model whose layers all attend alike"
        raise ConfigError(SOURCE, "kv_cache_groups", len(groups), accepted)
    spec = groups[0].kv_cache_spec
    kinds = {kind.__name__ for kind in type(spec).__mro__}
    other = {"MLAAttentionSpec", "RSWASpec", "SinkFullAttentionSpec"}
    if not kinds & {"FullAttentionSpec", "SlidingWindowSpec"} or kinds & other:
        accepted = "FullAttentionSpec or SlidingWindowSpec"
        raise ConfigError(SOURCE, "kv_cache_spec", type(spec).__name__, accepted)
    return groups[0]


def window_of(kv_cache_config: Any) -> int | None:
    """Tokens that a query sees, itself included; None if it sees all before it."""
    window: int | None = getattr(
        only_group(kv_cache_config).kv_cache_spec, "sliding_window", None
    )
    return window
