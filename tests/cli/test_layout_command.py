from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import pytest
from click.testing import Result

from patton.cli.layout import SHAPES
from patton.cli.options import build_layout
from patton.config import MODEL_PRESETS, aim_gddr6
from patton.layout import Layout

Patton = Callable[..., Result]

LLAMA = {
    "model_type": "llama",
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "hidden_size": 4096,
    "max_position_embeddings": 8192,
}
HEADS_64 = LLAMA | {"num_key_value_heads": 64, "num_attention_heads": 64}
ONE_HEAD = LLAMA | {"num_key_value_heads": 1}
DIM_80 = LLAMA | {"num_key_value_heads": 32, "head_dim": 80}
TABLE = (
    *("slots", "pair_blocks", "rows_per_plane", "key_rows", "value_rows"),
    *("commit_zone_rows", "pairs", "tokens", "ideal_tokens"),
)


@pytest.mark.parametrize(
    ("model", "slots", "numbers"),
    [
        ("llama3-8b", 32, (32, 16, 512, 255, 256, 1, 510, 130_560, 131_072)),
        ("qwen3-8b", 32, (32, 16, 455, 226, 226, 1, 452, 115_712, 116_508)),
        ("opt-6.7b", 8, (8, 16, 512, 254, 256, 1, 127, 32_512, 32_768)),
        ("qwen1.5-7b", 8, (8, 16, 512, 254, 256, 1, 127, 32_512, 32_768)),
        (
            HEADS_64 | {"head_dim": 128},
            8,
            (8, 16, 256, 126, 128, 1, 63, 16_128, 16_384),
        ),
        (ONE_HEAD, 32, (64, 32, 512, 255, 255, 1, 2040, 1_044_480, 1_048_576)),
        (DIM_80, 8, (12, 16, 512, 262, 245, 1, 196, 50_176, 52_428)),
    ],
    ids=["llama3-8b", "qwen3-8b", "opt-6.7b", "qwen1.5-7b", "64-heads", "mqa", "d80"],
)
def test_the_table(
    patton: Patton, tmp_path: Path, model: Any, slots: int, numbers: tuple[int, ...]
) -> None:
    """The worked figures of 16 GiB of AiM come out, presets and files alike."""
    if not isinstance(model, str):
        path = tmp_path / "config.json"
        path.write_text(json.dumps(model))
        model = path
    result = patton("layout", "--model", model, "--slots", slots, "--json")
    data = json.loads(result.stdout)

    assert 0 == result.exit_code
    assert numbers == tuple(data[name] for name in TABLE)


def test_json_has_every_derived_number(patton: Patton) -> None:
    """All shapes, by the names that the library gives them."""
    data = json.loads(patton("layout", "--json").stdout)
    layout = Layout.of(aim_gddr6(), MODEL_PRESETS["llama3-8b"])
    names = {field.name for field in attrs.fields(Layout)} - {"map"}

    assert names <= data.keys()
    assert ("llama3-8b", "aim-gddr6", 2**34) == (
        data["model"],
        data["device"],
        data["capacity_bytes"],
    )
    numbers = names - {"model", "device"}
    assert {name: getattr(layout, name) for name in numbers} == {
        name: data[name] for name in numbers
    }


def test_text_has_shapes_regions_and_capacity(patton: Patton) -> None:
    """The table for people has each shape, each region, and what is lost."""
    text = patton("layout", "--model", "qwen3-8b").stdout

    for name, _symbol, meaning in SHAPES:
        assert name in text
        assert meaning in text
    for words in (
        "Commit Zone     1    452   452  32 slots",
        "115,712 tokens in 7,232 granules, 452 pairs; 99.3%",
        "2 unused rows in each of 36 planes, 4 beyond the last plane",
        "0 bytes (0.0 MiB) of padding",
    ):
        assert words in text


def test_text_of_padding(patton: Patton, tmp_path: Path) -> None:
    """Padding of heads that fill no whole bursts and banks is told in bytes."""
    path = tmp_path / "config.json"
    path.write_text(json.dumps(DIM_80 | {"head_dim": 72}))
    text = patton("layout", "--model", path).stdout
    padding_bytes = build_layout(model=str(path)).padding_bytes

    assert padding_bytes > 0
    assert f"{padding_bytes:,} bytes" in text


def test_the_size_of_the_device(patton: Patton) -> None:
    """Half the capacity is half the rows of the same device."""
    data = json.loads(patton("layout", "--capacity-gib", "8", "--json").stdout)

    assert (2**33, 256) == (data["capacity_bytes"], data["rows_per_plane"])


def test_options_left_out_are_the_librarys_defaults() -> None:
    """Commands with other defaults of their own may leave both names open."""
    assert Layout.of(aim_gddr6(), MODEL_PRESETS["llama3-8b"]) == build_layout()
