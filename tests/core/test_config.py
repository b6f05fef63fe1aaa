from __future__ import annotations

import math
from typing import Any

import attrs
import pytest

from patton.config import (
    DEVICE_PRESETS,
    GIB,
    MODEL_PRESETS,
    DeviceConfig,
    ElementType,
    ModelConfig,
    aim_gddr6,
    device_preset,
    model_preset,
)
from patton.errors import ConfigError, DeviceConfigError, ModelConfigError


@pytest.mark.parametrize(
    ("element", "size", "arithmetic"),
    [("BF16", 2, True), ("FP16", 2, True), ("FP8", 1, False), ("INT8", 1, False)],
)
def test_element_types(element: str, size: int, arithmetic: bool) -> None:
    """16-bit floats are computed with, 8-bit elements are only placed."""
    found = ElementType[element]

    assert (size, arithmetic) == (found.bytes, found.arithmetic)
    assert element.lower() == found.label


@pytest.mark.parametrize(
    ("name", "capacity_gib", "bursts_per_row", "lanes"),
    [
        ("aim-gddr6", 16, 64, 16),
        ("ddr4", 64, 128, 32),
        ("ddr5", 128, 64, 32),
        ("lpddr5", 32, 64, 16),
        ("hbm2", 16, 32, 16),
        ("tiny", 8 / 1024, 64, 16),
    ],
)
def test_device_presets(
    name: str, capacity_gib: float, bursts_per_row: int, lanes: int
) -> None:
    """The sizes that follow from each preset's organisation."""
    device = device_preset(name)

    assert name == device.name
    assert capacity_gib * GIB == device.capacity_bytes
    assert (bursts_per_row, lanes) == (device.bursts_per_row, device.lanes)


def test_representative_device() -> None:
    """AiM is as the paper has it: one register, copies that keep the column."""
    expected = DeviceConfig(
        name="aim-gddr6",
        channels=32,
        banks=16,
        rows=16_384,
        row_bytes=2048,
        burst_bytes=32,
        element=ElementType.BF16,
        result_registers=1,
        copy_column="same",
        commit_way="host",
        write_masks=True,
    )

    assert expected == aim_gddr6()


def test_unknown_device_preset() -> None:
    """The error lists the presets."""
    with pytest.raises(DeviceConfigError) as caught:
        device_preset("aim")

    assert "aim" == caught.value.value
    assert all(name in str(caught.value) for name in DEVICE_PRESETS)


@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        ("channels", 0),
        ("channels", 65_536),
        ("channels", True),
        ("banks", 256),
        ("banks", 0),
        ("rows", 0),
        ("rows", 2**32),
        ("rows", 1.0),
        ("result_registers", 0),
        ("result_registers", 256),
        ("row_bytes", 0),
        ("row_bytes", 2050),
        ("burst_bytes", 0),
        ("burst_bytes", 33),
        ("burst_bytes", "32"),
        ("element", "bf16"),
        ("copy_column", "any"),
        ("commit_way", "none"),
        ("commit_way", "global-buffer"),
    ],
)
def test_refused_device_fields(parameter: str, value: Any) -> None:
    """Each field that cannot be is named with its value."""
    with pytest.raises(DeviceConfigError) as caught:
        attrs.evolve(aim_gddr6(), **{parameter: value})

    error = caught.value
    assert ("aim-gddr6", parameter, value) == (
        error.source,
        error.parameter,
        error.value,
    )
    assert f"{parameter} is {value!r}; accepted: " in str(error)


@pytest.mark.parametrize(
    ("fields", "parameter", "value"),
    [
        ({"burst_bytes": 130, "row_bytes": 130}, "lanes", 65),
        ({"row_bytes": 2 * 65_536, "burst_bytes": 2}, "bursts_per_row", 65_536),
    ],
)
def test_refused_derived_sizes(
    fields: dict[str, Any], parameter: str, value: int
) -> None:
    """Rows and bursts that a command stream cannot address are refused."""
    with pytest.raises(DeviceConfigError) as caught:
        attrs.evolve(aim_gddr6(), **fields)

    assert (parameter, value) == (caught.value.parameter, caught.value.value)


