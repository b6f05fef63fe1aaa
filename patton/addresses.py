"""Where every element of the KV cache lies, and which element lies where.

Pure functions with `+ - * // %` only: no branch, no range, no minimum. The same code
runs on Python integers, on NumPy arrays and on a solver's symbolic numbers, so what is
proved is what is shipped. Bounds are not checked here: a caller that may hold a wrong
index asks `Layout.address_of` and `Layout.element_at`.

Every formula is a mixed-radix number in Horner form, and the parentheses hold each
leading part together with its next digit; that is also the form a solver decides best.

Key and Value of a block share one granule index; a pair of granules is a unit of
allocation and is not part of any address (Paper 4.2).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import attrs


class Address(NamedTuple):
    """A lane of a burst of the device; each field an integer or an array of them.

    Fields broadcast against each other: one has the shape of what it depends on.
    """

    channel: Any
    bank: Any
    row: Any
    burst: Any
    lane: Any


class Element(NamedTuple):
    """One number of the KV cache.

    index: the granule index, or for the Commit Zone the slot index `z * stripes +
    stripe`; token: position in the block; element: position in the head vector.
    """

    layer: Any
    head: Any
    index: Any
    token: Any
    element: Any


@attrs.frozen
class AddressMap:
    """The digits of the placement, all positive; in brackets the short symbols.

    Two relations hold between them, and nothing else is assumed:
    channels_per_head = stripes * value_channels and
    token_groups * banks = value_bursts * lanes (both are the tokens of a block).
    """

    channels_per_head: Any  # [c]
    groups: Any  # heads that run side by side
    folds: Any  # [F] heads that share a channel group
    banks: Any  # [B]
    lanes: Any  # [E] elements of a burst
    key_bursts: Any  # [dk] bursts of one token's Key
    token_groups: Any  # [T / B] groups of tokens, one token per bank
    value_bursts: Any  # [wv] bursts of one element's tokens
    keys_per_row: Any  # [kr] Key granules of a row and channel
    values_per_set: Any  # [vr] Value granules of a row set and stripe
    value_channels: Any  # [cv] channels of a Value granule
    stripes: Any  # [u]
    rows_per_value: Any  # [rv] rows of a row set
    slots_per_row: Any  # [spr] slots of a Commit Zone row and stripe
    rows_per_plane: Any  # [Rp]
    key_rows: Any  # [nK]
    value_rows: Any  # [nV]


def key_address(
    m: AddressMap, layer: Any, head: Any, granule: Any, token: Any, element: Any
) -> Address:
    """Address of a Key element: tokens over banks, elements along the row (Paper 4.3).

    Granules take the channels of the head in turn.
    """
    place = granule // m.channels_per_head
    group = (place % m.keys_per_row) * m.token_groups + token // m.banks
    return Address(
        channel=_group(m, head) * m.channels_per_head + granule % m.channels_per_head,
        bank=token % m.banks,
        row=_plane(m, layer, head) * m.rows_per_plane + place // m.keys_per_row,
        burst=group * m.key_bursts + element // m.lanes,
        lane=element % m.lanes,
    )


def key_element(m: AddressMap, address: Address) -> Element:
    """Inverse of `key_address`; meaningful for addresses inside Key granules."""
    channel, bank, row, burst, lane = address
    group = burst // m.key_bursts
    place = (row % m.rows_per_plane) * m.keys_per_row + group // m.token_groups
    return Element(
        layer=_layer(m, row),
        head=_head(m, channel, row),
        index=place * m.channels_per_head + channel % m.channels_per_head,
        token=(group % m.token_groups) * m.banks + bank,
        element=(burst % m.key_bursts) * m.lanes + lane,
    )


def value_address(
    m: AddressMap, layer: Any, head: Any, granule: Any, token: Any, element: Any
) -> Address:
    """Address of a Value element: elements over banks and channels, tokens in lanes.

    Granules take the stripes in turn; sub-block `element // banks` selects the channel
    of the stripe first and then the row of the row set (Paper 4.4).
    """
    part = element // m.banks
    place = granule // m.stripes
    set_row = (place // m.values_per_set) * m.rows_per_value + part // m.value_channels
    return Address(
        channel=_stripe_channel(m, head, granule, part),
        bank=element % m.banks,
        row=_plane(m, layer, head) * m.rows_per_plane + (m.key_rows + set_row),
        burst=(place % m.values_per_set) * m.value_bursts + token // m.lanes,
        lane=token % m.lanes,
    )


def value_element(m: AddressMap, address: Address) -> Element:
    """Inverse of `value_address`; meaningful for addresses inside Value granules."""
    channel, bank, row, burst, lane = address
    value_row = row % m.rows_per_plane - m.key_rows
    row_set = value_row // m.rows_per_value
    place = row_set * m.values_per_set + burst // m.value_bursts
    part_row = value_row % m.rows_per_value
    part = part_row * m.value_channels + channel % m.value_channels
    return Element(
        layer=_layer(m, row),
        head=_head(m, channel, row),
        index=place * m.stripes + _stripe(m, channel),
        token=(burst % m.value_bursts) * m.lanes + lane,
        element=part * m.banks + bank,
    )


def slot_address(
    m: AddressMap, layer: Any, head: Any, slot: Any, token: Any, element: Any
) -> Address:
    """Address of an element of a Commit Zone slot: a whole block in one row.

    Sub-blocks that Value granules keep in further rows lie side by side here; stripe,
    channel, bank and lane are those of the Value granule, so that a commit moves a
    burst within its bank (Paper 4.4).
    """
    part = element // m.banks
    place = slot // m.stripes
    column = (place % m.slots_per_row) * m.rows_per_value + part // m.value_channels
    zone_row = m.key_rows + m.value_rows + place // m.slots_per_row
    return Address(
        channel=_stripe_channel(m, head, slot, part),
        bank=element % m.banks,
        row=_plane(m, layer, head) * m.rows_per_plane + zone_row,
        burst=column * m.value_bursts + token // m.lanes,
        lane=token % m.lanes,
    )


def slot_element(m: AddressMap, address: Address) -> Element:
    """Inverse of `slot_address`; meaningful for addresses inside slots."""
    channel, bank, row, burst, lane = address
    zone_row = row % m.rows_per_plane - m.key_rows - m.value_rows
    column = burst // m.value_bursts
    place = zone_row * m.slots_per_row + column // m.rows_per_value
    part_row = column % m.rows_per_value
    part = part_row * m.value_channels + channel % m.value_channels
    return Element(
        layer=_layer(m, row),
        head=_head(m, channel, row),
        index=place * m.stripes + _stripe(m, channel),
        token=(burst % m.value_bursts) * m.lanes + lane,
        element=part * m.banks + bank,
    )


def _plane(m: AddressMap, layer: Any, head: Any) -> Any:
    return layer * m.folds + head // m.groups


def _group(m: AddressMap, head: Any) -> Any:
    return head % m.groups


def _layer(m: AddressMap, row: Any) -> Any:
    return row // m.rows_per_plane // m.folds


def _head(m: AddressMap, channel: Any, row: Any) -> Any:
    fold = (row // m.rows_per_plane) % m.folds
    return fold * m.groups + channel // m.channels_per_head


def _stripe_channel(m: AddressMap, head: Any, index: Any, part: Any) -> Any:
    """Channel of sub-block `part` of the Value granule or slot `index`."""
    stripe = _group(m, head) * m.stripes + index % m.stripes
    return stripe * m.value_channels + part % m.value_channels


def _stripe(m: AddressMap, channel: Any) -> Any:
    return (channel // m.value_channels) % m.stripes
