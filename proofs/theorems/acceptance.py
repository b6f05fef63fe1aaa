"""A layout is accepted exactly if there is a geometry for it.

Clause MAP-ACCEPT, for every device, model, block size, pair size and number of slots.
What `Layout.of` returns keeps every premise of the other theorems, so that they are
about all layouts there are. Whatever geometry keeps those premises with the shape that
`_shapes` gives a head, `Layout.of` accepts, with at least as many pairs: nothing that
fits is refused, and nothing is left unused. The code is followed along every path;
`proofs.standins` says what is taken for granted.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from random import Random
from typing import Any

import attrs

from patton import layout as shipped
from patton.config import DeviceConfig, ModelConfig
from patton.errors import LayoutError
from patton.layout import BlockShapes, Layout
from proofs.geometry import Geometry, premises
from proofs.layouts import odd
from proofs.lemmas import COMMUTE, FIT, MONOTONE
from proofs.spaces import AllGeometries, Space
from proofs.standins import StandIns
from proofs.symbolic import device_of, made
from proofs.theorem import Case, Claim, Swap, Theorem


@attrs.frozen(eq=False)
class Asked:
    """What `Layout.of` is asked for, in a space."""

    space: Space
    contracts: StandIns | None
    device: DeviceConfig
    model: ModelConfig
    block_tokens: Any
    pair_blocks: Any
    slots: Any

    def layout(self) -> Layout:
        """The answer; raises LayoutError."""
        with self.contracts.installed() if self.contracts else nullcontext():
            return Layout.of(
                self.device,
                self.model,
                block_tokens=self.block_tokens,
                pair_blocks=self.pair_blocks,
                slots=self.slots,
            )

    def smallest(self) -> BlockShapes:
        """Shapes of the smallest block."""
        assert self.contracts is not None
        with self.contracts.installed():
            least = self.contracts.lcm(self.device.banks, self.device.lanes)
            return shipped._shapes(self.device, self.model, least)  # noqa: SLF001


def _contracts(space: Space) -> StandIns | None:
    return StandIns(space) if isinstance(space, AllGeometries) else None


# Accepted layouts are geometries.


def given_anything(space: Space) -> tuple[Asked]:
    """Any device and model; blocks, pairs and slots of any number."""
    space.rounds_down = True
    names = ("channels", "banks", "rows", "bursts", "lanes", "element_bytes")
    device = device_of(**{name: space.count(name) for name in names})
    shape = {name: space.count(name) for name in ("layers", "kv_heads", "head_dim")}
    model = made(ModelConfig, name="any", **shape)
    rest = (space.count(name) for name in ("block_tokens", "pair_blocks", "slots"))
    return (Asked(space, _contracts(space), device, model, *rest),)


def claim_geometry(asked: Asked) -> Iterator[Claim]:
    """If it is accepted, the layout keeps every premise and what was asked for."""
    if asked.contracts:
        _remind_of_blocks(asked)
    try:
        layout = asked.layout()
    except LayoutError:
        return
    if asked.contracts:
        _remind_of_rows(asked, layout)
    g, shown = Geometry.of(layout), {"layout": layout}
    for name, condition in premises(g):
        yield Claim(name, condition, shown)
    yield Claim("slots fill rows", g.slots == layout.slots, shown)
    yield Claim("all slots asked for", asked.slots <= layout.slots, shown)
    yield Claim("pairs as asked for", g.pair_blocks == asked.pair_blocks, shown)
    yield Claim("blocks as asked for", g.block_tokens == asked.block_tokens, shown)
    yield from _claim_counts(g, layout)


def _claim_counts(g: Geometry, layout: Layout) -> Iterator[Claim]:
    """What the layout says of itself beside its map."""
    m = g.map
    shown = {"layout": layout}
    used = m.key_rows + m.value_rows + layout.commit_zone_rows
    tokens = g.granules * g.block_tokens
    yield Claim("granules fill pairs", g.granules == layout.granules, shown)
    yield Claim("planes are counted", g.planes == layout.planes, shown)
    yield Claim("a plane is of rows", m.rows_per_plane == layout.rows_per_plane, shown)
    unused = m.rows_per_plane - used
    yield Claim("unused rows are counted", unused == layout.unused_rows, shown)
    yield Claim("tokens are counted", tokens == layout.tokens, shown)


def _remind_of_blocks(asked: Asked) -> None:
    """Point to this: a block is so many of the smallest, and so many times as wide."""
    space, device, contracts = asked.space, asked.device, asked.contracts
    assert contracts is not None
    smallest = asked.smallest()
    assert contracts.multiple is not None
    least, times_banks, times_lanes = contracts.multiple
    rows, key_bursts = smallest.rows_per_value, smallest.key_bursts
    blocks = asked.block_tokens // least
    space.remind(MONOTONE, a=blocks, b=0, m=least)
    blocks * times_banks * device.banks
    blocks * times_lanes * device.lanes
    blocks * times_banks * key_bursts
    blocks * rows * times_lanes
    rows * blocks * times_lanes
    bursts = device.bursts_per_row
    widths = smallest.key_width, rows * smallest.value_width
    for width, other in (widths, widths[::-1]):
        most = bursts // width
        (most + 1) * least
        blocks * width
        space.remind(MONOTONE, a=most + 1, b=blocks, m=least)
        space.remind(MONOTONE, a=blocks, b=most, m=width)
        space.remind(MONOTONE, a=other, b=width, m=blocks)
    key_width = asked.block_tokens // device.banks * key_bursts
    value_width = asked.block_tokens // device.lanes
    for width in (key_width, value_width, rows * value_width):
        space.remind(FIT, a=1, x=bursts, m=width)


def _remind_of_rows(asked: Asked, layout: Layout) -> None:
    """Point to what makes the rows hold what they should."""
    space, contracts = asked.space, asked.contracts
    assert contracts is not None
    held = layout.rows_per_value * layout.value_channels
    banks = layout.device.banks
    space.remind(MONOTONE, a=layout.value_subblocks, b=held, m=banks)
    # There is a pair, since the rows of one fit.
    pair, keys = layout.pair_blocks, layout.channels_per_head * layout.keys_per_row
    one_pair = contracts.ceil(pair, keys)
    space.remind(COMMUTE, a=0, b=pair)
    space.remind(MONOTONE, a=one_pair, b=layout.rows_per_plane, m=keys)
    space.remind(FIT, a=1, x=layout.rows_per_plane * keys, m=pair)
    # Slots were rounded up to whole rows, so rounding up again changes nothing.
    per_row, zone_rows = layout.slots_per_row, layout.commit_zone_rows
    rows = layout.slots // per_row
    space.remind(MONOTONE, a=rows, b=zone_rows - 1, m=per_row)
    space.remind(MONOTONE, a=zone_rows, b=rows, m=per_row)


def _small_questions() -> Iterator[Case]:
    random = Random(6)
    most = {"rows": 60, "bursts": 24, "head_dim": 9, "block_tokens": 12, "slots": 6}
    names = [*("channels", "banks", "rows", "bursts", "lanes", "element_bytes")]
    names += ["layers", "kv_heads", "head_dim", "block_tokens", "pair_blocks", "slots"]
    for _ in range(4000):
        values = {name: random.randint(1, most.get(name, 4)) for name in names}
        yield Case(None, values)


# Geometries are accepted.


def given_geometry(space: Space) -> tuple[Geometry, Asked]:
    """Any geometry in which heads have the shape that layouts give them."""
    space.rounds_down = True
    g = space.geometry()
    m = g.map
    element_bytes = space.count("element_bytes")
    device = device_of(g.channels, m.banks, g.rows, g.bursts, m.lanes, element_bytes)
    model = made(
        ModelConfig,
        name="any",
        layers=g.layers,
        kv_heads=g.heads,
        head_dim=g.head_dim,
    )
    slots = space.count("slots")
    space.assume("the geometry has those slots", slots <= g.slots)
    channels = max(1, g.channels // g.heads)
    space.assume("c is the layout's", m.channels_per_head == channels)
    space.assume("groups are the layout's", m.groups == min(g.heads, g.channels))
    contracts = _contracts(space)
    if contracts:
        subblocks = contracts.ceil(g.head_dim, device.banks)
        contracts.know_ceil(g.heads, g.channels, m.folds)
        contracts.know_ceil(g.head_dim, device.lanes, m.key_bursts)
        contracts.know_divisor(channels, subblocks, m.value_channels)
        contracts.know_ceil(subblocks, m.value_channels, m.rows_per_value)
        contracts.know_common_multiple(device.banks, device.lanes, g.block_tokens)
    asked = Asked(space, contracts, device, model, g.block_tokens, g.pair_blocks, slots)
    return g, asked


def claim_accepted(g: Geometry, asked: Asked) -> Iterator[Claim]:
    """It is accepted, and has at least as many pairs."""
    if asked.contracts:
        _remind_of_blocks(asked)
        _remind_of_fit(g, asked)
    try:
        layout = asked.layout()
    except LayoutError as error:
        yield Claim("it is accepted", False, {"error": str(error)})
        return
    if asked.contracts:
        _remind_of_most(g, asked, layout)
    shown = {"pairs": layout.pairs, "pairs that fit": g.pairs}
    yield Claim("no geometry has more pairs", g.pairs <= layout.pairs, shown)


def _remind_of_fit(g: Geometry, asked: Asked) -> None:
    """Point to this: the layout's rows hold at least as much as the geometry's."""
    space, contracts, m = asked.space, asked.contracts, g.map
    assert contracts is not None
    assert contracts.multiple is not None
    smallest, bursts = asked.smallest(), asked.device.bursts_per_row
    blocks = asked.block_tokens // contracts.multiple[0]
    _remind_of_widths(g, asked, blocks, smallest)
    key_width = asked.block_tokens // asked.device.banks * smallest.key_bursts
    value_width = asked.block_tokens // asked.device.lanes
    slot_width = smallest.rows_per_value * value_width
    keys, values, slots = (bursts // w for w in (key_width, value_width, slot_width))
    space.remind(FIT, a=m.keys_per_row, x=bursts, m=key_width)
    space.remind(FIT, a=m.values_per_set, x=bursts, m=value_width)
    space.remind(FIT, a=m.slots_per_row, x=bursts, m=slot_width)
    planes = asked.model.layers * m.folds
    space.remind(FIT, a=m.rows_per_plane, x=asked.device.rows, m=planes)
    # So no more rows are needed for as many granules and slots.
    channels, stripes = smallest.channels_per_head, smallest.stripes
    for rows, theirs, ours, side in (
        (m.key_rows, m.keys_per_row, keys, channels),
        (g.row_sets, m.values_per_set, values, stripes),
    ):
        rows * (theirs * side)
        rows * (ours * side)
        space.remind(MONOTONE, a=theirs, b=ours, m=side)
        space.remind(MONOTONE, a=theirs * side, b=ours * side, m=rows)
        needed = contracts.ceil(asked.pair_blocks, side * ours)
        space.remind(MONOTONE, a=rows, b=needed - 1, m=side * ours)
        space.remind(MONOTONE, a=needed, b=rows, m=m.rows_per_value)
    zone_rows = contracts.ceil(asked.slots, slots)
    whole = contracts.ceil(slots * zone_rows, slots)
    g.zone_rows * slots
    space.remind(MONOTONE, a=m.slots_per_row, b=slots, m=g.zone_rows)
    space.remind(MONOTONE, a=g.zone_rows, b=zone_rows - 1, m=slots)
    space.remind(MONOTONE, a=zone_rows, b=whole - 1, m=slots)


def _remind_of_widths(
    g: Geometry, asked: Asked, blocks: Any, smallest: BlockShapes
) -> None:
    """Point to this: a row holds so many of the smallest blocks side by side."""
    space, contracts, m = asked.space, asked.contracts, g.map
    assert contracts is not None
    assert contracts.multiple is not None
    least, bursts = contracts.multiple[0], asked.device.bursts_per_row
    m.keys_per_row * (m.token_groups * m.key_bursts)
    m.slots_per_row * (m.rows_per_value * m.value_bursts)
    for width in (smallest.key_width, smallest.rows_per_value * smallest.value_width):
        blocks * width
        space.remind(FIT, a=blocks, x=bursts, m=width)
        space.remind(MONOTONE, a=blocks, b=bursts // width, m=least)


def _remind_of_most(g: Geometry, asked: Asked, layout: Layout) -> None:
    """Point to this: if one more pair fitted, the search would have counted it."""
    space, contracts, m = asked.space, asked.contracts, g.map
    assert contracts is not None
    keys = layout.channels_per_head * layout.keys_per_row
    values = layout.stripes * layout.values_per_set
    space.remind(MONOTONE, a=1 + layout.pairs, b=g.pairs, m=g.pair_blocks)
    space.remind(MONOTONE, a=m.key_rows, b=layout.rows_per_plane, m=keys)
    space.remind(FIT, a=g.pairs, x=layout.rows_per_plane * keys, m=g.pair_blocks)
    for rows, divisor in ((m.key_rows, keys), (g.row_sets, values)):
        for needed in contracts.ceilings(divisor):
            space.remind(MONOTONE, a=rows, b=needed - 1, m=divisor)
            space.remind(MONOTONE, a=needed, b=rows, m=m.rows_per_value)


THEOREMS = (
    Theorem(
        name="accepted_layouts_are_geometries",
        clause="MAP-ACCEPT",
        kind="all parameters, every path",
        given=given_anything,
        claim=claim_geometry,
        witness=Case(
            None,
            {
                "channels": 2,
                "banks": 4,
                "rows": 90,
                "bursts": 8,
                "lanes": 6,
                "element_bytes": 2,
                "layers": 2,
                "kv_heads": 3,
                "head_dim": 7,
                "block_tokens": 12,
                "pair_blocks": 3,
                "slots": 3,
            },
        ),
        planted=(
            Swap("layout._check_block_tokens", "block_tokens <= most", "True"),
            Swap(
                "layout._check_one_pair",
                "key_rows + value_rows + zone_rows <= rows",
                "key_rows + value_rows <= rows",
            ),
            Swap(
                "layout._shapes",
                "_ceil(subblocks, value_channels)",
                "subblocks // value_channels",
            ),
        ),
        branches=True,
        examples=_small_questions,
    ),
    Theorem(
        name="geometries_are_accepted",
        clause="MAP-ACCEPT",
        kind="all geometries, every path",
        given=given_geometry,
        claim=claim_accepted,
        witness=Case(odd, {"slots": 3, "element_bytes": 2}),
        planted=(
            Swap(
                "layout._check_block_tokens",
                "block_tokens <= most",
                "block_tokens < most",
            ),
            Swap(
                "layout._check_one_pair",
                "key_rows + value_rows + zone_rows <= rows",
                "key_rows + value_rows + zone_rows < rows",
            ),
            Swap(
                "layout._most_pairs",
                "shapes.rows_per_plane * granules_of_keys",
                "granules_of_keys",
            ),
        ),
        branches=True,
    ),
)
