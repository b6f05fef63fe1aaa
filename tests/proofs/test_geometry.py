"""What theorems assume of a geometry: it holds of layouts, and excludes something."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from proofs.geometry import Geometry, positive, premises
from proofs.layouts import llama3, odd, one_head, striped

LAYOUTS = (llama3, one_head, odd, striped)


def broken(g: Geometry) -> set[str]:
    return {name for name, holds in premises(g) if not holds}


def changed(g: Geometry, **fields: Any) -> Geometry:
    """With other counts; those of the map have its name before them."""
    of_map = {
        name.removeprefix("map_"): value
        for name, value in fields.items()
        if name.startswith("map_")
    }
    rest = {name: fields[name] for name in fields if not name.startswith("map_")}
    return attrs.evolve(g, map=attrs.evolve(g.map, **of_map), **rest)


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: layout.__name__)
def test_layouts_keep_all_premises(layout: Any) -> None:
    assert set() == broken(Geometry.of(layout()))


def test_numbers_of_the_representative_configuration() -> None:
    """Llama3-8B on 32 channels of 16 banks, counted by hand (Paper 4.2)."""
    g = Geometry.of(llama3())

    assert (32, 8, 128, 16, 16) == (
        g.layers,
        g.heads,
        g.head_dim,
        g.block_tokens,
        g.pair_blocks,
    )
    assert (128, 128) == (g.key_elements, g.value_elements)
    assert (64, 64) == (g.key_columns, g.value_columns)
    assert g.granules == g.pairs * 16
    assert 32 == g.planes


# One change that breaks each premise, of the layout in which nothing divides anything.
EXCLUDED: dict[str, dict[str, Any]] = {
    "c = u cv": {"map_stripes": 2},
    "tokens fill banks": {"map_banks": 5},
    "tokens fill lanes": {"map_lanes": 5},
    "Key bursts hold a head": {"head_dim": 13},
    "sub-blocks hold a head": {"head_dim": 9},
    "folds hold all heads": {"heads": 5},
    "channels suffice": {"channels": 1},
    "a row holds its Keys": {"map_keys_per_row": 2},
    "a row holds its Values": {"map_values_per_set": 9},
    "a row holds its slots": {"map_slots_per_row": 9},
    "Value rows are whole sets": {"map_value_rows": 3},
    "a plane holds its regions": {"zone_rows": 99},
    "rows suffice": {"rows": 9},
    "Key rows hold all granules": {"pairs": 999},
    "Value rows hold all granules": {"row_sets": 1},
}


@pytest.mark.parametrize("name", EXCLUDED)
def test_every_premise_excludes_something(name: str) -> None:
    assert name in broken(changed(Geometry.of(odd()), **EXCLUDED[name]))


def test_every_premise_is_tried() -> None:
    """All but that counts are positive, which has a test of its own."""
    g = Geometry.of(odd())
    counts = {name for name, _ in positive(g)}

    assert {name for name, _ in premises(g)} == EXCLUDED.keys() | counts


def test_no_count_is_zero() -> None:
    """Every field, of the map and around it."""
    g = Geometry.of(odd())
    fields = [f.name for f in attrs.fields(Geometry) if f.name != "map"]
    fields += [f"map_{field.name}" for field in attrs.fields(type(g.map))]
    for name in fields:
        says = f"{name.removeprefix('map_')} is positive"
        assert says in {
            s for s, holds in positive(changed(g, **{name: 0})) if not holds
        }
