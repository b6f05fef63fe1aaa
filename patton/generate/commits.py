"""Commits: full blocks copied from their slot to their O1V (Paper 4.4, layout 4).

A commit keeps channel, bank and lane. It can be repeated from the start after an
interruption at any command, since the slot is only read and stays the visible place.
"""

from __future__ import annotations

from collections.abc import Iterator

import attrs
import numpy as np

from patton.addresses import slot_address, value_address
from patton.commands import CommandStream, Op, Phase
from patton.commit_zone import NO_SLOT
from patton.config import CommitWay
from patton.errors import DeviceConfigError
from patton.generate.assembly import Entries, first_elements, frame_of
from patton.generate.ragged import changes, offsets
from patton.generate.rectangles import (
    Segments,
    row_entries,
    value_axes,
    value_rectangles,
)
from patton.generate.schedule import PAPER, Schedule
from patton.generate.writes import WRITE_COLUMNS, scheduled
from patton.layout import Layout
from patton.steps import Ints, PlacedStep

Row = tuple[int, ...]


def commit_stream(
    placed: PlacedStep, way: CommitWay | None = None, schedule: Schedule = PAPER
) -> CommandStream | None:
    """The stream that commits the step's full blocks; None if there are none.

    way: "host" (which still has the values), "read-back" (by this stream itself) or
    "global-buffer" (inside the device); by default the schedule's, else the device's.
    Slot rows are read once each, and destination rows are visited once each, in the
    last way once for every slot row and as many banks as the buffer holds. The
    schedule's order of writes is followed where the host has the values. Raises
    DeviceConfigError if copies on the device keep their column.
    """
    layout, commits = placed.layout, _commits(placed)
    way = way or schedule.commit_way or layout.device.commit_way
    if not len(commits.granule):
        return None
    if way == "global-buffer":
        rows = list(_copies(layout, commits))
        return Entries.of_rows(rows).stream(placed, Phase.COMMIT, source="copy")
    source = value_rectangles(layout, commits)
    home = attrs.evolve(commits, slot=np.full_like(commits.slot, NO_SLOT))
    target = value_rectangles(layout, home)
    if way == "host":
        target = scheduled(target, schedule)
    reads, frame = None, frame_of(layout)
    if way == "read-back":
        order = source.row_order()
        bursts = source.channels * source.banks * source.count
        ordinal = np.zeros_like(bursts)
        ordinal[order] = offsets(bursts[order])[:-1]
        reads = row_entries(frame, source[order], Op.RD, WRITE_COLUMNS)
        target = attrs.evolve(target, reference=ordinal).by_row()
    entries = row_entries(frame, target, Op.WR, WRITE_COLUMNS)
    if reads is not None:
        entries = reads.followed_by(entries)
    return entries.stream(
        placed,
        Phase.COMMIT,
        axes=value_axes(layout),
        tokens=commits.tokens(),
        source=way,
    )


def _commits(placed: PlacedStep) -> Segments:
    size = placed.layout.block_tokens
    return Segments(
        granule=placed.commit_granule,
        slot=placed.commit_slot,
        start=np.zeros_like(placed.commit_slot),
        count=np.full_like(placed.commit_slot, size),
        request=placed.commit_request,
        position=placed.commit_position,
        batch=np.zeros_like(placed.commit_slot),
    )


def _copies(layout: Layout, commits: Segments) -> Iterator[Row]:
    """Copies of slots, Commit Zone row by row, as many banks as the buffer can hold.

    Only those banks are opened, so that going bank by bank costs no activations.
    """
    device, width = layout.device, layout.rows_per_value * layout.value_width
    if device.copy_column != "free":
        value, accepted = device.copy_column, '"free" for copies of slots to their O1V'
        raise DeviceConfigError(device.name, "copy_column", value, accepted)
    at = slot_address(layout.map, 0, 0, commits.slot, 0, 0)
    order = np.lexsort((at.burst, at.channel, at.row))
    for members in np.split(order, changes(at.row[order], at.channel[order])[1:]):
        channel, row = int(at.channel[members[0]]), int(at.row[members[0]])
        step = min(device.banks, device.bursts_per_row // (len(members) * width))
        for bank in range(0, device.banks, step):
            banks = range(bank, min(bank + step, device.banks))
            bursts = at.burst[members].tolist()
            yield from _copy(
                layout, channel, row, bursts, commits.granule[members], banks
            )


def _copy(
    layout: Layout,
    channel: int,
    row: int,
    bursts: list[int],
    granules: Ints,
    banks: range,
) -> Iterator[Row]:
    """The slots at `bursts` of a row to their granules, in some banks.

    Columns as in COLUMNS. The buffer holds, bank by bank, the slots one after another.
    """
    channels, width = layout.value_channels, layout.value_width
    slot_width = layout.rows_per_value * width
    place: dict[tuple[int, int], int] = {}
    yield Op.ACT, channel, channels, banks.start, len(banks), row, 0, 1, 0, 0
    for bank in banks:
        for slot, burst in enumerate(bursts):
            place[bank, slot] = buffer = len(place) * slot_width
            yield Op.RDCP, channel, channels, bank, 1, row, burst, slot_width, 0, buffer
    element = first_elements(layout)
    home = value_address(layout.map, 0, 0, granules[:, None], 0, element)
    for target in np.unique(home.row).tolist():
        yield Op.ACT, channel, channels, banks.start, len(banks), target, 0, 1, 0, 0
        for slot, part in np.argwhere(home.row == target).tolist():
            burst = int(home.burst[slot, 0])
            for bank in banks:
                buffer = place[bank, slot] + part * width
                yield (
                    Op.WRCP,
                    channel,
                    channels,
                    bank,
                    1,
                    target,
                    burst,
                    width,
                    0,
                    buffer,
                )
