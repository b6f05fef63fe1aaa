"""Address maps of systems: where sixteen tokens of one head lie.

All systems but those with an outer-product unit put a group of as many tokens as there
are banks (and lanes) in the same two shapes: the Key of one token in each bank, the
Value of one element in each bank. A map so only says in which channel, row and burst.

`spread`: the heads of the model that one head of a frame stands for. Where a frame is
not one head's own (all heads of a token in one row), each of them is a request of its
own: the streams' request index is `request * spread + part`, of head `frame head *
spread + part`, and tables list part after part.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import attrs
import numpy as np

from patton.addresses import AddressMap, key_address, value_address
from patton.commands import Frame
from patton.config import DeviceConfig, ModelConfig
from patton.errors import DeviceConfigError
from patton.generate.assembly import first_elements, frame_of
from patton.layout import Layout
from patton.steps import Ints


class Spots(NamedTuple):
    """Places of groups: the channel of a frame head, the row of its plane, the burst.

    Arrays that broadcast; Keys [groups, spread], Values [groups, spread, pieces].
    """

    channel: Any
    row: Any
    burst: Any

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of all three together."""
        return np.broadcast_shapes(*map(np.shape, self))


@attrs.frozen(eq=False)
class Table:
    """Numbers of each request, such as rows it owns: a CSR over requests."""

    ptr: Ints
    number: Ints

    @classmethod
    def of(cls, lists: list[list[int]]) -> Table:
        """One list for each request."""
        counts = np.array([len(numbers) for numbers in lists], np.int64)
        ptr = np.zeros(len(lists) + 1, np.int64)
        np.cumsum(counts, out=ptr[1:])
        flat = [number for numbers in lists for number in numbers]
        return cls(ptr, np.array(flat, np.int64))

    def at(self, request: Ints, index: Any) -> Ints:
        """Entry `index` of each request; the arguments broadcast."""
        assert (index < np.diff(self.ptr)[request]).all(), "beyond what is held"
        found: Ints = self.number[self.ptr[request] + index]
        return found


@attrs.frozen(eq=False)
class Holdings:
    """What the requests of a step hold. domain [requests]: first channel, or 0.

    keys, values: their rows, or places of blocks, in the order of tokens.
    """

    domain: Ints
    keys: Table
    values: Table


class KeyMap(Protocol):
    """Where the Keys of groups of tokens lie."""

    @property
    def key_frame(self) -> Frame:
        """How streams of Keys cover a layer."""

    @property
    def value_frame(self) -> Frame:
        """How streams of Values cover a layer."""

    @property
    def keys_alike(self) -> bool:
        """Whether the Keys of a request lie in the same rows of all of its channels."""

    def keys(self, held: Holdings, request: Ints, group: Ints) -> Spots:
        """Where the Keys of groups of requests lie, [groups, spread]."""


class Map(KeyMap, Protocol):
    """Where groups of tokens lie, for a unit of inner products."""

    @property
    def value_run(self) -> int:
        """Groups, from a multiple of it on, that have consecutive bursts of a row."""

    @property
    def value_channels(self) -> int:
        """Channels of a piece of a head's elements, beginning at its spot."""

    @property
    def elements(self) -> Ints:
        """Head element in bank 0 of the first channel of each piece [pieces]."""

    def values(self, held: Holdings, request: Ints, group: Ints) -> Spots:
        """Where the Values of groups of requests lie, [groups, spread, pieces]."""


def spread_of(frame: Frame, model: ModelConfig) -> int:
    """Heads of the model that one head of the frame stands for."""
    return model.kv_heads // frame.heads


def shape_of(name: str, device: DeviceConfig, model: ModelConfig) -> Layout:
    """How a model's heads divide a device, with blocks of sixteen tokens.

    Raises LayoutError, and DeviceConfigError for a device that these systems have no
    form for: groups of tokens are rows of banks and of lanes at once.
    """
    if device.banks != device.lanes:
        accepted = f"{device.banks}, as many as banks"
        raise DeviceConfigError(name, "lanes", device.lanes, accepted)
    if not device.write_masks:
        accepted = "a device that writes single lanes"
        raise DeviceConfigError(name, "write_masks", device.write_masks, accepted)
    return Layout.of(device, model)


def whole_frame(device: DeviceConfig, model: ModelConfig) -> Frame:
    """One frame head for all channels of the device, all heads being its parts."""
    return Frame(
        heads=1,
        heads_per_kv=model.query_heads_per_kv,
        groups=1,
        channels_per_head=device.channels,
        folds=1,
        rows_per_plane=device.rows // model.layers,
        banks=device.banks,
        lanes=device.lanes,
        bursts_per_row=device.bursts_per_row,
        head_dim=model.head_dim,
    )


@attrs.frozen(eq=False)
class HeadMap:
    """Channels divided among heads, Case Ch -> C for both caches, rows by table.

    That is PATTON's own map (Paper 3.2) with each request's groups counted from 0 and
    its rows looked up. Where a head has more channels than a Value needs, runs of a row
    take the stripes in turn.
    """

    layout: Layout
    key_frame: Frame
    value_frame: Frame
    value_run: int
    value_channels: int
    elements: Ints
    local: AddressMap
    keys_alike: bool = True

    @classmethod
    def of(cls, layout: Layout) -> HeadMap:
        """The map of a model on a device."""
        frame = frame_of(layout)
        return cls(
            layout=layout,
            key_frame=frame,
            value_frame=frame,
            value_run=layout.values_per_set,
            value_channels=layout.value_channels,
            elements=first_elements(layout),
            local=attrs.evolve(layout.map, key_rows=0),
        )

    @property
    def key_row_tokens(self) -> int:
        """Tokens of one row, over the channels of a head."""
        layout = self.layout
        return layout.channels_per_head * layout.keys_per_row * layout.block_tokens

    @property
    def value_set_tokens(self) -> int:
        """Tokens of the `rows_per_value` rows that hold whole Values."""
        layout = self.layout
        return layout.stripes * layout.values_per_set * layout.block_tokens

    def keys(self, held: Holdings, request: Ints, group: Ints) -> Spots:
        """See `Map`."""
        at = key_address(self.local, 0, 0, group, 0, 0)
        row = held.keys.at(request, at.row)
        return Spots(at.channel[:, None], row[:, None], at.burst[:, None])

    def values(self, held: Holdings, request: Ints, group: Ints) -> Spots:
        """See `Map`."""
        run, place = np.divmod(group, self.value_run)
        row_set, stripe = np.divmod(run, self.layout.stripes)
        granule = (row_set * self.value_run + place) * self.layout.stripes + stripe
        at = value_address(self.local, 0, 0, granule[:, None], 0, self.elements)
        row = held.values.at(request[:, None], at.row)
        return Spots(*(x[:, None, :] for x in (at.channel, row, at.burst)))
