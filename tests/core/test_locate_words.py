"""Regions and locations in their words, on one small layout of odd sizes."""

from __future__ import annotations

from itertools import count

import attrs
import numpy as np
import pytest

from patton.addresses import Address, key_address, slot_address, value_address
from patton.layout import Layout
from patton.locate import first_row, locate, regions
from tests.core.strategies import address_counts, random_layout


def layout_with(*wanted: str) -> Layout:
    """The first seeded layout that has all of this."""
    layouts = (random_layout(np.random.default_rng(seed)) for seed in count())
    facts = {
        "stripes": lambda it: it.stripes > 1,
        "channels": lambda it: it.channels_per_head > 1,
        "one head a channel group": lambda it: it.folds == 1 and it.groups > 1,
        "unused rows": lambda it: it.unused_rows > 0,
        "padding": lambda it: it.padding_bytes > 0,
        "one Key a row": lambda it: it.channels_per_head * it.keys_per_row == 1,
        "one channel": lambda it: it.device.channels == 1 < it.folds,
        "padded slots": lambda it: (
            it.rows_per_value * it.value_channels * it.device.banks > it.model.head_dim
        ),
        "many slots": lambda it: it.slots * it.stripes > it.granules,
        "small slots": lambda it: it.slots * it.stripes < it.granules,
    }
    return next(it for it in layouts if all(facts[name](it) for name in wanted))


def test_regions_follow_each_other() -> None:
    layout = layout_with("unused rows")
    rows = (layout.key_rows, layout.value_rows, layout.commit_zone_rows)

    assert [
        ("Key", "key", 0, rows[0]),
        ("Value", "value", rows[0], rows[1]),
        ("Commit Zone", "slot", rows[0] + rows[1], rows[2]),
        ("unused", None, sum(rows), layout.unused_rows),
    ] == [attrs.astuple(region) for region in regions(layout)]


@pytest.mark.parametrize("wanted", ["channels", "one Key a row", "one channel"])
def test_a_plane_begins_with_its_first_key(wanted: str) -> None:
    layout = layout_with(wanted)
    for layer in range(layout.model.layers):
        for head in range(layout.model.kv_heads):
            plane = layer * layout.folds + head // layout.groups
            assert plane * layout.rows_per_plane == first_row(layout, layer, head)
            first = key_address(layout.map, layer, head, 0, 0, 0)
            assert locate(layout, first).region == "Key"
            first = value_address(layout.map, layer, head, 0, 0, 0)
            assert locate(layout, first).region == "Value"


@pytest.mark.parametrize(
    "wanted",
    [
        ("padding", "unused rows"),
        ("padding", "stripes", "small slots"),
        ("one head a channel group", "unused rows"),
    ],
)
def test_every_address_says_what_it_is_for(wanted: tuple[str, ...]) -> None:
    layout = layout_with(*wanted)
    last = {
        "key": ("Key granule", layout.granules),
        "value": ("Value granule", layout.granules),
        "slot": ("slot", layout.slots * layout.stripes),
    }
    ends = [row.end_row for row in regions(layout)]
    names = [row.name for row in regions(layout)]
    notes = {""}
    counts = address_counts(layout.device)
    places = np.random.default_rng(0).integers(0, counts, (400, len(counts)))
    for place in places.tolist():
        found = locate(layout, Address(*place))
        inside = place[2] < layout.planes * layout.rows_per_plane
        row = place[2] % layout.rows_per_plane
        nearest = next((i for i, end in enumerate(ends) if row < end), 0)
        assert found.region == (names[nearest] if inside else "")
        notes.add(found.note)
        if found.use == "padding":
            assert found.element is not None
            assert found.element.element >= layout.model.head_dim
            assert found.kind == ("key", "value", "slot")[nearest]
        elif found.use == "unused":
            assert (found.kind, found.element) == (None, None)
    known = {
        "",
        f"beyond the rows of the last of {layout.planes} planes",
        f"no KV head of the {layout.model.kv_heads} is on this channel",
        "a row that is left over: another pair does not fit the plane",
        f"padding: a head has {layout.model.head_dim} elements",
    }
    for held, size in last.values():
        known.add(f"the end of a row, too short for another {held}")
        known.add(f"after the last {held}, which is {size - 1}")
    assert notes <= known


def test_the_last_slot_has_padding_though_there_are_fewer_granules() -> None:
    layout = layout_with("padded slots", "many slots")
    last, beyond = layout.slots * layout.stripes - 1, layout.model.head_dim
    address = slot_address(layout.map, 0, 0, last, 0, beyond)
    found = locate(layout, address)

    assert ("padding", "slot") == (found.use, found.kind)
    assert (0, 0, last, 0, beyond) == found.element
