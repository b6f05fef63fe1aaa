"""Which tokens the queries and read-backs of a step must meet, where and in what order.

Worked out from the step's block tables and the address map, never from a stream. A
query needs every position of its visible range, each in the place where its block is
visible; a result is due per Value row set and stripe, and per slot (Paper 4.4).
"""

from __future__ import annotations

import attrs
import numpy as np

from patton.commands import Tokens
from patton.device.cells import Flags, Ints, spread
from patton.device.provenance.contents import Contents, Identify
from patton.device.provenance.tags import NOBODY, UNWRITTEN, Fault, Ledger
from patton.errors import ValidationError
from patton.steps import PlacedStep


@attrs.frozen(eq=False)
class Blocks:
    """Parts of blocks that are read: tokens [low, high) of each; arrays [blocks].

    owner: the query or read-back; request; base: position of the block's token 0.
    """

    owner: Ints
    request: Ints
    base: Ints
    granule: Ints
    place: Ints
    low: Ints
    high: Ints


@attrs.frozen(eq=False)
class Runs:
    """What is accumulated into one result; runs in the order in which they are added.

    first [queries + 1]: runs of each query; begin [runs + 1]: their bursts. Of a burst:
    place and part: which of the place's bursts; position: of the token of lane 0.
    """

    first: Ints
    begin: Ints
    place: Ints
    part: Ints
    position: Ints


@attrs.frozen(eq=False)
class StepReads:
    """All that a step reads, after its writes.

    queries: a block per query and block of its visible range; backs: per read-back.
    """

    placed: PlacedStep
    contents: Contents
    queries: Blocks
    backs: Blocks

    @classmethod
    def of(cls, contents: Contents, placed: PlacedStep) -> StepReads:
        """What the step reads. Raises ValidationError where a table lacks a token."""
        queries = placed.read_request, placed.read_start, placed.read_end
        backs = (
            placed.readback_request,
            placed.readback_start,
            placed.readback_end,
        )
        return cls(
            placed,
            contents,
            _blocks(contents, placed, *queries),
            _blocks(contents, placed, *backs),
        )

    def verify(self, ledger: Ledger, identify: Identify | None) -> None:
        """Key and Value of what is read are of one token, and of the one asked for.

        Raises ValidationError: the placements are wrong, whatever the streams do.
        """
        for blocks in (self.queries, self.backs):
            _check_tokens(self, ledger, blocks, identify)
        _check_bursts(self)

    def runs(self, *, in_slots: bool) -> Runs:
        """What is accumulated together, of resident blocks or of those in slots.

        Resident: all that a query sees in one row set and stripe. In slots: each block
        on its own, by Commit Zone row, stripe and column.
        """
        blocks, granules = self.queries, self.contents.layout.granules
        zero = np.zeros_like(blocks.place)
        at = self.contents.value_address(blocks.place, zero, zero)
        order = np.lexsort((at.burst, at.channel, at.row, blocks.owner))
        order = order[(blocks.place[order] >= granules) == in_slots]
        new = np.ones(len(order), np.bool_)
        if not in_slots:
            keys = np.stack([blocks.owner, at.row, at.channel])[:, order]
            new[1:] = (keys[:, 1:] != keys[:, :-1]).any(axis=0)
        return self._runs(order, new)

    def readback_tokens(self) -> tuple[Tokens, Ints, Ints]:
        """Tokens read back in logical order; their numbers as Keys and as Values."""
        blocks = self.backs
        token = spread(blocks.low, blocks.high - blocks.low)
        block = token.source
        tokens = Tokens(blocks.request[block], blocks.base[block] + token.value)
        keys = self.contents.key[blocks.granule[block], token.value]
        return tokens, keys, self.contents.value[blocks.place[block], token.value]

    def key_at(self, request: Ints, position: Ints) -> tuple[Ints, Ints]:
        """Granule and token of positions; granule -1 where a table has none."""
        tables, size = self.placed.tables, self.contents.layout.block_tokens
        counts = np.diff(tables.ptr)[request]
        index = position // size
        inside = (index >= 0) & (index < counts)
        granule = np.full(len(index), -1)
        granule[inside] = tables.granule[(tables.ptr[request] + index)[inside]]
        return granule, position % size

    def _runs(self, order: Ints, new: Flags) -> Runs:
        """Runs of the blocks in this order; `new`: where one begins."""
        blocks, lanes = self.queries, self.contents.layout.device.lanes
        first = blocks.low[order] // lanes
        counts = (blocks.high[order] - 1) // lanes + 1 - first
        burst = spread(first, counts)
        block = order[burst.source]
        starts = np.flatnonzero(new)
        before = np.append(np.cumsum(counts) - counts, counts.sum())
        owners = blocks.owner[order][starts]
        queries = np.arange(len(self.placed.read_request) + 1)
        return Runs(
            first=np.searchsorted(owners, queries),
            begin=before[np.append(starts, len(order))],
            place=blocks.place[block],
            part=burst.value,
            position=blocks.base[block] + burst.value * lanes,
        )


