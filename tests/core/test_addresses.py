from __future__ import annotations

import ast
import inspect
from collections.abc import Callable
from typing import Any

import attrs
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from patton import addresses
from patton.addresses import (
    Address,
    AddressMap,
    Element,
    key_address,
    key_element,
    slot_address,
    slot_element,
    value_address,
    value_element,
)
from patton.config import MODEL_PRESETS, DeviceConfig, ModelConfig, aim_gddr6
from patton.layout import Layout
from tests.core.strategies import address_counts, layouts, random_layout

KINDS: dict[str, tuple[Callable[..., Address], Callable[..., Element]]] = {
    "key": (key_address, key_element),
    "value": (value_address, value_element),
    "slot": (slot_address, slot_element),
}
SEEDS = range(150)


def seeded_layout(seed: int) -> Layout:
    return random_layout(np.random.default_rng(seed))


def element_counts(layout: Layout, kind: str) -> tuple[int, ...]:
    model = layout.model
    slots = layout.slots * layout.stripes
    indices = slots if kind == "slot" else layout.granules
    heads = (model.layers, model.kv_heads)
    return (*heads, indices, layout.block_tokens, model.head_dim)


def all_elements(layout: Layout, kind: str) -> Element:
    counts = element_counts(layout, kind)
    return Element(*np.indices(counts).reshape(5, -1))


def all_addresses(layout: Layout, kind: str) -> Address:
    return KINDS[kind][0](layout.map, *all_elements(layout, kind))


@pytest.mark.parametrize("kind", KINDS)
def test_addresses_lie_in_the_device(kind: str) -> None:
    """Every element of every layout has an address that the device has."""
    for layout in map(seeded_layout, SEEDS):
        address = all_addresses(layout, kind)

        bounds = address_counts(layout.device)
        for field, bound in zip(address, bounds, strict=True):
            assert 0 <= field.min()
            assert field.max() < bound


def test_no_two_elements_share_an_address() -> None:
    """Keys, Values and slots of all layers and heads occupy distinct lanes."""
    for layout in map(seeded_layout, SEEDS):
        shape = address_counts(layout.device)
        flat = np.concatenate(
            [np.ravel_multi_index(all_addresses(layout, kind), shape) for kind in KINDS]
        )

        assert len(flat) == len(np.unique(flat))


@pytest.mark.parametrize("kind", KINDS)
def test_inverse_of_address(kind: str) -> None:
    """The element at an element's address is that element."""
    for layout in map(seeded_layout, SEEDS):
        elements = all_elements(layout, kind)
        found = KINDS[kind][1](layout.map, all_addresses(layout, kind))

        assert np.array_equal(np.stack(elements), np.stack(found))


@given(layout=layouts(), data=st.data())
@pytest.mark.parametrize("kind", KINDS)
def test_integers_and_arrays_agree(
    kind: str, layout: Layout, data: st.DataObject
) -> None:
    """One element as integers and as arrays has one address, and comes back as both."""
    counts = element_counts(layout, kind)
    element = Element(*(data.draw(st.integers(0, count - 1)) for count in counts))
    arrays = Element(*(np.array([value]) for value in element))
    address_of, element_at = KINDS[kind]
    address = address_of(layout.map, *element)
    array_address = address_of(layout.map, *arrays)

    assert all(type(field) is int for field in address)
    assert address == Address(*(int(field[0]) for field in array_address))
    assert element == element_at(layout.map, address)
    back = element_at(layout.map, array_address)
    assert element == Element(*(int(field[0]) for field in back))


@given(layout=layouts(), data=st.data())
@pytest.mark.parametrize("kind", ["value", "slot"])
def test_tokens_of_an_element_fill_whole_bursts(
    kind: str, layout: Layout, data: st.DataObject
) -> None:
    """A Value row of a block is adjacent bursts of one bank, token after token."""
    counts = element_counts(layout, kind)
    layer, head, index, _, element = (
        data.draw(st.integers(0, count - 1)) for count in counts
    )
    tokens = np.arange(layout.block_tokens)
    address = KINDS[kind][0](layout.map, layer, head, index, tokens, element)
    column = address.burst * layout.device.lanes + address.lane

    assert np.array_equal(column, column[0] + tokens)
    assert 0 == address.lane[0]
    assert all(np.ndim(field) == 0 for field in address[:3])


@given(layout=layouts(), data=st.data())
def test_key_of_a_token_is_adjacent_lanes(layout: Layout, data: st.DataObject) -> None:
    """A token's Key is a run of lanes in one row of bank `token % banks`."""
    counts = element_counts(layout, "key")
    layer, head, index, token, _ = (
        data.draw(st.integers(0, count - 1)) for count in counts
    )
    elements = np.arange(layout.model.head_dim)
    address = key_address(layout.map, layer, head, index, token, elements)
    column = address.burst * layout.device.lanes + address.lane

    assert np.array_equal(column, column[0] + elements)
    assert 0 == address.lane[0]
    assert token % layout.device.banks == address.bank


