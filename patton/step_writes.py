"""Carrying out a step's writes: levels rise, first writes take slots (layout 4).

Everything was checked before (`step_checks`), so nothing here can fail.
"""

from __future__ import annotations

from collections.abc import Sequence

from patton.commit_zone import NO_SLOT
from patton.placements import Placements
from patton.requests import FRESH, RELEASED, RequestState
from patton.step_checks import Write
from patton.steps import Request, SegmentRow


def carry_out(
    state: Placements,
    writes: Sequence[Write],
    drafts: dict[Request, int],
    planned: bool,
) -> list[SegmentRow]:
    """Raise levels and take slots; the writes by block, if they are `planned`."""
    size = state.layout.block_tokens
    written, confirmed = state.written, state.confirmed
    rows: list[SegmentRow] = []
    for writer, start, end in writes:
        room = writer.room + start - end
        # The common case, tokens appended to a begun block, takes no slot.
        if room >= 0 and start == writer.tokens == writer.confirmed and not drafts:
            tail, level = writer.tail, size - room
            written[tail[0]] = confirmed[tail[0]] = level
            writer.tokens = writer.confirmed = end
            writer.room = room
            if not room and tail[3] >= 0:
                state.due[tail[0]] = writer.id, end - size
            if planned:
                count = end - start
                rows.append((*tail, level - count, count, writer.id, start))
        else:
            _write_range(state, rows, writer, start, end, drafts.get(writer.id, 0))
    return rows


def _write_range(
    state: Placements,
    rows: list[SegmentRow],
    writer: RequestState,
    start: int,
    end: int,
    drafts: int,
) -> None:
    """Write [start, end) of a request, its last `drafts` tokens unconfirmed."""
    size = state.layout.block_tokens
    blocks, request = writer.blocks, writer.id
    slots, granules, epochs = state.slot, state.granule, state.epoch
    written, confirmed, due = state.written, state.confirmed, state.due
    if start <= writer.confirmed:
        writer.confirmed = max(end - drafts, start)
    verified = writer.confirmed
    position, base = start, start - start % size
    while base < end:
        block = blocks[base // size]
        level = sure = min(size, end - base)
        if verified < base + level:
            sure = max(verified - base, 0)
        slot = slots[block]
        if slot == FRESH:
            slot = NO_SLOT if sure == size else _first_slot(state, block)
            slots[block] = slot
        written[block], confirmed[block] = level, sure
        if slot >= 0 and (sure == size or block in due):
            state.note_due(block, request, base)
        first, granule, epoch = position - base, granules[block], epochs[block]
        rows.append(
            (block, epoch, granule, slot, first, level - first, request, position)
        )
        base += size
        position = base
    writer.tail, writer.room = (block, epoch, granule, slot), base - end
    if writer.tokens > end:
        _forget_beyond(state, writer, end)
    writer.tokens = end


def _first_slot(state: Placements, block: int) -> int:
    """The slot of a block whose first write leaves it partial, if one is free."""
    if not state.commit_zone:
        return NO_SLOT
    return state.zone.take(state.granule[block] % state.layout.stripes)


def _forget_beyond(state: Placements, writer: RequestState, end: int) -> None:
    """Tokens beyond a rewrite that ends earlier (rejected drafts) are no more."""
    size = state.layout.block_tokens
    for index in range(-(-end // size), -(-writer.tokens // size)):
        block = writer.blocks[index]
        if block != RELEASED:
            state.written[block] = state.confirmed[block] = 0
            state.due.pop(block, None)
            state.copied.pop(block, None)
