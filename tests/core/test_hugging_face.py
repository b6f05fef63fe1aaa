from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from patton.config import MODEL_PRESETS, model_from_config, model_preset
from patton.errors import ModelConfigError

LLAMA: dict[str, Any] = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 4096,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "max_position_embeddings": 8192,
    "rope_scaling": {"factor": 8.0, "rope_type": "llama3"},
}
QWEN3 = LLAMA | {
    "model_type": "qwen3",
    "head_dim": 128,
    "num_hidden_layers": 36,
    "max_position_embeddings": 40_960,
    "max_window_layers": 36,
    "sliding_window": None,
    "use_sliding_window": False,
}
QWEN15 = LLAMA | {
    "model_type": "qwen2",
    "num_key_value_heads": 32,
    "max_position_embeddings": 32_768,
    "max_window_layers": 28,
    "sliding_window": 32_768,
    "use_sliding_window": False,
}
OPT = {
    "model_type": "opt",
    "hidden_size": 4096,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "max_position_embeddings": 2048,
    "word_embed_proj_dim": 4096,
    "is_encoder_decoder": False,
}


def write_config(folder: Path, config: object) -> Path:
    path = folder / "config.json"
    path.write_text(json.dumps(config), encoding="utf-8")
    return path


def model_refusal(path: Path | str) -> tuple[str, object, str]:
    with pytest.raises(ModelConfigError) as caught:
        model_from_config(path)
    assert str(path) in str(caught.value)
    return caught.value.parameter, caught.value.value, caught.value.accepted


@pytest.mark.parametrize(
    ("name", "config"),
    [
        ("llama3-8b", LLAMA),
        ("llama3-8b", LLAMA | {"head_dim": 128}),
        ("llama3-8b", LLAMA | {"head_dim": None, "layer_types": None}),
        ("llama3-8b", LLAMA | {"layer_types": ["full_attention"] * 32}),
        ("llama3-8b", LLAMA | {"layer_types": ["sliding_attention"] * 32}),
        ("llama3-8b", {"text_config": LLAMA, "vision_config": {}}),
        ("qwen3-8b", QWEN3),
        ("qwen3-8b", QWEN3 | {"use_sliding_window": True, "max_window_layers": 0}),
        ("qwen3-8b", QWEN3 | {"use_sliding_window": True}),
        ("qwen1.5-7b", QWEN15),
        ("opt-6.7b", OPT),
        ("opt-6.7b", OPT | {"num_key_value_heads": None, "v_head_dim": 128}),
    ],
)
def test_reads_hugging_face_configurations(
    name: str, config: dict[str, Any], tmp_path: Path
) -> None:
    """A configuration, its folder, and the preset agree on the shape."""
    folder = tmp_path / name
    folder.mkdir()
    path = write_config(folder, config)

    assert MODEL_PRESETS[name] == model_from_config(path)
    assert MODEL_PRESETS[name] == model_from_config(folder)
    assert MODEL_PRESETS[name] == model_preset(str(path))


def test_name_of_a_file_with_a_name_of_its_own(tmp_path: Path) -> None:
    """A configuration that is not called config.json names the model."""
    path = write_config(tmp_path, LLAMA).rename(tmp_path / "mistral.json")

    assert "mistral" == model_from_config(str(path)).name


def test_explicit_head_dim_wins(tmp_path: Path) -> None:
    """Heads need not divide the hidden size."""
    path = write_config(tmp_path, LLAMA | {"head_dim": 80, "hidden_size": 1000})

    assert 80 == model_from_config(path).head_dim


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("kv_lora_rank", 512),
        ("q_lora_rank", 1536),
        ("qk_rope_head_dim", 64),
        ("state_size", 16),
        ("mamba_d_state", 16),
        ("linear_num_key_heads", 16),
        ("layers_block_type", ["mamba", "attention"]),
        ("block_types", ["recurrent", "attention"]),
        ("attention_types", [[["global", "local"], 12]]),
        ("hybrid_override_pattern", "M-M*"),
        ("attn_layer_period", 8),
        ("attn_type_list", [0, 1]),
        ("full_attention_interval", 4),
        ("sliding_window_pattern", 6),
        ("cross_attention_layers", [3]),
        ("block_configs", [{}]),
        ("num_kv_shared_layers", 10),
        ("is_encoder_decoder", True),
        ("v_head_dim", 64),
        ("layer_types", ["full_attention", "sliding_attention"] * 16),
        ("layer_types", ["full_attention"] * 31),
        ("layer_types", ["linear_attention"] * 32),
        ("layer_types", "full_attention"),
        ("layer_types", 32),
        ("model_type", "gemma2"),
        ("model_type", "gpt_oss"),
    ],
)
def test_refused_attention(key: str, value: object, tmp_path: Path) -> None:
    """No uniform per-head Key and Value: the key that says so is named."""
    path = write_config(tmp_path, LLAMA | {key: value, "head_dim": 128})

    assert (key, value) == model_refusal(path)[:2]


