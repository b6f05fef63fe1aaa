"""A pair's row set, as the allocator counts it, is where its first block lies.

Clause MAP-PAIR. A pair is the run of `pair_blocks` granule indices that begins at a
multiple of it; `Layout.value_set_of_pair` and `Layout.pair_of` are what allocation
knows of addresses, and this is why it needs no more.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from patton.layout import Layout
from proofs.geometry import Geometry
from proofs.layouts import odd
from proofs.positions import VALUE
from proofs.spaces import Space
from proofs.symbolic import layout_of
from proofs.theorem import Case, Claim, Swap, Theorem


def given(space: Space) -> tuple[Geometry, Layout, Any, Any]:
    """Any geometry, any pair and any place in it."""
    g = space.geometry()
    pair = space.number("pair", g.pairs)
    return g, layout_of(g), pair, space.number("place", g.pair_blocks)


def claim(g: Geometry, layout: Layout, pair: Any, place: Any) -> Iterator[Claim]:
    """The set is that of the first place's address; every place is in the pair."""
    m = g.map
    first = pair * g.pair_blocks
    at = VALUE.address(g, 0, 0, first, 0, 0)
    row_set = layout.value_set_of_pair(pair)
    shown = {"address of the first place": at, "row set": row_set}
    begins = m.key_rows + row_set * m.rows_per_value
    yield Claim("its first place begins the row set", at.row == begins, shown)
    yield Claim("the row set exists", row_set < g.row_sets, shown)
    granule = first + place
    yield Claim("the granule exists", granule < g.granules, {"granule": granule})
    yield Claim("it is in the pair", layout.pair_of(granule) == pair, shown)


THEOREMS = (
    Theorem(
        name="a_pair_begins_in_its_row_set",
        clause="MAP-PAIR",
        given=given,
        claim=claim,
        witness=Case(odd, {"pair": 3, "place": 2}),
        planted=(
            Swap("layout.Layout.value_set_of_pair", "self.stripes", "1"),
            Swap("layout.Layout.value_set_of_pair", "self.pair_blocks", "1"),
            Swap("layout.Layout.pair_of", "self.pair_blocks", "self.pairs"),
        ),
    ),
)
