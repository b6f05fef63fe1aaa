"""How one model's KV cache divides one device: shapes, regions, capacity.

`Layout.of` derives everything from the device, the model and the block size, or refuses
with the parameter to change and a value that fits. Nothing here depends on what is
stored; the state is in `patton.runtime`.

Rows of a bank belong to planes, one per layer (and fold); rows of a plane are Keys,
Values, Commit Zone and a rest that is too small for a further pair (Paper 4.2 to 4.4).
"""

from __future__ import annotations

from bisect import bisect_right
from math import lcm
from typing import Any, Literal, get_args

import attrs

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
from patton.arguments import expect, is_count, is_one_of
from patton.config import DeviceConfig, ModelConfig
from patton.errors import ArgumentError, LayoutError

MOST_COUNT = 2**62  # of anything, which an index of Python reaches

Kind = Literal["key", "value", "slot"]

_ADDRESS_OF = {"key": key_address, "value": value_address, "slot": slot_address}
_ELEMENT_AT = {"key": key_element, "value": value_element, "slot": slot_element}


@attrs.frozen(kw_only=True)
class BlockShapes:
    """Shapes of one head and one block, before anything is counted out.

    Widths are bursts of one row. In brackets the short symbols.
    """

    device: DeviceConfig
    model: ModelConfig
    block_tokens: int  # [T]
    channels_per_head: int  # [c]
    groups: int  # heads that run side by side
    folds: int  # [F] heads that share a channel group
    planes: int  # [P] layers * folds
    rows_per_plane: int  # [Rp]
    key_bursts: int  # [dk] bursts of one token's Key
    value_subblocks: int  # [dv] groups of `banks` head elements
    key_width: int  # [wk] of a Key granule
    value_width: int  # [wv] of a Value granule, in each of its rows
    value_channels: int  # [cv] channels of a Value granule
    stripes: int  # [u] Value granules side by side in a head's channels
    rows_per_value: int  # [rv] rows of a Value granule, so of a Value row set
    keys_per_row: int  # [kr] per row and channel
    values_per_set: int  # [vr] per Value row set and stripe
    slots_per_row: int  # [spr] per Commit Zone row and stripe

    def rows_for(self, blocks: int, slots: int) -> tuple[int, int, int]:
        """Rows of a plane that so many granules and slots take: Key, Value, slots."""
        return (
            _ceil(blocks, self.channels_per_head * self.keys_per_row),
            _ceil(blocks, self.stripes * self.values_per_set) * self.rows_per_value,
            _ceil(slots, self.slots_per_row),
        )


@attrs.frozen(kw_only=True)
class Layout(BlockShapes):
    """A model on a device: every derived number, and the address map made of them.

    A block that is bound has one granule index for Key and Value, every head and every
    layer; `pair_blocks` consecutive indices are a pair. Build it with `Layout.of`.
    """

    pair_blocks: int  # [N]
    slots: int  # [S] of the Commit Zone, per stripe
    pairs: int  # [M]
    key_rows: int  # [nK] of a plane
    value_rows: int  # [nV] of a plane
    commit_zone_rows: int  # [nZ] of a plane
    unused_rows: int  # of a plane
    granules: int  # M * N
    tokens: int  # that all granules hold
    padding_bytes: int  # see _padding_bytes
    map: AddressMap

    @classmethod
    def of(
        cls,
        device: DeviceConfig,
        model: ModelConfig,
        *,
        block_tokens: int = 16,
        pair_blocks: int | None = None,
        slots: int | None = None,
    ) -> Layout:
        """Lay out `model` on `device` for blocks of `block_tokens` tokens.

        pair_blocks: blocks of an Order-2 pair, by default the least multiple of the
        channels of a head from 16; slots: Commit Zone slots per stripe, rounded up to
        whole rows, by default one row. Raises LayoutError.
        """
        expect("Layout.of", "device", device, DeviceConfig)
        expect("Layout.of", "model", model, ModelConfig)
        smallest = _shapes(device, model, lcm(device.banks, device.lanes))
        _check_block_tokens(smallest, block_tokens)
        shapes = _shapes(device, model, block_tokens)
        _check_count(shapes, "pair_blocks", pair_blocks)
        _check_count(shapes, "slots", slots)
        channels = shapes.channels_per_head
        blocks = pair_blocks or channels * _ceil(16, channels)
        slots_per_row = shapes.slots_per_row
        stripe_slots = slots_per_row * _ceil(slots or 1, slots_per_row)
        _check_one_pair(shapes, blocks, stripe_slots, pair_blocks, slots)
        pairs = _most_pairs(shapes, blocks, stripe_slots)
        granules = pairs * blocks
        rows = shapes.rows_for(granules, stripe_slots)
        return cls(
            **attrs.asdict(shapes, recurse=False),
            pair_blocks=blocks,
            slots=stripe_slots,
            pairs=pairs,
            key_rows=rows[0],
            value_rows=rows[1],
            commit_zone_rows=rows[2],
            unused_rows=shapes.rows_per_plane - sum(rows),
            granules=granules,
            tokens=granules * block_tokens,
            padding_bytes=_padding_bytes(shapes, granules),
            map=_address_map(shapes, rows[0], rows[1]),
        )

    @property
    def ideal_tokens(self) -> int:
        """Tokens whose Keys and Values fill the whole device, whatever the layout."""
        return self.device.capacity_bytes // _token_bytes(self)

    def pair_of(self, granule: Any) -> Any:
        """The pair of a granule index (an integer or an array)."""
        return granule // self.pair_blocks

    def value_set_of_pair(self, pair: Any) -> Any:
        """The Value row set of the first place of a pair (an integer or an array)."""
        return pair * self.pair_blocks // (self.stripes * self.values_per_set)

    def address_of(self, kind: Kind, element: Element) -> Address:
        """Where one element lies; raises LayoutError if there is no such element."""
        if not is_one_of(kind, get_args(Kind)):
            accepted = " or ".join(get_args(Kind))
            raise ArgumentError("address_of", "kind", kind, accepted)
        expect("address_of", "element", element, Element)
        _check_bounds(self, element, self._element_bounds(kind))
        return _ADDRESS_OF[kind](self.map, *element)

    def element_at(self, address: Address) -> tuple[Kind, Element] | None:
        """What is placed at one address of the device, None if nothing ever is.

        Raises LayoutError if the device has no such address.
        """
        expect("element_at", "address", address, Address)
        device = self.device
        most = (device.channels, device.banks, device.rows)
        bounds = Address(*most, device.bursts_per_row, device.lanes)
        _check_bounds(self, address, bounds)
        kind = self._kind_of_row(address.row % self.rows_per_plane)
        element = _ELEMENT_AT[kind](self.map, address)
        # The inverse sends an address at which nothing is placed to an element that is
        # out of bounds or that lies elsewhere.
        limits = zip(element, self._element_bounds(kind), strict=True)
        if any(value >= most for value, most in limits):
            return None
        return (kind, element) if self.address_of(kind, element) == address else None

    def _kind_of_row(self, row: int) -> Kind:
        """The region of a row of a plane; unused rows follow the Commit Zone's."""
        if row < self.key_rows:
            return "key"
        return "value" if row < self.key_rows + self.value_rows else "slot"

    def _element_bounds(self, kind: Kind) -> Element:
        model = self.model
        indices = self.slots * self.stripes if kind == "slot" else self.granules
        head_dim = model.head_dim
        return Element(
            model.layers, model.kv_heads, indices, self.block_tokens, head_dim
        )