@pytest.mark.parametrize("layers", [1, 31])
def test_refused_partial_sliding_window(layers: int, tmp_path: Path) -> None:
    """Full attention in some layers and a window in the others is mixed."""
    window = {"use_sliding_window": True, "max_window_layers": layers}
    path = write_config(tmp_path, LLAMA | window)

    assert ("max_window_layers", layers) == model_refusal(path)[:2]


@pytest.mark.parametrize(
    "key",
    [
        "num_hidden_layers",
        "num_attention_heads",
        "max_position_embeddings",
        "hidden_size",
    ],
)
@pytest.mark.parametrize("value", [0, -4, 2.5, "32", [32], {}, True])
def test_refused_sizes(key: str, value: object, tmp_path: Path) -> None:
    """Sizes that are no counts are named."""
    path = write_config(tmp_path, LLAMA | {key: value})

    assert (key, value, "a whole number from 1") == model_refusal(path)


@pytest.mark.parametrize("key", sorted(LLAMA.keys() - {"rope_scaling"}))
def test_missing_keys(key: str, tmp_path: Path) -> None:
    """A missing size is named; a llama without KV heads has one per query head."""
    config = {name: value for name, value in LLAMA.items() if name != key}
    path = write_config(tmp_path, config)

    if key == "num_key_value_heads":
        assert 32 == model_from_config(path).kv_heads
    elif key in ("architectures", "model_type"):
        assert 8 == model_from_config(path).kv_heads
    else:
        accepted = "a whole number from 1; the key is missing"
        assert (key, None, accepted) == model_refusal(path)


@pytest.mark.parametrize(
    ("model_type", "key"),
    [("mistral", "num_key_value_heads"), ("qwen3", "head_dim"), ("gemma", "head_dim")],
)
def test_missing_keys_whose_default_is_the_types_own(
    model_type: str, key: str, tmp_path: Path
) -> None:
    """Where a type has a default of its own, nothing is guessed."""
    config = LLAMA | {"model_type": model_type, "head_dim": 128, key: None}
    path = write_config(tmp_path, config)

    assert (key, None) == model_refusal(path)[:2]


def test_refused_hidden_size(tmp_path: Path) -> None:
    """Without head_dim, the heads divide the hidden size."""
    path = write_config(tmp_path, LLAMA | {"hidden_size": 4097})

    assert ("hidden_size", 4097) == model_refusal(path)[:2]


@pytest.mark.parametrize(
    "text",
    ["", "{", '{"a": }', "[]", "3", "null", '"llama"', "[" * 100_000, '{"a": "\\ud8"}'],
    ids=range(9),
)
def test_malformed_files(text: str, tmp_path: Path) -> None:
    """What is not one JSON object is a typed error that names the file."""
    path = tmp_path / "config.json"
    path.write_text(text, encoding="utf-8")

    assert "file" == model_refusal(path)[0]


def test_binary_file(tmp_path: Path) -> None:
    """A file that is not text is refused."""
    path = tmp_path / "config.json"
    path.write_bytes(b"\xff\xfe\x00")

    assert "file" == model_refusal(path)[0]


@pytest.mark.parametrize("name", ["absent.json", "nowhere/config.json"])
def test_absent_files(name: str, tmp_path: Path) -> None:
    """A path that leads nowhere is refused as a file, not as a name."""
    assert "file" == model_refusal(tmp_path / name)[0]


@pytest.mark.parametrize("path", ["absent.json", "nowhere/absent"])
def test_absent_paths_are_not_taken_for_names(path: str) -> None:
    """Whoever gives a path is not told of presets."""
    with pytest.raises(ModelConfigError) as caught:
        model_preset(path)

    assert ("file", path) == (caught.value.parameter, caught.value.source)


@pytest.mark.parametrize("kind", ["gemma2", "gemma3_text", "gpt_oss", "llama4_text"])
def test_models_of_mixed_layers_are_uniform_where_they_say_so(
    kind: str, tmp_path: Path
) -> None:
    """Such a model mixes its layers unless it lists their kinds."""
    mixed = LLAMA | {"model_type": kind, "head_dim": 128}
    refused = model_refusal(write_config(tmp_path, mixed))
    listed = mixed | {"layer_types": ["full_attention"] * 32}

    assert ("model_type", kind) == refused[:2]
    assert 32 == model_from_config(write_config(tmp_path, listed)).layers
