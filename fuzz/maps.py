"""The address map of one small layout, looked at place by place: the clauses MAP-*.

What is proved of all geometries (`proofs`) is looked at here with numbers, through the
functions as they are shipped, so that a wrong one is caught by the clause it breaks.
Where an element lies is not computed anew: a check compares what the map says in
several places with each other, or with what `BlockShapes` counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from fuzz.world import FailureError
from patton import addresses
from patton.addresses import Address, Element
from patton.errors import LayoutError
from patton.layout import Kind, Layout
from patton.runtime import Runtime
from tests.core.strategies import address_counts, random_layout

Ints = NDArray[np.int64]
KINDS: tuple[Kind, ...] = ("key", "value", "slot")
SAMPLED = 60  # elements and addresses that are looked up one by one


@attrs.frozen(eq=False)
class Mapped:
    """Every place of every kind, the padding of heads included, and its address."""

    layout: Layout
    places: dict[Kind, Element]
    at: dict[Kind, Address]

    @classmethod
    def of(cls, layout: Layout) -> Mapped:
        """All places of a layout, in arrays [places]."""
        places = {kind: _places(layout, kind) for kind in KINDS}
        at = {kind: address_of(layout, kind, places[kind]) for kind in KINDS}
        return cls(layout, places, at)

    def flat(self, at: Address) -> Ints:
        """Addresses as single numbers."""
        shape = address_counts(self.layout.device)
        strides = np.append(np.cumprod(shape[:0:-1])[::-1], 1)
        parts = zip(at, strides.tolist(), strict=True)
        flat: Ints = np.sum([part * stride for part, stride in parts], axis=0)
        return flat


def _places(layout: Layout, kind: Kind) -> Element:
    model = layout.model
    indices = layout.slots * layout.stripes if kind == "slot" else layout.granules
    parts = layout.rows_per_value * layout.value_channels * layout.device.banks
    elements = layout.key_bursts * layout.device.lanes if kind == "key" else parts
    shape = (model.layers, model.kv_heads, indices, layout.block_tokens, elements)
    return Element(*np.indices(shape).reshape(5, -1))


def address_of(layout: Layout, kind: Kind, place: Element) -> Address:
    """The address of places, by the shipped function, each field as an array."""
    found = getattr(addresses, f"{kind}_address")(layout.map, *place)
    return Address(*np.broadcast_arrays(*found))


def element_at(layout: Layout, kind: Kind, at: Address) -> Element:
    """The place at addresses, by the shipped function."""
    found: Element = getattr(addresses, f"{kind}_element")(layout.map, at)
    return found


Check = Callable[[Mapped], None]
CHECKS: dict[str, Check] = {}


def check(clause: str) -> Callable[[Check], Check]:
    """Register the check of a clause."""

    def register(function: Check) -> Check:
        CHECKS[clause] = function
        return function

    return register


def broken(layout: Layout) -> Iterator[FailureError]:
    """The clauses that a layout breaks, each with what is wrong."""
    mapped = Mapped.of(layout)
    for clause, function in CHECKS.items():
        try:
            function(mapped)
        except AssertionError as error:
            shape = f"{layout.device}, {layout.model}, {layout.block_tokens} tokens"
            yield FailureError(clause, f"{clause}: {error}; {shape}")


def broken_by(seed: int) -> list[FailureError]:
    """What a random layout of a seed breaks, if it can be laid out at all."""
    try:
        layout = random_layout(np.random.default_rng(seed))
        return [*broken(layout)]
    except Exception as error:  # noqa: BLE001
        return [FailureError("MAP-ACCEPT", f"{type(error).__name__}: {error}")]


def _same(what: str, found: Any, expected: Any) -> None:
    assert np.array_equal(found, expected), what


def _kinds(*parts: Ints) -> int:
    """How many different rows there are of some columns."""
    rows = np.zeros_like(parts[0])
    for part in parts:
        _, number = np.unique(part, return_inverse=True)
        rows = rows * (1 + number.max()) + number
    return len(np.unique(rows))


# --- places and addresses -------------------------------------------------------------


@check("MAP-INSIDE")
def _(m: Mapped) -> None:
    layout, first = m.layout, 0
    rows = (layout.key_rows, layout.value_rows, layout.commit_zone_rows)
    for kind, count in zip(KINDS, rows, strict=True):
        at, place = m.at[kind], m.places[kind]
        for name, value, most in zip(
            at._fields, at, address_counts(layout.device), strict=True
        ):
            assert ((value >= 0) & (value < most)).all(), f"the device has the {name}"
        row = at.row % layout.rows_per_plane
        assert ((first <= row) & (row < first + count)).all(), f"{kind} rows"
        plane = place.layer * layout.folds + place.head // layout.groups
        _same(f"plane of a {kind}", at.row // layout.rows_per_plane, plane)
        group = at.channel // layout.channels_per_head
        _same(f"channels of a {kind}", group, place.head % layout.groups)
        first += count


@check("MAP-DISJOINT")
def _(m: Mapped) -> None:
    flat = np.concatenate([m.flat(m.at[kind]) for kind in KINDS])
    assert len(np.unique(flat)) == len(flat), "two places at one address"


@check("MAP-INVERSE")
def _(m: Mapped) -> None:
    for kind in KINDS:
        found = element_at(m.layout, kind, m.at[kind])
        _same(f"the {kind} that is found", np.stack(found), np.stack(m.places[kind]))


@check("MAP-ONTO")
def _(m: Mapped) -> None:
    """What is not declared as idle, as a rest, or beyond the last, is in use."""
    layout = m.layout
    every = Address(*np.indices(address_counts(layout.device)).reshape(5, -1))
    used = np.zeros(len(every.row), np.bool_)
    flat = np.concatenate([m.flat(m.at[kind]) for kind in KINDS])
    used[flat[(flat >= 0) & (flat < len(used))]] = True
    fold = every.row // layout.rows_per_plane % layout.folds
    head = fold * layout.groups + every.channel // layout.channels_per_head
    has_head = every.channel < layout.groups * layout.channels_per_head
    has_head &= head < layout.model.kv_heads
    has_head &= every.row < layout.planes * layout.rows_per_plane
    row = every.row % layout.rows_per_plane
    zone = layout.key_rows + layout.value_rows
    channel = every.channel % layout.channels_per_head
    width = layout.rows_per_value * layout.value_width
    place = row * layout.keys_per_row + every.burst // layout.key_width
    keys = (row < layout.key_rows) & (
        every.burst < layout.keys_per_row * layout.key_width
    )
    keys &= place * layout.channels_per_head + channel < layout.granules
    row_set = (row - layout.key_rows) // layout.rows_per_value
    place = row_set * layout.values_per_set + every.burst // layout.value_width
    values = (layout.key_rows <= row) & (row < zone)
    values &= every.burst < layout.values_per_set * layout.value_width
    stripe = channel // layout.value_channels
    values &= place * layout.stripes + stripe < layout.granules
    slots = (zone <= row) & (row < zone + layout.commit_zone_rows)
    slots &= every.burst < layout.slots_per_row * width
    _same("what is in use", used, has_head & (keys | values | slots))


@check("MAP-LOOKUP")
def _(m: Mapped) -> None:
    """Of some elements and of addresses anywhere, each once by itself."""
    layout, counts = m.layout, address_counts(m.layout.device)
    rng = np.random.default_rng(len(m.at["key"].row))
    chosen = rng.integers(counts, size=(SAMPLED, 5)).tolist()
    flat = []
    for kind in KINDS:
        real = m.places[kind].element < layout.model.head_dim
        some = rng.choice(np.flatnonzero(real), SAMPLED)
        chosen += np.stack(m.at[kind], axis=1)[some].tolist()
        flat.append(np.where(real, m.flat(m.at[kind]), -1))
    lies = np.concatenate(flat)
    for at in (Address(*row) for row in chosen):
        found = layout.element_at(at)
        there = np.flatnonzero(lies == m.flat(at))
        held = [_named(m, int(number)) for number in there]
        assert (held or None) == (found and [found]), (
            f"{found} at {at}, where {held} lies"
        )


def _named(m: Mapped, number: int) -> tuple[Kind, Element]:
    """A place by its number among those of all kinds."""
    for kind in KINDS:
        count = len(m.places[kind].index)
        if number < count:
            return kind, Element(*(int(part[number]) for part in m.places[kind]))
        number -= count
    raise AssertionError(number)


@check("MAP-INDEX")
def _(m: Mapped) -> None:
    """Both caches have a place for exactly the indices that are given out."""
    layout, zone = m.layout, m.layout.key_rows + m.layout.value_rows
    given = Runtime.of(layout).bindable(0)
    regions: tuple[tuple[Kind, int, int], ...] = (
        ("key", 0, layout.key_rows),
        ("value", layout.key_rows, zone),
    )
    for kind, first, end in regions:
        row = m.at[kind].row % layout.rows_per_plane
        assert ((first <= row) & (row < end)).all(), f"each index has a {kind}"
        _same(f"indices of {kind}s", np.unique(m.places[kind].index), np.arange(given))


@check("MAP-ACCEPT")
def _(m: Mapped) -> None:
    layout, rows = m.layout, m.layout.rows_per_plane
    held = layout.granules
    assert sum(layout.rows_for(held, layout.slots)) <= rows, "the pairs fit"
    more = held + layout.pair_blocks
    assert sum(layout.rows_for(more, layout.slots)) > rows, "no pair more fits"
    least = sum(layout.rows_for(layout.pair_blocks, layout.slots)) * layout.planes
    asked = {
        "rows": least,
        "block_tokens": layout.block_tokens,
        "pair_blocks": layout.pair_blocks,
        "slots": layout.slots,
    }
    assert _laid_out(layout, asked).pairs >= 1, "so many rows are enough"
    for changed in ({"rows": least - 1}, {"block_tokens": 0}, {"slots": 10**6}):
        _mend(layout, asked | changed)


def _mend(layout: Layout, asked: dict[str, int]) -> None:
    """What does not fit is refused, and named with a value that does."""
    for refusals in range(len(asked)):
        try:
            _laid_out(layout, asked)
        except LayoutError as error:
            refusal = error
        else:
            assert refusals, f"{asked} is refused"
            return
        assert refusal.fits is not None, f"what fits: {refusal}"
        asked[refusal.parameter] = refusal.fits
    raise AssertionError(f"{asked} still does not fit")


def _laid_out(layout: Layout, asked: dict[str, int]) -> Layout:
    of_device: Any = {k: v for k, v in asked.items() if k in {"rows", "row_bytes"}}
    rest: Any = {k: v for k, v in asked.items() if k not in of_device}
    return Layout.of(attrs.evolve(layout.device, **of_device), layout.model, **rest)


@check("MAP-PAIR")
def _(m: Mapped) -> None:
    layout = m.layout
    pairs = np.arange(layout.pairs)
    first = Element(0, 0, pairs * layout.pair_blocks, 0, 0)
    row = address_of(layout, "value", first).row - layout.key_rows
    row_set = row // layout.rows_per_value
    _same("the set of a pair", layout.value_set_of_pair(pairs), row_set)
    _same("the pair of a place", layout.pair_of(first.index), pairs)


@check("MAP-SHIFT")
def _(m: Mapped) -> None:
    layout = m.layout
    for kind in KINDS:
        place = m.places[kind]
        base = address_of(layout, kind, place._replace(layer=0, head=0))
        fold, group = np.divmod(place.head, layout.groups)
        plane = place.layer * layout.folds + fold
        shifted = base._replace(
            channel=base.channel + group * layout.channels_per_head,
            row=base.row + plane * layout.rows_per_plane,
        )
        _same(f"a {kind}, shifted", np.stack(m.at[kind]), np.stack(shifted))


# --- what a multiplication meets, and what a commit moves -----------------------------


@check("MAP-ALIGN")
def _(m: Mapped) -> None:
    layout, banks, lanes = m.layout, m.layout.device.banks, m.layout.device.lanes
    at, place = m.at["key"], m.places["key"]
    group = place.token - place.token % banks
    start = address_of(layout, "key", place._replace(token=group, element=0))
    _same("the channel of a Key", at.channel, start.channel)
    _same("the row of a Key", at.row, start.row)
    _same("the bank of a Key", at.bank, place.token % banks)
    _same("the column of a query", at.burst, start.burst + place.element // lanes)
    _same("the lane of a query", at.lane, place.element % lanes)
    for kind in KINDS[1:]:
        at, place = m.at[kind], m.places[kind]
        part = place.element // banks
        row = part - part % layout.value_channels
        unit = place._replace(token=0, element=row * banks)
        start = address_of(layout, kind, unit)
        channel = start.channel + part % layout.value_channels
        _same(f"the row of a {kind}", at.row, start.row)
        _same(f"the channel of a {kind}", at.channel, channel)
        _same(f"the bank of a {kind}", at.bank, place.element % banks)
        _same("the column of a weight", at.burst, start.burst + place.token // lanes)
        _same("the lane of a weight", at.lane, place.token % lanes)


@check("MAP-COLUMNS")
def _(m: Mapped) -> None:
    layout = m.layout
    for kind in KINDS[1:]:
        at, place = m.at[kind], m.places[kind]
        part = place.element // layout.device.banks // layout.value_channels
        stripe = at.channel // layout.value_channels
        column = at.row, stripe, at.burst
        operand = place.index, place.token // layout.device.lanes, part
        one = _kinds(*column) == _kinds(*column, *operand)
        assert one, f"two operands of {kind}s in one column"


@check("MAP-RUN")
def _(m: Mapped) -> None:
    layout, place = m.layout, m.places["value"]
    first = address_of(layout, "value", place._replace(token=0, element=0))
    starts = np.stack([first.row, first.channel])
    _, chosen, run = np.unique(starts, axis=1, return_index=True, return_inverse=True)
    other = place.index[chosen][run.reshape(-1)]
    sets = place.index // (layout.stripes * layout.values_per_set)
    of_other = other // (layout.stripes * layout.values_per_set)
    _same("one row set", sets, of_other)
    _same("one stripe", place.index % layout.stripes, other % layout.stripes)
    at, beside = m.at["value"], address_of(layout, "value", place._replace(index=other))
    _same("one row for every element", at.row, beside.row)
    _same("one channel for every element", at.channel, beside.channel)
    start = address_of(layout, "value", place._replace(element=0))
    _same("a block keeps its columns", at.burst, start.burst)


@check("MAP-COMMIT")
def _(m: Mapped) -> None:
    layout, place, home = m.layout, m.places["value"], m.at["value"]
    for zone_slot in range(layout.slots):
        slot = zone_slot * layout.stripes + place.index % layout.stripes
        source = address_of(layout, "slot", place._replace(index=slot))
        _same("the channel stays", source.channel, home.channel)
        _same("the bank stays", source.bank, home.bank)
        _same("the lane stays", source.lane, home.lane)
        assert (source.row != home.row).all(), "the row is another"
        bursts = m.flat(source) // layout.device.lanes, place.index
        target = m.flat(home) // layout.device.lanes
        assert _kinds(*bursts) == _kinds(*bursts, target), "a burst stays together"