def _shapes(device: DeviceConfig, model: ModelConfig, block_tokens: int) -> BlockShapes:
    channels, heads = device.channels, model.kv_heads
    channels_per_head = max(1, channels // heads)
    key_bursts = _ceil(model.head_dim, device.lanes)
    subblocks = _ceil(model.head_dim, device.banks)
    value_channels = _largest_divisor(channels_per_head, subblocks)
    rows_per_value = _ceil(subblocks, value_channels)
    key_width = block_tokens // device.banks * key_bursts
    value_width = block_tokens // device.lanes
    folds = _ceil(heads, channels)
    return BlockShapes(
        device=device,
        model=model,
        block_tokens=block_tokens,
        channels_per_head=channels_per_head,
        groups=min(heads, channels),
        folds=folds,
        planes=model.layers * folds,
        rows_per_plane=device.rows // (model.layers * folds),
        key_bursts=key_bursts,
        value_subblocks=subblocks,
        key_width=key_width,
        value_width=value_width,
        value_channels=value_channels,
        stripes=channels_per_head // value_channels,
        rows_per_value=rows_per_value,
        keys_per_row=device.bursts_per_row // key_width,
        values_per_set=device.bursts_per_row // value_width,
        slots_per_row=device.bursts_per_row // (rows_per_value * value_width),
    )


def _address_map(shapes: BlockShapes, key_rows: int, value_rows: int) -> AddressMap:
    return AddressMap(
        channels_per_head=shapes.channels_per_head,
        groups=shapes.groups,
        folds=shapes.folds,
        banks=shapes.device.banks,
        lanes=shapes.device.lanes,
        key_bursts=shapes.key_bursts,
        token_groups=shapes.block_tokens // shapes.device.banks,
        value_bursts=shapes.value_width,
        keys_per_row=shapes.keys_per_row,
        values_per_set=shapes.values_per_set,
        value_channels=shapes.value_channels,
        stripes=shapes.stripes,
        rows_per_value=shapes.rows_per_value,
        slots_per_row=shapes.slots_per_row,
        rows_per_plane=shapes.rows_per_plane,
        key_rows=key_rows,
        value_rows=value_rows,
    )


def _most_pairs(shapes: BlockShapes, blocks: int, slots: int) -> int:
    """The largest number of pairs whose rows, with the slots', fit a plane.

    Rows never fall as pairs are added, so the numbers that fit come first.
    """
    granules_of_keys = shapes.channels_per_head * shapes.keys_per_row
    bound = shapes.rows_per_plane * granules_of_keys // blocks
    return bisect_right(
        range(1, bound + 1),
        shapes.rows_per_plane,
        key=lambda pairs: sum(shapes.rows_for(pairs * blocks, slots)),
    )


def _token_bytes(shapes: BlockShapes) -> int:
    """Bytes of the Key and Value elements of one token."""
    model = shapes.model
    elements = 2 * model.layers * model.kv_heads * model.head_dim
    return elements * shapes.device.element.bytes


def _padding_bytes(shapes: BlockShapes, granules: int) -> int:
    """Bytes inside granules, of all heads and layers, at which no element is placed.

    A token's Key ends in a whole burst, and a Value granule in whole sub-blocks on all
    its channels in all its rows; what lies beyond the head dimension is padding. Not
    counted: bursts of a row that are too few for a granule, slots, and unused rows.
    """
    device, model = shapes.device, shapes.model
    key_elements = shapes.key_bursts * device.lanes
    value_elements = shapes.rows_per_value * shapes.value_channels * device.banks
    tail_elements = key_elements + value_elements - 2 * model.head_dim
    heads = model.layers * model.kv_heads
    tokens = granules * shapes.block_tokens
    return heads * tokens * tail_elements * device.element.bytes


def _check_block_tokens(smallest: BlockShapes, block_tokens: int) -> None:
    """Refuse a block that does not fill bursts and banks, or is wider than a row."""
    device, step = smallest.device, smallest.block_tokens
    bursts = device.bursts_per_row
    slot_width = smallest.rows_per_value * smallest.value_width
    widest = max(smallest.key_width, slot_width)
    if widest > bursts:
        fits = widest * device.burst_bytes
        accepted = (
            f"at least {fits}, so that a row holds a block of {step} tokens "
            f"({smallest.key_width} bursts of Key, {slot_width} of Commit Zone slot)"
        )
        raise _error(smallest, "row_bytes", device.row_bytes, accepted, fits)
    most = bursts // widest * step
    whole = is_count(block_tokens)
    if whole and block_tokens % step == 0 and block_tokens <= most:
        return
    fits = min(most, _ceil(block_tokens, step) * step) if whole else step
    accepted = (
        f"a multiple of {step} ({device.banks} banks, {device.lanes} elements per "
        f"burst) up to {most} ({bursts} bursts per row); the nearest is {fits}"
    )
    raise _error(smallest, "block_tokens", block_tokens, accepted, fits)


def _check_count(shapes: BlockShapes, parameter: str, value: int | None) -> None:
    whole = value is None or is_count(value)
    if not whole or (isinstance(value, int) and value > MOST_COUNT):
        accepted = f"a whole number from 1 to {MOST_COUNT}"
        raise _error(shapes, parameter, value, accepted, 1)


def _check_one_pair(
    shapes: BlockShapes,
    blocks: int,
    slots: int,
    asked_blocks: int | None,
    asked_slots: int | None,
) -> None:
    """Refuse a plane too small for one pair and the slots, naming what to change.

    That is the slots or the pair if they were asked for and less would fit.
    """
    rows = shapes.rows_per_plane
    key_rows, value_rows, zone_rows = shapes.rows_for(blocks, slots)
    if key_rows + value_rows + zone_rows <= rows:
        return
    if asked_slots and key_rows + value_rows < rows:
        fits = (rows - key_rows - value_rows) * shapes.slots_per_row
        raise _error(shapes, "slots", asked_slots, f"at most {fits}", fits)
    if asked_blocks and sum(shapes.rows_for(1, 1)) <= rows:
        fits = bisect_right(
            range(1, blocks), rows, key=lambda pair: sum(shapes.rows_for(pair, 1))
        )
        raise _error(shapes, "pair_blocks", asked_blocks, f"at most {fits}", fits)
    fits = (key_rows + value_rows + zone_rows) * shapes.planes
    accepted = (
        f"at least {fits}, so that each of {shapes.planes} planes has {key_rows} Key, "
        f"{value_rows} Value and {zone_rows} Commit Zone rows for one pair"
    )
    raise _error(shapes, "rows", shapes.device.rows, accepted, fits)


def _check_bounds(
    layout: Layout, found: Element | Address, bounds: Element | Address
) -> None:
    for name, value, bound in zip(found._fields, found, bounds, strict=True):
        try:
            inside = not isinstance(value, float) and 0 <= value < bound
        except (TypeError, ValueError):
            inside = False
        if not inside:
            fits = 0 if isinstance(value, int) and value < 0 else bound - 1
            raise _error(layout, name, value, f"0 to {bound - 1}", fits)


def _error(
    shapes: BlockShapes, parameter: str, value: object, accepted: str, fits: int
) -> LayoutError:
    source = f"{shapes.model.name} on {shapes.device.name}"
    return LayoutError(source, parameter, value, accepted, fits)


def _largest_divisor(number: int, most: int) -> int:
    candidates = range(min(number, most), 0, -1)
    return next(divisor for divisor in candidates if number % divisor == 0)


def _ceil(dividend: int, divisor: int) -> int:
    return -(-dividend // divisor)
