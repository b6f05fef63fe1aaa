"""One granule index has a place for a Key and a place for a Value, in every head.

Clause MAP-INDEX. Both caches offer exactly the indices `[0, granules)`, in every layer
and head and for every token. So a block takes one index for both, and neither cache can
run out before the other.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from proofs.geometry import Geometry
from proofs.layouts import odd
from proofs.numbers import every
from proofs.positions import KEY, VALUE, granule, head, layer, token
from proofs.spaces import Space
from proofs.theorem import Case, Claim, Swap, Theorem


def given(space: Space) -> tuple[Geometry, tuple[Any, ...], Any]:
    """Any geometry, any token of any granule index, and any element of a head."""
    g = space.geometry()
    place = layer(space, g), head(space, g), granule(space, g), token(space, g)
    return g, place, space.number("element", g.head_dim)


def claim(g: Geometry, place: tuple[Any, ...], element: Any) -> Iterator[Claim]:
    """Key and Value have a place, each in its region, and each is found again."""
    for kind in (KEY, VALUE):
        at = kind.address(g, *place, element)
        home = every(condition for _, condition in kind.home(g, at))
        yield Claim(f"the {kind.word} has a place", home, {"address": at})
        found = kind.element(g, at)
        yield Claim(f"of this {kind.word} index", found.index == place[2], {"at": at})


THEOREMS = (
    Theorem(
        name="an_index_places_key_and_value",
        clause="MAP-INDEX",
        given=given,
        claim=claim,
        witness=Case(
            odd, {"layer": 1, "head": 2, "granule": 11, "token": 9, "element": 6}
        ),
        planted=(
            Swap(
                "addresses.value_address",
                "(place // m.values_per_set) * m.rows_per_value",
                "place // m.values_per_set",
            ),
            Swap("addresses.key_address", "granule % m.channels_per_head", "0"),
        ),
    ),
)