@pytest.mark.parametrize(
    "fields",
    [
        {"channels": 65_535, "banks": 255, "rows": 2**32 - 1, "result_registers": 255},
        {"burst_bytes": 128, "row_bytes": 128},
        {"row_bytes": 2 * 65_535, "burst_bytes": 2},
        {"copy_column": "free", "commit_way": "global-buffer"},
        {"copy_column": "free", "commit_way": "read-back"},
    ],
)
def test_accepted_device_fields(fields: dict[str, Any]) -> None:
    """The ends of the ranges, and Global Buffer commits where copies are free."""
    device = attrs.evolve(aim_gddr6(), **fields)

    assert fields == {name: getattr(device, name) for name in fields}


@pytest.mark.parametrize(
    ("capacity_gib", "rows"),
    [(16, 16_384), (32, 32_768), (0.5, 512), (0.001, 1), (1 / 1024, 1)],
)
def test_scaled_capacity(capacity_gib: float, rows: int) -> None:
    """Only the rows change, rounded down."""
    device = aim_gddr6().scaled(capacity_gib)

    assert attrs.evolve(aim_gddr6(), rows=rows) == device


@pytest.mark.parametrize(
    "capacity_gib", [0, -1, 0.0009, float("nan"), float("inf"), 1e9]
)
def test_refused_capacity(capacity_gib: float) -> None:
    """A capacity without a whole row per bank, or without end, is refused."""
    with pytest.raises(DeviceConfigError) as caught:
        aim_gddr6().scaled(capacity_gib)

    assert "capacity_gib" == caught.value.parameter
    assert caught.value.accepted.startswith("0.000976562 (one row per bank) to ")


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("llama3-8b", (32, 8, 4, 128, "llama3")),
        ("qwen3-8b", (36, 8, 4, 128, "qwen")),
        ("opt-6.7b", (32, 32, 1, 128, "gpt2")),
        ("qwen1.5-7b", (32, 32, 1, 128, "qwen")),
        ("tiny", (2, 1, 2, 128, "llama3")),
    ],
)
def test_model_presets(name: str, shape: tuple[int, int, int, int, str]) -> None:
    """Layers, KV heads, query heads of each, head dimension and tokenizer."""
    model = model_preset(name)
    heads = (model.layers, model.kv_heads, model.query_heads_per_kv)

    assert name == model.name
    assert shape == (*heads, model.head_dim, model.tokenizer)


@pytest.mark.parametrize("value", [0, -1, 1.0, True, "4", None])
@pytest.mark.parametrize(
    "parameter", ["layers", "kv_heads", "query_heads", "head_dim", "max_context"]
)
def test_refused_model_fields(parameter: str, value: Any) -> None:
    """Every size is a whole number from 1."""
    with pytest.raises(ModelConfigError) as caught:
        attrs.evolve(model_preset("tiny"), **{parameter: value})

    assert (parameter, value) == (caught.value.parameter, caught.value.value)


def test_refused_query_heads() -> None:
    """Query heads share the KV heads evenly."""
    with pytest.raises(ModelConfigError) as caught:
        ModelConfig("m", 1, 3, 4, 8, 64)

    assert ("query_heads", 4) == (caught.value.parameter, caught.value.value)
    assert "multiple of kv_heads, 3" in caught.value.accepted


@pytest.mark.parametrize("name", ["llama", "", "x" * 5000, "a\0b"])
def test_unknown_model(name: str) -> None:
    """A name that is neither preset nor path is answered with the presets."""
    with pytest.raises(ConfigError) as caught:
        model_preset(name)

    assert name == caught.value.value
    assert all(preset in str(caught.value) for preset in MODEL_PRESETS)


def test_scaled_capacity_is_never_rounded_up() -> None:
    """Just below five rows are four, on a device whose row is no power of two."""
    device = attrs.evolve(aim_gddr6(), channels=3)
    row_bytes = 3 * device.banks * device.row_bytes
    five_rows = 5 * row_bytes / 2**30

    assert 5 == device.scaled(five_rows).rows
    assert 4 == device.scaled(math.nextafter(five_rows, 0)).rows


def test_scaled_capacity_has_a_least_and_a_most() -> None:
    device = aim_gddr6()
    row_gib = device.channels * device.banks * device.row_bytes / 2**30
    least, most = row_gib, row_gib * (2**32 - 1)

    assert 1 == device.scaled(least).rows
    assert 2**32 - 1 == device.scaled(most).rows
    with pytest.raises(DeviceConfigError) as raised:
        device.scaled(0)
    accepted = "0.000976562 (one row per bank) to 4.1943e+06 GiB"
    assert accepted == raised.value.accepted
