"""Layers and heads only shift: one command stream serves them all.

Clause MAP-SHIFT, for Keys, Values and slots: another layer or fold adds whole planes to
the row, another head whole channel groups to the channel, and nothing else changes.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from patton.addresses import Element
from proofs.geometry import Geometry
from proofs.layouts import odd
from proofs.positions import KEY, SLOT, VALUE, Kind
from proofs.spaces import Space
from proofs.theorem import Bug, Case, Claim, Swap, Theorem


def given(space: Space, kind: Kind) -> tuple[Kind, Geometry, Element]:
    """Any geometry, and any place of the kind in it."""
    g = space.geometry()
    return kind, g, kind.place(space, g)


def claim(kind: Kind, g: Geometry, x: Element) -> Iterator[Claim]:
    """The address is that of layer 0 and head 0, shifted."""
    m = g.map
    at, base = kind.address(g, *x), kind.address(g, 0, 0, *x[2:])
    plane = x.layer * m.folds + x.head // m.groups
    shifted = base._replace(
        channel=base.channel + x.head % m.groups * m.channels_per_head,
        row=base.row + plane * m.rows_per_plane,
    )
    for name, value, expected in zip(at._fields, at, shifted, strict=True):
        shown = {"address": at, "in layer 0 and head 0": base}
        yield Claim(f"the {name} is that of head 0, shifted", value == expected, shown)


def witness(kind: Kind) -> Case:
    """A head of the last fold in the last layer."""
    at = {"layer": 1, "head": 2, kind.index_name: 3, "token": 9, "element": 6}
    return Case(odd, at)


PLANTED: dict[Kind, tuple[Bug, ...]] = {
    KEY: (
        Swap("addresses.key_address", "token % m.banks", "(token + head) % m.banks"),
    ),
    VALUE: (
        Swap("addresses.value_address", "granule // m.stripes", "(granule + layer)"),
    ),
    SLOT: (Swap("addresses.slot_address", "slot // m.stripes", "slot + head"),),
}

THEOREMS = tuple(
    Theorem(
        name=f"{kind.word}_of_a_head_is_shifted",
        clause="MAP-SHIFT",
        given=partial(given, kind=kind),
        claim=claim,
        witness=witness(kind),
        planted=planted,
    )
    for kind, planted in PLANTED.items()
)