def _blocks(
    contents: Contents, placed: PlacedStep, request: Ints, start: Ints, end: Ints
) -> Blocks:
    """The blocks of the tables that hold positions [start, end) of requests."""
    size, tables = contents.layout.block_tokens, placed.tables
    first = start // size
    index = spread(first, (end - 1) // size + 1 - first)
    owner = index.source
    reader, base = request[owner], index.value * size
    missing = index.value >= np.diff(tables.ptr)[reader]
    if missing.any():
        at = int(np.argmax(missing))
        raise _no_token(placed, int(reader[at]), int(base[at]), "a block in its table")
    entry = tables.ptr[reader] + index.value
    low = np.maximum(start[owner] - base, 0)
    high = np.minimum(end[owner] - base, size)
    unheld = (tables.granule[entry] < 0) | (tables.opened[entry] < high)
    if unheld.any():
        at = int(np.argmax(unheld))
        position = int(base[at] + max(low[at], tables.opened[entry][at]))
        raise _no_token(placed, int(reader[at]), position, "a written token")
    granule = tables.granule[entry]
    place = contents.place(granule, tables.slot[entry])
    return Blocks(owner, reader, base, granule, place, low, high)


def _check_tokens(
    reads: StepReads, ledger: Ledger, blocks: Blocks, identify: Identify | None
) -> None:
    contents, placed = reads.contents, reads.placed
    # Queries of one request see the same blocks, which are looked at once.
    key = blocks.base + blocks.request * (1 + blocks.base.max(initial=0))
    _, some, same = np.unique(key, return_index=True, return_inverse=True)
    low, high = blocks.low[some], blocks.high[some]
    np.minimum.at(low, same, blocks.low)
    np.maximum.at(high, same, blocks.high)
    token = spread(low, high - low)
    block = some[token.source]
    position = blocks.base[block] + token.value
    keys = contents.key[blocks.granule[block], token.value]
    values = contents.value[blocks.place[block], token.value]
    wrong = (keys <= NOBODY) | (keys != values)
    if identify is not None:
        due = identify(Tokens(blocks.request[block], position))
        wrong |= ledger.identity[keys] != due
    if wrong.any():
        at = int(np.argmax(wrong))
        found = (
            f"the Key of {ledger.describe_token(int(keys[at]))}, "
            f"the Value of {ledger.describe_token(int(values[at]))}"
        )
        request = int(blocks.request[block][at])
        raise _placement(placed, request, int(position[at]), found, "its own")


def _check_bursts(reads: StepReads) -> None:
    """No lane of a burst that is multiplied is unwritten, whoever sees it."""
    blocks, lanes = reads.queries, reads.contents.layout.device.lanes
    first, last = blocks.low // lanes, (blocks.high - 1) // lanes
    token = spread(first * lanes, (last + 1 - first) * lanes)
    block = token.source
    bare = reads.contents.value[blocks.place[block], token.value] == UNWRITTEN
    if bare.any():
        at = int(np.argmax(bare))
        request = int(blocks.request[block][at])
        position = int(blocks.base[block][at] + token.value[at])
        due = "a token, or zero, beside those that are read"
        raise _no_token(reads.placed, request, position, due)


def _no_token(
    placed: PlacedStep, request: int, position: int, due: str
) -> ValidationError:
    return _placement(placed, request, position, "none", due)


def _placement(
    placed: PlacedStep, request: int, position: int, found: str, due: str
) -> ValidationError:
    name = placed.requests[request]
    output = f"what position {position} of request {name!r} finds in memory"
    return ValidationError(
        "placement",
        placed.step,
        0,
        0,
        "no command",
        output,
        Fault.PLACEMENT,
        found,
        due,
    )
