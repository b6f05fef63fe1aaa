"""What a device and a model are, as far as placement is concerned.

Values only: how they fit together is `patton.layout`. Timing and energy of a device,
and weights of a model, are not described here.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from enum import Enum
from pathlib import Path
from typing import Any, Literal, NoReturn, get_args

import attrs

from patton.arguments import PATH, expect, expect_fields, is_count, is_one_of
from patton.errors import DeviceConfigError, ModelConfigError

CopyColumn = Literal["same", "free"]
CommitWay = Literal["host", "read-back", "global-buffer"]

GIB = 2**30


class ElementType(Enum):
    """Number format of Key and Value; without `arithmetic` it is only placed."""

    BF16 = ("bf16", 2, True)
    FP16 = ("fp16", 2, True)
    FP8 = ("fp8", 1, False)
    INT8 = ("int8", 1, False)

    def __init__(self, label: str, size_bytes: int, arithmetic: bool) -> None:
        self.label = label
        self.bytes = size_bytes
        self.arithmetic = arithmetic


@attrs.frozen
class DeviceConfig:
    """Organisation of a PIM device: equal channels of equal banks (Paper 2.1).

    A channel has a Global Buffer of one row, and a bank `result_registers`
    accumulators. copy_column: whether RDCP and WRCP keep the burst column ("same", as
    on AiM) or may change it ("free"); commit_way: who moves a full block from the
    Commit Zone; write_masks: whether a burst can be written in single lanes.
    Raises DeviceConfigError.
    """

    name: str
    channels: int
    banks: int
    rows: int
    row_bytes: int
    burst_bytes: int
    element: ElementType = ElementType.BF16
    result_registers: int = 1
    copy_column: CopyColumn = "same"
    commit_way: CommitWay = "host"
    write_masks: bool = True

    def __attrs_post_init__(self) -> None:
        _check_device(self)

    @property
    def bursts_per_row(self) -> int:
        """Bursts of a row, and of a Global Buffer."""
        return self.row_bytes // self.burst_bytes

    @property
    def lanes(self) -> int:
        """Elements of a burst."""
        return self.burst_bytes // self.element.bytes

    @property
    def capacity_bytes(self) -> int:
        """Bytes of all banks."""
        return self.channels * self.banks * self.rows * self.row_bytes

    def scaled(self, capacity_gib: float) -> DeviceConfig:
        """The same device with as many rows as `capacity_gib` GiB hold, rounded down.

        Raises DeviceConfigError if that is not a positive number of rows.
        """
        one_row_bytes = self.channels * self.banks * self.row_bytes
        most = one_row_bytes * _MOST_ROWS / GIB
        expect("scaled", "capacity_gib", capacity_gib, int, float)
        accepted = f"{one_row_bytes / GIB:g} (one row per bank) to {most:g} GiB"
        # The upper end also turns away infinity and, by the chain, not-a-number.
        if not one_row_bytes <= capacity_gib * GIB <= one_row_bytes * _MOST_ROWS:
            raise DeviceConfigError(self.name, "capacity_gib", capacity_gib, accepted)
        return attrs.evolve(self, rows=int(capacity_gib * GIB // one_row_bytes))


# The widths of the command stream's columns, and of its mask of lanes.
_MOST_ROWS = 2**32 - 1
_MOST = {
    "channels": 2**16 - 1,
    "banks": 255,
    "rows": _MOST_ROWS,
    "result_registers": 255,
    "lanes": 64,
    "bursts_per_row": 2**16 - 1,
}


def _check_device(device: DeviceConfig) -> None:
    def refuse(parameter: str, accepted: str) -> None:
        value = getattr(device, parameter)
        raise DeviceConfigError(device.name, parameter, value, accepted)

    expect_fields("DeviceConfig", device, name=str, write_masks=bool)
    for name in ("channels", "banks", "rows", "result_registers"):
        if not is_count(getattr(device, name), _MOST[name]):
            refuse(name, f"a whole number from 1 to {_MOST[name]}")
    if not isinstance(device.element, ElementType):
        refuse("element", "one of " + ", ".join(str(item) for item in ElementType))
    size = device.element.bytes
    if not is_count(device.burst_bytes) or device.burst_bytes % size:
        refuse("burst_bytes", f"a positive multiple of {size}, the element's bytes")
    if not is_count(device.row_bytes) or device.row_bytes % device.burst_bytes:
        refuse("row_bytes", f"a positive multiple of burst_bytes, {device.burst_bytes}")
    for name in ("lanes", "bursts_per_row"):
        if getattr(device, name) > _MOST[name]:
            refuse(name, f"at most {_MOST[name]}")
    for name, kind in (("copy_column", CopyColumn), ("commit_way", CommitWay)):
        if not is_one_of(getattr(device, name), get_args(kind)):
            refuse(name, "one of " + ", ".join(get_args(kind)))
    if device.commit_way == "global-buffer" and device.copy_column != "free":
        # A commit keeps channel, bank and lane, but changes the burst column.
        refuse("commit_way", 'host or read-back, or copy_column "free" beside it')


def aim_gddr6() -> DeviceConfig:
    """16 GiB of GDDR6 accelerator-in-memory, the representative device (Paper 4.2).

    Kwon et al., IEEE JSSC 58(1), 2023 (the 8 Gb AiM chip) and JESD250: two channels per
    chip, 16 banks, 16,384 rows of 2 KB, 32 B per access; here 16 chips.
    """
    return DeviceConfig("aim-gddr6", 32, 16, 16_384, 2048, 32)


def ddr4() -> DeviceConfig:
    """64 GiB of DDR4: eight channels of one rank of 8 Gb x8 chips in lockstep.

    JESD79-4: 4 bank groups of 4 banks, 65,536 rows, a page of 1 KB per x8 chip, burst
    length 8; eight chips make 8 KB rows and 64 B bursts. Needs blocks of 32 tokens.
    """
    return DeviceConfig("ddr4", 8, 16, 65_536, 8192, 64)


def ddr5() -> DeviceConfig:
    """128 GiB of DDR5: eight modules of two 32-bit channels of 16 Gb x8 chips.

    JESD79-5: 8 bank groups of 4 banks, 65,536 rows, a page of 1 KB per x8 chip, burst
    length 16; four chips make 4 KB rows and 64 B bursts. Needs blocks of 32 tokens.
    """
    return DeviceConfig("ddr5", 16, 32, 65_536, 4096, 64)


def lpddr5() -> DeviceConfig:
    """32 GiB of LPDDR5: sixteen x16 channels of 16 Gb each.

    JESD209-5: 4 bank groups of 4 banks, 65,536 rows, a page of 2 KB, burst length 16,
    which makes 32 B bursts.
    """
    return DeviceConfig("lpddr5", 16, 16, 65_536, 2048, 32)


def hbm2() -> DeviceConfig:
    """16 GiB of HBM2: four stacks of four 8 Gb dies, in pseudo-channel mode.

    JESD235: 8 channels per stack of 4 Gb each, two pseudo channels of 64 bits, 4 bank
    groups of 4 banks, 16,384 rows, a page of 1 KB, burst length 4 (32 B bursts).
    """
    return DeviceConfig("hbm2", 64, 16, 16_384, 1024, 32)


def tiny_device() -> DeviceConfig:
    """8 MiB in AiM's organisation: room for 7,680 tokens of the `tiny` model."""
    return attrs.evolve(aim_gddr6(), name="tiny", channels=4, rows=64)