@given(layout=layouts(), data=st.data())
def test_commit_keeps_channel_bank_and_lane(
    layout: Layout, data: st.DataObject
) -> None:
    """A slot of the granule's stripe differs from the granule in row and burst only."""
    counts = element_counts(layout, "value")
    element = Element(*(data.draw(st.integers(0, count - 1)) for count in counts))
    zone_slot = data.draw(st.integers(0, layout.slots - 1))
    slot = zone_slot * layout.stripes + element.index % layout.stripes
    source = slot_address(layout.map, *element._replace(index=slot))
    target = value_address(layout.map, *element)

    assert source.channel == target.channel
    assert source.bank == target.bank
    assert source.lane == target.lane


@given(layout=layouts(), data=st.data())
@pytest.mark.parametrize("kind", KINDS)
def test_layers_and_heads_shift_whole_planes_and_groups(
    kind: str, layout: Layout, data: st.DataObject
) -> None:
    """One stream serves all layers and heads: only channel and row bases differ."""
    counts = element_counts(layout, kind)
    element = Element(*(data.draw(st.integers(0, count - 1)) for count in counts))
    base = KINDS[kind][0](layout.map, *element._replace(layer=0, head=0))
    fold, group = divmod(element.head, layout.groups)
    plane = element.layer * layout.folds + fold
    expected = base._replace(
        channel=base.channel + group * layout.channels_per_head,
        row=base.row + plane * layout.rows_per_plane,
    )

    assert expected == KINDS[kind][0](layout.map, *element)


def llama3_map() -> AddressMap:
    return Layout.of(aim_gddr6(), MODEL_PRESETS["llama3-8b"]).map


@pytest.mark.parametrize(
    ("address_of", "element", "expected"),
    [
        # Granule 37 is on channel 1, its ninth there: second row, second place.
        (key_address, (0, 0, 37, 3, 20), (1, 3, 1, 9, 4)),
        # Layer 2 begins at row 1,024 and head 5 at channel 20.
        (key_address, (2, 5, 37, 3, 20), (21, 3, 1025, 9, 4)),
        # Sub-block 5 of eight on four channels: channel 1, second row of the set.
        (value_address, (0, 0, 37, 3, 85), (1, 5, 256, 37, 3)),
        # Granule 100 is in the second set of two rows.
        (value_address, (0, 7, 100, 15, 0), (28, 0, 257, 36, 15)),
        # The paper's c_CZ(i, t) = c_slot + 16 i + t: slot 3 begins at burst 6.
        (slot_address, (0, 0, 3, 2, 85), (1, 5, 511, 7, 2)),
    ],
)
def test_worked_addresses(
    address_of: Callable[..., Address],
    element: tuple[int, ...],
    expected: tuple[int, ...],
) -> None:
    """Addresses of Llama3-8B on 16 GiB of AiM, worked out by hand."""
    assert expected == address_of(llama3_map(), *element)


def test_worked_addresses_with_stripes() -> None:
    """A single head on 32 channels: granules take four stripes of eight in turn."""
    model = attrs.evolve(MODEL_PRESETS["llama3-8b"], kv_heads=1)
    layout = Layout.of(aim_gddr6(), model)

    # Stripe 2 of granule 6; sub-block 3 (element 50 = 3 * 16 + 2).
    value = value_address(layout.map, 0, 0, 6, 9, 50)
    assert (2 * 8 + 3, 2, 255, 1, 9) == value
    # Slot 70 is slot 17 of stripe 2.
    slot = slot_address(layout.map, 0, 0, 70, 9, 50)
    assert (2 * 8 + 3, 2, 510, 17, 9) == slot


def test_worked_addresses_with_folds_and_wide_blocks() -> None:
    """Three heads on two channels, blocks of 12 tokens, 4 banks, 6 lanes."""
    device = DeviceConfig("d", 2, 4, 40, 8 * 12, 12)
    model = ModelConfig("m", 1, 3, 3, 7, 64)
    layout = Layout.of(device, model, block_tokens=12, pair_blocks=1)

    # Head 2 is on channel 0 in the second fold, which begins at row 20.
    assert (0, 1, 21, 5, 0) == key_address(layout.map, 0, 2, 1, 9, 6)
    value = value_address(layout.map, 0, 2, 1, 9, 6)
    assert (0, 2, 20 + layout.key_rows + 1, 3, 3) == value


def test_only_ring_operators() -> None:
    """The module computes with + - * // % only, so that a solver can follow it."""
    tree = ast.parse(inspect.getsource(addresses))
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    nodes: list[Any] = [n for f in functions for s in f.body for n in ast.walk(s)]
    operators = {type(n.op) for n in nodes if isinstance(n, ast.BinOp)}
    called = {ast.unparse(n.func) for n in nodes if isinstance(n, ast.Call)}
    names = {function.name for function in functions}
    branches = (ast.If, ast.IfExp, ast.For, ast.While, ast.Compare, ast.BoolOp)

    assert operators <= {ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.Mod}
    assert called <= names | {"Address", "Element"}
    assert not any(isinstance(node, branches) for node in nodes)
