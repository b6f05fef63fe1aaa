"""What every granule and slot must hold, and what a step must write into them.

Worked out from the placements of steps and from the address map, never from a stream.
Value places are numbered granules first, then Commit Zone slots.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import attrs
import numpy as np
from numpy.typing import NDArray

from patton.addresses import Address, key_address, slot_address, value_address
from patton.commands import Phase, Tokens
from patton.device.cells import Flags, Ints, spread
from patton.device.provenance.memory import TagMemory
from patton.device.provenance.tags import FILLED, Identities, Kind, Ledger, tags_of
from patton.layout import Layout
from patton.steps import PlacedStep

# Who the tokens are, as the engine knows it; requests are indices into the step's.
Identify: TypeAlias = Callable[[Tokens], Identities]


@attrs.frozen(eq=False)
class Cells:
    """Bursts of single banks that are written: which lanes, and what all then hold.

    cell, lanes [cells], tags [cells, E].
    """

    cell: Ints
    lanes: NDArray[np.uint64]
    tags: Ints


@attrs.define(eq=False)
class Contents:
    """Tokens (or FILLED, UNWRITTEN) of every place: key [granules, T], value [.., T].

    They change when a stream that writes has been found right.
    """

    layout: Layout
    key: Ints
    value: Ints

    @classmethod
    def of(cls, layout: Layout) -> Contents:
        """Nothing was written yet."""
        size, slots = layout.block_tokens, layout.slots * layout.stripes
        key = np.zeros((layout.granules, size), np.int64)
        return cls(layout, key, np.zeros((layout.granules + slots, size), np.int64))

    def place(self, granule: Ints, slot: Ints) -> Ints:
        """The visible Value place of blocks."""
        return np.where(slot < 0, granule, self.layout.granules + slot)

    def value_address(self, place: Ints, token: Ints, element: Ints) -> Address:
        """Where elements of Value places lie; the arguments broadcast."""
        layout, slot = self.layout, place - self.layout.granules
        home = value_address(layout.map, 0, 0, place, token, element)
        zone = slot_address(layout.map, 0, 0, slot, token, element)
        fields = zip(home, zone, strict=True)
        return Address(*(np.where(slot < 0, *pair) for pair in fields))


@attrs.frozen(eq=False)
class StepWrites:
    """The writes and commits of one step; arrays [segments] and [commits].

    token: of the first token of each segment. request, base: whose block a row of
    `tokens_of` is, and the position of its token 0.
    """

    contents: Contents
    granule: Ints
    place: Ints
    start: Ints
    end: Ints
    token: Ints
    request: Ints
    base: Ints
    commit_from: Ints
    commit_to: Ints
    commit_request: Ints
    commit_base: Ints

    @classmethod
    def of(
        cls,
        contents: Contents,
        ledger: Ledger,
        placed: PlacedStep,
        identify: Identify | None,
    ) -> StepWrites:
        """The step's writes, whose tokens get new numbers."""
        segment = spread(placed.write_position, placed.write_count)
        tokens = Tokens(placed.write_request[segment.source], segment.value)
        numbers = ledger.add(
            placed.step,
            placed.requests,
            tokens.request,
            tokens.position,
            None if identify is None else identify(tokens),
        )
        first = np.cumsum(placed.write_count) - placed.write_count
        return cls(
            contents=contents,
            granule=placed.write_granule,
            place=contents.place(placed.write_granule, placed.write_slot),
            start=placed.write_start,
            end=placed.write_start + placed.write_count,
            token=first + (numbers[0] if len(numbers) else 0),
            request=placed.write_request,
            base=placed.write_position - placed.write_start,
            commit_from=contents.layout.granules + placed.commit_slot,
            commit_to=placed.commit_granule,
            commit_request=placed.commit_request,
            commit_base=placed.commit_position,
        )

    # --- what places hold afterwards ------------------------------------------------

    def tokens_of(self, phase: Phase) -> Ints:
        """What the places of the segments, or of the commits, then hold [.., T]."""
        if phase == Phase.COMMIT:
            return self.contents.value[self.commit_from]
        if phase == Phase.KEY_WRITE:
            return np.where(
                self._inside(), self._new(), self.contents.key[self.granule]
            )
        before = self.contents.value[self.place]
        filled = np.where(self._filled(), FILLED, before)
        return np.where(self._inside(), self._new(), filled)

    def host_tokens(self, phase: Phase, tokens: Tokens) -> Ints:
        """Numbers of tokens that the host sends in a phase, 0 for any other token."""
        commits = phase == Phase.COMMIT
        request = self.commit_request if commits else self.request
        base = self.commit_base if commits else self.base
        if not len(request):
            return np.zeros_like(tokens.position)
        size = self.contents.layout.block_tokens
        width = 1 + max(base.max(initial=0), tokens.position.max(initial=0)) // size
        keys = request * width + base // size
        order = np.argsort(keys, kind="stable")
        sought = tokens.request * width + tokens.position // size
        at = order[np.searchsorted(keys[order], sought).clip(max=len(keys) - 1)]
        held = self.tokens_of(phase)[at, tokens.position % size]
        known = (keys[at] == sought) & (tokens.position >= 0) & (held > FILLED)
        return np.where(known, held, 0)

    def carry_out(self, phase: Phase) -> None:
        """The contents, once the stream of a phase has written what it must."""
        tokens, contents = self.tokens_of(phase), self.contents
        if phase == Phase.KEY_WRITE:
            contents.key[self.granule] = tokens
        elif phase == Phase.VALUE_WRITE:
            contents.value[self.place] = tokens
        else:
            contents.value[self.commit_to] = tokens

    def _lanes(self) -> Ints:
        return np.arange(self.contents.layout.block_tokens)

    def _inside(self) -> Flags:
        """Tokens of each block that are written [segments, T]."""
        lanes = self._lanes()
        flags: Flags = (lanes >= self.start[:, None]) & (lanes < self.end[:, None])
        return flags

    def _new(self) -> Ints:
        return (self.token - self.start)[:, None] + self._lanes()

    def _filled(self) -> Flags:
        """Lanes behind the new tokens that are zeroed: their burst is written whole."""
        device, lanes = self.contents.layout.device, self._lanes()
        burst = lanes - lanes % device.lanes
        touched = burst < self.end[:, None]
        if (
            device.write_masks
        ):  # else every burst is, whether it was begun before or not
            touched &= burst >= self.start[:, None]
        flags: Flags = touched & (lanes >= self.end[:, None])
        return flags

    # --- where that is ----------------------------------------------------------------

    def cells(self, phase: Phase, memory: TagMemory) -> Cells:
        """What the stream of a phase must write."""
        if phase == Phase.KEY_WRITE:
            return self._key_cells(memory)
        held = self.tokens_of(phase)
        if phase == Phase.VALUE_WRITE:
            return self._value_cells(memory, self.place, held, self.start, self.end)
        start = np.zeros_like(self.commit_to)
        size = np.full_like(start, self.contents.layout.block_tokens)
        return self._value_cells(memory, self.commit_to, held, start, size)

    def _key_cells(self, memory: TagMemory) -> Cells:
        """Every token takes whole bursts of one bank (Paper 4.3)."""
        layout = self.contents.layout
        token = spread(self.start, self.end - self.start)
        part = np.arange(layout.key_bursts) * layout.device.lanes
        granule = self.granule[token.source][:, None]
        at = key_address(layout.map, 0, 0, granule, token.value[:, None], part)
        cell = memory.cells(at.channel, at.row, at.burst, at.bank).reshape(-1)
        number = (self.token - self.start)[token.source] + token.value
        element = part[:, None] + np.arange(layout.device.lanes)
        head_dim = layout.model.head_dim
        tags = tags_of(number[:, None, None], Kind.KEY, element, head_dim)
        lanes = np.full(len(cell), whole_mask(layout))
        return Cells(cell, lanes, tags.reshape(len(cell), -1))

    def _value_cells(
        self, memory: TagMemory, place: Ints, held: Ints, start: Ints, end: Ints
    ) -> Cells:
        """Bursts with new tokens, in all banks of all channels and rows (Paper 4.4)."""
        layout, width = self.contents.layout, self.contents.layout.device.lanes
        first = start // width
        burst = spread(first, (end - 1) // width + 1 - first)
        rows = layout.rows_per_value * layout.value_channels
        element = np.arange(rows * layout.device.banks)
        at = self.contents.value_address(
            place[burst.source][:, None], (burst.value * width)[:, None], element
        )
        cell = memory.cells(at.channel, at.row, at.burst, at.bank)
        lane = burst.value[:, None] * width + np.arange(width)
        tokens = held[burst.source[:, None], lane]
        head_dim = layout.model.head_dim
        tags = tags_of(tokens[:, None], Kind.VALUE, element[:, None], head_dim)
        lanes = self._written_lanes(lane, start[burst.source], end[burst.source])
        lanes = np.broadcast_to(lanes[:, None], cell.shape)
        return Cells(cell.reshape(-1), lanes.reshape(-1), tags.reshape(-1, width))

    def _written_lanes(self, lane: Ints, start: Ints, end: Ints) -> NDArray[np.uint64]:
        """Masks of lanes that the device replaces: all, unless the burst was begun."""
        device = self.contents.layout.device
        inside = (lane >= start[:, None]) & (lane < end[:, None])
        bits = np.uint64(1) << np.arange(device.lanes, dtype=np.uint64)
        masks = np.where(inside, bits, np.uint64(0)).sum(axis=1, dtype=np.uint64)
        whole = inside[:, 0] if device.write_masks else np.ones(len(lane), np.bool_)
        return np.where(whole, whole_mask(self.contents.layout), masks)


def whole_mask(layout: Layout) -> np.uint64:
    """The mask of all lanes of a burst."""
    return np.uint64(2**layout.device.lanes - 1)