DEVICE_PRESETS: Mapping[str, Callable[[], DeviceConfig]] = {
    "aim-gddr6": aim_gddr6,
    "ddr4": ddr4,
    "ddr5": ddr5,
    "lpddr5": lpddr5,
    "hbm2": hbm2,
    "tiny": tiny_device,
}


def device_preset(name: str) -> DeviceConfig:
    """The preset of this name; raises DeviceConfigError, which lists the names."""
    expect("device_preset", "name", name, str)
    if name not in DEVICE_PRESETS:
        accepted = "one of " + ", ".join(DEVICE_PRESETS)
        raise DeviceConfigError("device", "name", name, accepted)
    return DEVICE_PRESETS[name]()


@attrs.frozen
class ModelConfig:
    """Attention shape of a model whose layers all have the same per-head K and V.

    head_dim: elements; max_context: tokens; tokenizer: the family of token counts that
    the model reads in a workload file (llama3, qwen or gpt2). Raises ModelConfigError.
    """

    name: str
    layers: int
    kv_heads: int
    query_heads: int
    head_dim: int
    max_context: int
    tokenizer: str = "llama3"

    def __attrs_post_init__(self) -> None:
        _check_model(self)

    @property
    def query_heads_per_kv(self) -> int:
        """Query heads that share one Key and Value head."""
        return self.query_heads // self.kv_heads


