from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from click.testing import Result
from hypothesis import given
from hypothesis import strategies as st

from patton.addresses import Address, Element
from patton.cli.where import as_data, in_words
from patton.config import MODEL_PRESETS, aim_gddr6
from patton.layout import Kind, Layout
from patton.locate import locate
from tests.core.strategies import layouts

Patton = Callable[..., Result]


@st.composite
def elements(draw: st.DrawFn) -> tuple[Layout, Kind, Element]:
    layout = draw(layouts())
    kinds: tuple[Kind, ...] = ("key", "value", "slot")
    kind = draw(st.sampled_from(kinds))
    model = layout.model
    indices = layout.slots * layout.stripes if kind == "slot" else layout.granules
    counts = (
        model.layers,
        model.kv_heads,
        indices,
        layout.block_tokens,
        model.head_dim,
    )
    return layout, kind, Element(*(draw(st.integers(0, n - 1)) for n in counts))


@given(elements())
def test_there_and_back(drawn: tuple[Layout, Kind, Element]) -> None:
    """What lies at the address of an element is that element, in both forms."""
    layout, kind, element = drawn
    location = locate(layout, layout.address_of(kind, element))
    data = as_data(layout, location)
    address = Address(*(data[name] for name in Address._fields))

    assert location == locate(layout, address)
    assert (kind, "element") == (data["kind"], data["use"])
    assert element == Element(*(data[name] for name in Element._fields))
    if kind != "slot":
        assert element.index == data["pair"] * layout.pair_blocks + data["place"]
    forth = in_words(layout, location, address_first=False)
    back = in_words(layout, location, address_first=True)
    assert forth.splitlines() == back.splitlines()[::-1]


WORKED = ("--block", 1234, "--token", 5, "--element", 70)


@pytest.mark.parametrize(
    ("more", "address"),
    [
        # Channel 1234 % 4, k = 308: row 38, burst 4 * 8 + 70 // 16, lane 70 % 16.
        ((), "channel 2, bank 5, row 38, burst 36, lane 6 (Key region)"),
        # Sub-block 4 in channel 0, row 0 of set 19; burst 1234 % 64; lane 5; bank 6.
        (
            ("--kind", "value", "--head", 3, "--layer", 31),
            "channel 12, bank 6, row 16166, burst 18, lane 5 (Value region)",
        ),
    ],
    ids=["key", "value"],
)
def test_worked_by_hand(patton: Patton, more: tuple[Any, ...], address: str) -> None:
    """Where an element of Llama3-8B lies on AiM, as the formulas say."""
    result = patton("where", *WORKED, *more)
    of_what = "Value" if more else "Key"

    assert 0 == result.exit_code
    first, last = result.stdout.splitlines()
    assert first.startswith(
        f"{of_what} in granule 1234 (place 2 of pair 77), token 5, element 70, KV head "
    )
    assert address == last


def test_back(patton: Patton) -> None:
    """An address is told what lies there."""
    result = patton("where", "--at", 12, 6, 16166, 18, 5)

    assert (
        "channel 12, bank 6, row 16166, burst 18, lane 5 (Value region)\n"
        "Value in granule 1234 (place 2 of pair 77), token 5, element 70, KV head 3, "
        "layer 31\n"
    ) == result.stdout


def test_slot(patton: Patton) -> None:
    """A slot has neither pair nor place."""
    words = ("where", "--kind", "slot", "--block", 1, "--token", 5, "--element", 70)
    data = json.loads(patton(*words, "--json").stdout)

    assert {
        "channel": 0,
        "bank": 6,
        "row": 511,
        "burst": 3,
        "lane": 5,
        "use": "element",
        "region": "Commit Zone",
        "kind": "slot",
        "layer": 0,
        "head": 0,
        "index": 1,
        "token": 5,
        "element": 70,
        "pair": None,
        "place": None,
        "note": None,
    } == data


def test_nothing(patton: Patton) -> None:
    """Where nothing lies, the reason stands in its place."""
    words = ("where", "--model", "qwen3-8b", "--at", 0, 0, 454, 0, 0)
    note = "a row that is left over: another pair does not fit the plane"
    data = json.loads(patton(*words, "--json").stdout)

    assert (
        f"channel 0, bank 0, row 454, burst 0, lane 0\n{note}\n"
        == patton(*words).stdout
    )
    assert ("unused", "unused", None, None, note) == (
        data["use"],
        data["region"],
        data["kind"],
        data["index"],
        data["note"],
    )


RANGES = {
    "--layer": ("layer", 31),
    "--head": ("head", 7),
    "--block": ("index", 8159),
    "--token": ("token", 15),
    "--element": ("element", 127),
}


@pytest.mark.parametrize("option", RANGES)
@pytest.mark.parametrize("low", [True, False], ids=["below", "above"])
def test_out_of_range(patton: Patton, option: str, low: bool) -> None:
    """A coordinate outside the layout is refused with its range."""
    name, last = RANGES[option]
    value = -1 if low else last + 1
    given_words = dict(zip(WORKED[::2], WORKED[1::2], strict=True)) | {option: value}
    result = patton("where", *(word for item in given_words.items() for word in item))

    assert 2 == result.exit_code
    assert f"{name} is {value}; accepted: 0 to {last}\n" in result.output


@pytest.mark.parametrize("axis", range(5))
def test_address_out_of_range(patton: Patton, axis: int) -> None:
    """An address outside the device is refused with the range of the axis."""
    layout = Layout.of(aim_gddr6(), MODEL_PRESETS["llama3-8b"])
    device = layout.device
    counts = (device.channels, device.banks, device.rows, 64, 16)
    place = [0, 0, 0, 0, 0]
    place[axis] = counts[axis]
    result = patton("where", "--at", *place)
    name = Address._fields[axis]

    assert 2 == result.exit_code
    assert f"{name} is {counts[axis]}; accepted: 0 to {counts[axis] - 1}\n" in (
        result.output
    )
