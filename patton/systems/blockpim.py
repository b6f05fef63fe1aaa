"""BlockPIM (DAC 2025): blocks of 128 tokens, each in the least filled channel.

No code is public. A block is what one row of all banks of a channel holds of Keys; it
goes to one channel when it is allocated, and blocks are shared and cached as the
serving engine's are (Paper 5.2). Where its Values lie inside is not said.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

import attrs
import numpy as np

from patton.commands import Frame
from patton.config import DeviceConfig, ModelConfig
from patton.errors import (
    BlockRangeError,
    BlockStateError,
    DeviceConfigError,
    OutOfRowsError,
    RequestError,
)
from patton.generate.assembly import frame_of
from patton.layout import Layout
from patton.steps import Ints, Request
from patton.systems.maps import Holdings, Spots, Table, shape_of, spread_of, whole_frame
from patton.systems.memory import MappedMemory, Running
from patton.systems.placed import InnerStep, TurnsStep
from patton.systems.system import Claim, Declaration, System, Usage, choice

ValueLayout = Literal["rows8", "in_row"]
Scope = Literal["head", "device"]
Order = Literal["rows", "requests"]

DECLARATION = Declaration(
    title="BlockPIM",
    year=2025,
    owner="block",
    unit="a block of 128 tokens in one channel",
    mapping="inference",
    claims=(
        Claim("patton", "blocks of 128 tokens, bound to the hardware"),
        Claim("patton", "a block goes to the least filled channel as it is allocated"),
        Claim("patton", "the engine's scheduler, sharing and prefix cache"),
        Claim("inference", "least filled of the channels of each head (scope=head)"),
        Claim("inference", "Values as GEMV likes them, eight rows of eight bursts"),
        Claim("inference", "sums end with the block: 128 tokens"),
        Claim("inference", "a row is opened once for all requests (order=rows)"),
    ),
)


@attrs.frozen(eq=False)
class BlockMap:
    """Blocks by place: channel * per_channel + index.

    Keys of a block are a row for each part. Values: "in_row" a row for each part, with
    the pieces of the elements side by side; "rows8" a row for each piece, shared with
    the blocks beside it.
    """

    layout: Layout
    value_layout: ValueLayout
    key_frame: Frame
    value_frame: Frame
    value_run: int
    value_channels: int
    elements: Ints
    per_channel: int
    keys_alike: bool = False

    @classmethod
    def of(cls, layout: Layout, value_layout: ValueLayout, scope: Scope) -> BlockMap:
        """The map of a model on a device."""
        frame = frame_of(layout)
        if scope == "device":
            frame = whole_frame(layout.device, layout.model)
        elements = np.arange(layout.value_subblocks) * layout.device.banks
        at = cls(
            layout=layout,
            value_layout=value_layout,
            key_frame=frame,
            value_frame=frame,
            value_run=layout.keys_per_row,
            value_channels=1,
            elements=elements,
            per_channel=0,
        )
        return attrs.evolve(at, per_channel=at.most_blocks(frame.rows_per_plane))

    @property
    def parts(self) -> int:
        """Heads that have their rows in one channel group."""
        return spread_of(self.key_frame, self.layout.model)

    def rows_for(self, blocks: int) -> int:
        """Rows of a channel that so many blocks take."""
        rows = 2 * blocks
        if self.value_layout == "rows8":
            sets = -(-blocks // (self.layout.values_per_set // self.value_run))
            rows = blocks + sets * len(self.elements)
        return rows * self.parts

    def most_blocks(self, rows: int) -> int:
        """Blocks that so many rows of a channel hold."""
        blocks = rows // (2 * self.parts) + 1
        while blocks and self.rows_for(blocks) > rows:
            blocks -= 1
        return blocks

    def keys(self, held: Holdings, request: Ints, group: Ints) -> Spots:
        """See `Map`."""
        block, place = np.divmod(group, self.value_run)
        channel, index = np.divmod(held.keys.at(request, block), self.per_channel)
        row = index[:, None] * self.parts + np.arange(self.parts)
        burst = place * self.layout.key_bursts
        return Spots(channel[:, None], row, burst[:, None])

    def values(self, held: Holdings, request: Ints, group: Ints) -> Spots:
        """See `Map`."""
        block, place = np.divmod(group, self.value_run)
        channel, index = np.divmod(held.values.at(request, block), self.per_channel)
        index, place = index[:, None, None], place[:, None, None]
        part, piece = np.arange(self.parts)[:, None], np.arange(len(self.elements))
        first = self.per_channel * self.parts
        if self.value_layout == "in_row":
            row = first + index * self.parts + part
            burst = piece * self.value_run + place
        else:
            beside = self.layout.values_per_set // self.value_run
            row_set, slot = np.divmod(index, beside)
            row = first + (row_set * self.parts + part) * len(piece) + piece
            burst = slot * self.value_run + place
        return Spots(channel[:, None, None], row, burst)


@attrs.define
class Block:
    """A bound block: its place, its references, who fills it, which of whose blocks."""

    place: int
    references: int
    request: Request
    index: int
    written: int = 0


@attrs.define(eq=False, kw_only=True)
class BlockMemory(MappedMemory):
    """Blocks and the channels they lie in; full ones stay until they are evicted.

    free: indices of each channel, lowest first. unfilled: blocks shared before they are
    full, which the step must see to. cached: those without a reference, in the order in
    which they lost their last one; each is a candidate of its own for eviction.
    """

    map: BlockMap
    bound: dict[int, Block] = attrs.field(factory=dict)
    free: list[list[int]] = attrs.field(factory=list)
    unfilled: set[int] = attrs.field(factory=set)
    cached: dict[int, None] = attrs.field(factory=dict)

    def __attrs_post_init__(self) -> None:
        channels = self.map.key_frame.channels_per_head
        self.free = [list(range(self.map.per_channel)) for _ in range(channels)]

    # --- blocks -------------------------------------------------------------------

    def bind(self, request: Request, block: int) -> None:
        """See `Memory`. Raises BlockRangeError, BlockStateError, OutOfRowsError."""
        self._check_range(block)
        if block in self.bound:
            raise BlockStateError("bind", block, "bound", "a block that is not")
        # Of the channels that have most room the first.
        channel = max(range(len(self.free)), key=lambda c: (len(self.free[c]), -c))
        if not self.free[channel]:
            needed = 2 * self.map.parts
            raise OutOfRowsError(self.name, request, needed, 0, self.longest)
        index = heapq.heappop(self.free[channel])
        running = self.requests.setdefault(request, Running())
        place = channel * self.map.per_channel + index
        self.bound[block] = Block(place, 1, request, len(running.blocks))
        running.blocks.append(block)

    def share(self, request: Request, block: int) -> None:
        """See `Memory`. Raises BlockRangeError, BlockStateError, RequestError."""
        self._check_range(block)
        found = self.bound.get(block)
        if found is None:
            raise BlockStateError("share", block, "not bound", "a bound block")
        running = self.requests.get(request) or Running()
        before = len(running.blocks) * self.block_tokens
        if running.written != before:
            accepted = f"a request whose {before} tokens are all written"
            value = f"has {running.written}"
            raise RequestError("share", request, value, accepted)
        self.requests[request] = running
        found.references += 1
        self.cached.pop(block, None)
        running.blocks.append(block)
        running.written = before + self.block_tokens
        if found.written < self.block_tokens:
            self.unfilled.add(block)

    def evict(self, block: int) -> None:
        """See `Memory`. Raises BlockRangeError, BlockStateError."""
        self._check_range(block)
        found = self.bound.get(block)
        if found is None or found.references:
            state = "not bound" if found is None else "referenced"
            raise BlockStateError("evict", block, state, "a cached block")
        del self.cached[block]
        self._unbind(block)

    def finish(self, request: Request) -> None:
        """See `Memory`; full blocks stay cached. Raises RequestError."""
        running = self.requests.pop(request, None)
        if running is None:
            accepted = "a running request"
            raise RequestError("finish", request, "no request", accepted)
        for block in reversed(running.blocks):
            found = self.bound[block]
            found.references -= 1
            if found.references:
                continue
            if found.written < self.block_tokens:
                self._unbind(block)
            else:
                self.cached[block] = None

    def bindable(
        self,
        request: Request,  # noqa: ARG002
        shares: Sequence[int] = (),  # noqa: ARG002 - all room is alike
    ) -> int:
        """See `Memory`."""
        return sum(map(len, self.free))

    def eviction_candidates(self) -> Iterator[int]:
        """See `Memory`: cached blocks, least recently used first."""
        return iter([*self.cached])

    def blocks_of_pair(self, pair: int) -> Sequence[int]:
        """See `Memory`: a block is a pair of one. Raises BlockStateError."""
        if pair not in self.cached:
            raise BlockStateError("eviction", pair, "not cached", "a cached block")
        return (pair,)

    @property
    def evictable_pairs(self) -> int:
        """See `Memory`."""
        return len(self.cached)

    def admit(self, request: Request, blocks: int) -> bool:
        """See `Memory`; blocks choose their channels one by one."""
        return blocks <= self.bindable(request)

    def usage(self) -> Usage:
        """See `Memory`."""
        held = sum(block.written for block in self.bound.values())
        reserved = len(self.bound) * self.block_tokens
        return Usage(self.blocks, len(self.bound), held, reserved)

    def _check_range(self, block: int) -> None:
        if type(block) is not int or not 0 <= block < self.blocks:
            raise BlockRangeError(block, self.blocks - 1)

    def _unbind(self, block: int) -> None:
        place = self.bound.pop(block).place
        channel, index = divmod(place, self.map.per_channel)
        heapq.heappush(self.free[channel], index)
        self.unfilled.discard(block)

    # --- steps --------------------------------------------------------------------

    def check_blocks(self, levels: Mapping[Request, int]) -> None:
        """Shared blocks are full, or are by the end of the step."""
        for block in sorted(self.unfilled):
            found = self.bound[block]
            held = levels.get(found.request, 0) - found.index * self.block_tokens
            if max(found.written, held) < self.block_tokens:
                state = f"written up to token {max(found.written, held)}"
                raise BlockStateError("share", block, state, "a full block")
        self.unfilled.clear()

    def check_write(self, request: Request, start: int) -> None:
        """Only the request that bound a block writes it. Raises RequestError."""
        running = self.requests[request]
        block = running.blocks[start // self.block_tokens]
        if self.bound[block].request != request:
            value = f"position {start}, in block {block} that another bound"
            raise RequestError("write", request, value, "its own blocks")

    def write(self, request: Request, end: int) -> None:
        """See `MappedMemory`."""
        running, size = self.requests[request], self.block_tokens
        for index in range(running.written // size, -(-end // size)):
            block = self.bound[running.blocks[index]]
            block.written = max(block.written, min(end - index * size, size))
        running.written = max(running.written, end)

    def holdings(self, requests: Sequence[Request]) -> Holdings:
        """What these requests hold, as arrays."""
        places = Table.of(
            [
                [self.bound[block].place for block in self.requests[request].blocks]
                for request in requests
            ]
        )
        return Holdings(np.zeros(len(requests), np.int64), places, places)


def blockpim(
    value_layout: ValueLayout = "rows8", scope: Scope = "head", order: Order = "rows"
) -> System:
    """BlockPIM. Raises ConfigError.

    value_layout: "rows8", GEMV-optimised as the paper has it where a design leaves the
    placement open, and as slow to write as it says; or "in_row", the block's Values in
    one row of their own. scope: whether a block goes to the least filled of its head's
    channels ("head": the device is divided by heads, as for all systems here), or all
    heads of it to one of the device's ("device"). order: "rows" opens a row once in a
    step for all requests that have blocks in it, the most favourable; "requests" takes
    one request after another, as PATTON's schedule in the paper does.
    """
    choice("blockpim", "value_layout", value_layout, ("rows8", "in_row"))
    choice("blockpim", "scope", scope, ("head", "device"))
    choice("blockpim", "order", order, ("rows", "requests"))

    def make(device: DeviceConfig, model: ModelConfig) -> BlockMemory:
        layout = shape_of("blockpim", device, model)
        at = BlockMap.of(layout, value_layout, scope)
        blocks = at.per_channel * at.key_frame.channels_per_head
        if not blocks:
            rows, accepted = at.key_frame.rows_per_plane, f"{at.rows_for(1)} or more"
            raise DeviceConfigError("blockpim", "rows of a layer", rows, accepted)
        tokens = at.value_run * layout.block_tokens
        return BlockMemory(
            name="blockpim",
            device=device,
            model=model,
            map=at,
            blocks=blocks,
            longest=blocks * tokens,
            block_tokens=tokens,
            caches=True,
            step_type=InnerStep if order == "rows" else TurnsStep,
        )

    options = {"value_layout": value_layout, "scope": scope, "order": order}
    return System("blockpim", DECLARATION, options, make)