def _check_model(model: ModelConfig) -> None:
    expect_fields("ModelConfig", model, name=str, tokenizer=str)
    for name in ("layers", "kv_heads", "query_heads", "head_dim", "max_context"):
        value = getattr(model, name)
        if not is_count(value):
            raise ModelConfigError(model.name, name, value, "a whole number from 1")
    if model.query_heads % model.kv_heads:
        accepted = f"a multiple of kv_heads, {model.kv_heads}"
        raise ModelConfigError(model.name, "query_heads", model.query_heads, accepted)


MODEL_PRESETS: Mapping[str, ModelConfig] = {
    model.name: model
    for model in (  # layers, Key-Value heads, query heads, head dimension, context
        ModelConfig("llama3-8b", 32, 8, 32, 128, 8192, "llama3"),
        ModelConfig("qwen3-8b", 36, 8, 32, 128, 40_960, "qwen"),
        ModelConfig("opt-6.7b", 32, 32, 32, 128, 2048, "gpt2"),
        ModelConfig("qwen1.5-7b", 32, 32, 32, 128, 32_768, "qwen"),
        ModelConfig("tiny", 2, 1, 2, 128, 2048, "llama3"),
    )
}


def model_preset(name_or_path: str) -> ModelConfig:
    """The preset of this name, else the Hugging Face config.json at this path.

    Raises ModelConfigError, which lists the names.
    """
    expect("model_preset", "name_or_path", name_or_path, str)
    if name_or_path in MODEL_PRESETS:
        return MODEL_PRESETS[name_or_path]
    path = Path(name_or_path)
    is_path = path.suffix == ".json" or len(path.parts) > 1
    if name_or_path and (is_path or _exists(path)):
        return model_from_config(path)
    accepted = f"one of {', '.join(MODEL_PRESETS)}, or the path of a config.json"
    raise ModelConfigError("model", "name", name_or_path, accepted)


def model_from_config(path: str | Path) -> ModelConfig:
    """Shape of the model whose Hugging Face config.json (or its folder) is at `path`.

    Raises ModelConfigError if the file cannot be read or says too little, and for
    models whose layers do not all keep the same per-head Key and Value.
    """
    expect("model_from_config", "path", path, *PATH)
    path = Path(path)
    path = path / "config.json" if _exists(path / "config.json") else path
    config = _HuggingFace(str(path), _read_object(path))
    _refuse_other_attention(config)
    query_heads = config.count("num_attention_heads")
    head_dim = _head_dim(config, query_heads)
    _refuse_unequal_layers(config, head_dim)
    return ModelConfig(
        name=path.parent.name if path.name == "config.json" else path.stem,
        layers=config.count("num_hidden_layers"),
        kv_heads=_kv_heads(config, query_heads),
        query_heads=query_heads,
        head_dim=head_dim,
        max_context=config.count("max_position_embeddings"),
        tokenizer=_tokenizer(config.model_type),
    )


_UNIFORM = "a model that keeps the same per-head Key and Value in every layer"

# Keys that, with any value but null, false, 0 or nothing, tell of another attention.
_OTHER_ATTENTION = (
    *("kv_lora_rank", "q_lora_rank", "qk_rope_head_dim"),  # multi-head latent (MLA)
    *("state_size", "mamba_d_state", "ssm_cfg", "linear_num_key_heads"),  # state space
    *("block_configs", "block_types", "layers_block_type", "attention_types"),  # mixed
    *("hybrid_override_pattern", "attn_layer_period", "attn_type_list"),
    *("full_attention_interval", "sliding_window_pattern", "cross_attention_layers"),
    *("num_key_value_heads_per_layer", "num_kv_shared_layers", "is_encoder_decoder"),
)
# Mixed by definition of the type, without a key that says so.
_MIXED_TYPES = ("gemma2", "gemma3_text", "gpt_oss", "llama4_text")
# The types whose defaults of absent keys follow from other keys.
_KV_HEADS_DEFAULT_TO_ALL = ("opt", "llama", "gpt_neox", "phi")
_HEAD_DIM_HAS_OWN_DEFAULT = ("qwen3", "gemma")


@attrs.frozen
class _HuggingFace:
    source: str
    values: Mapping[str, Any]

    @property
    def model_type(self) -> str:
        return str(self.values.get("model_type", ""))

    def count(self, key: str) -> int:
        value = self.values.get(key)
        if not is_count(value):
            missing = "" if key in self.values else "; the key is missing"
            self.refuse(key, f"a whole number from 1{missing}")
        return int(self.values[key])

    def refuse(self, key: str, accepted: str) -> NoReturn:
        raise ModelConfigError(self.source, key, self.values.get(key), accepted)


def _read_object(path: Path) -> Mapping[str, Any]:
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        accepted = "a file with one JSON object"
        raise ModelConfigError(str(path), "file", str(error), accepted) from error
    if not isinstance(config, dict):
        raise ModelConfigError(str(path), "file", config, "a file with one JSON object")
    # Models that see or hear describe their language part in an object of its own.
    text = config.get("text_config")
    return text if isinstance(text, dict) else config


def _refuse_other_attention(config: _HuggingFace) -> None:
    for key in _OTHER_ATTENTION:
        if config.values.get(key):
            config.refuse(key, _UNIFORM)
    if config.model_type in _MIXED_TYPES and not config.values.get("layer_types"):
        config.refuse("model_type", _UNIFORM)


def _refuse_unequal_layers(config: _HuggingFace, head_dim: int) -> None:
    layers = config.count("num_hidden_layers")
    kinds = config.values.get("layer_types")
    if kinds and not _is_uniform(kinds, layers):
        config.refuse("layer_types", _UNIFORM)
    if config.values.get("use_sliding_window"):
        # The first `max_window_layers` layers see everything, the others a window.
        full_layers = config.values.get("max_window_layers")
        if full_layers != 0 and config.count("max_window_layers") < layers:
            config.refuse("max_window_layers", _UNIFORM)
    if (config.values.get("v_head_dim") or head_dim) != head_dim:
        config.refuse("v_head_dim", f"{head_dim}, as many elements as a Key has")


def _is_uniform(kinds: Any, layers: int) -> bool:
    if not isinstance(kinds, list) or len(kinds) != layers:
        return False
    return layers in (kinds.count("full_attention"), kinds.count("sliding_attention"))


def _head_dim(config: _HuggingFace, query_heads: int) -> int:
    inherits = not config.model_type.startswith(_HEAD_DIM_HAS_OWN_DEFAULT)
    if config.values.get("head_dim") is not None or not inherits:
        return config.count("head_dim")
    hidden_size = config.count("hidden_size")
    if hidden_size % query_heads:
        config.refuse("hidden_size", f"a multiple of {query_heads}, or a head_dim")
    return hidden_size // query_heads


def _kv_heads(config: _HuggingFace, query_heads: int) -> int:
    absent = config.values.get("num_key_value_heads") is None
    if absent and config.model_type in _KV_HEADS_DEFAULT_TO_ALL:
        return query_heads
    return config.count("num_key_value_heads")


def _tokenizer(model_type: str) -> str:
    if model_type.startswith("qwen"):
        return "qwen"
    return "gpt2" if model_type == "opt" else "llama3"


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:
        return False
