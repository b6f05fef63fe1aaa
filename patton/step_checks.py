"""What a step may write and read: checked as a whole before any of it is carried out.

Functions over the placements that the step's events left; none changes anything.
"""

from __future__ import annotations

from collections.abc import Sequence

from patton.errors import RequestError, SharedBlockError, UnwrittenReadError
from patton.placements import Placements
from patton.requests import RELEASED, RequestState
from patton.steps import Request, Step

# Writer, first position, position after the last.
Write = tuple[RequestState, int, int]
Ends = dict[Request, int]


def check_writes(state: Placements, step: Step, ends: Ends) -> list[Write]:
    """The step's writes with their writers.

    ends: filled with the position after each request's write. Raises RequestError
    (unknown, a gap, past the table, two ranges of one request) and SharedBlockError.
    """
    running = state.requests.get
    writes: list[Write] = []
    for request, start, count in step.writes:
        writer = running(request)
        if writer is None or count < 1:
            raise _write_refusal(state, request, start, count)
        end = start + count
        # Mostly a token is appended to a block that is known to be the writer's alone.
        if start != writer.tokens or count > writer.room:
            _check_write(state, writer, start, end)
        writes.append((writer, start, end))
        ends[request] = end
    if len(ends) != len(writes):
        raise _repeated(step)
    if type(sum(ends.values())) is not int:  # quicker than to look at each
        raise RequestError("write", [*ends], "other numbers", "Python's integers")
    if step.drafts:
        _check_drafts(step)
    return writes


def _check_write(state: Placements, writer: RequestState, start: int, end: int) -> None:
    """A write leaves no gap; its blocks are the writer's own, read by nobody else."""
    size = state.layout.block_tokens
    blocks, binder, sealed = writer.blocks, state.binder, state.sealed
    if (end - 1) // size >= len(blocks):
        raise _write_refusal(state, writer.id, start, end - start)
    if start != writer.tokens:
        _check_rewrite(state, writer, start, end)
    for index in range((end - 1) // size, start // size - 1, -1):
        block = blocks[index]
        if block < 0 or binder[block] is not writer or sealed[block] <= state.step:
            _check_sealed(state, writer, index, start, end)


def _check_drafts(step: Step) -> None:
    counts = {request: count for request, _, count in step.writes}
    for request, drafts in step.drafts.items():
        most = counts.get(request, 0)
        if type(drafts) is not int or not 0 <= drafts <= most:
            accepted = f"0 to {most}, the tokens it writes in this step"
            raise RequestError("write", request, f"{drafts} drafts", accepted)


def _check_sealed(
    state: Placements, writer: RequestState, index: int, start: int, end: int
) -> None:
    """A block shared in this step may still be written, if it is full afterwards.

    Whether one that was partial gets filled is for `check_shares` to see.
    """
    size = state.layout.block_tokens
    block, base = writer.blocks[index], index * size
    if block != RELEASED and state.binder[block] is writer:
        unread = state.references[block] == 1 or state.written[block] < size
        if state.sealed[block] == state.step and (unread or end >= base + size):
            return
    raise _shared_refusal(state, writer, index, max(start, base))


def _check_rewrite(
    state: Placements, writer: RequestState, start: int, end: int
) -> None:
    """A rewrite leaves no gap, and takes nothing from others that read what follows."""
    if not 0 <= start <= writer.tokens:
        raise _write_refusal(state, writer.id, start, end - start)
    size = state.layout.block_tokens
    for index in range(-(-end // size), -(-writer.tokens // size)):
        block = writer.blocks[index]
        if block != RELEASED and state.sealed[block] <= state.step:
            _check_sealed(state, writer, index, end, end)


def check_shares(state: Placements, writes: Sequence[Write]) -> None:
    """Blocks shared while partial are full by the end of the step.

    An engine may register a block's hash when it schedules the step that fills it;
    should that step not fill it after all, the sharer would read what is not there.
    Raises UnwrittenReadError.
    """
    size = state.layout.block_tokens
    for request, block in state.owed:
        filled = state.written[block]
        for writer, _, end in writes:  # none leaves a gap: `check_writes`
            if writer is state.binder[block]:
                base = writer.blocks.index(block) * size
                filled = max(filled, min(end - base, size))
        if filled < size:
            position = state.requests[request].blocks.index(block) * size + filled
            raise UnwrittenReadError(request, position, block, state.step, filled)


def check_reads(state: Placements, step: Step, ends: Ends) -> None:
    """Every read and read-back lies in what its request will have written.

    ends: as `check_writes` filled it.

    Raises RequestError (unknown, empty range, released block) and UnwrittenReadError.
    """
    extent_of, gaps = ends.get, state.gaps
    for ranges in (step.reads, step.readbacks):
        for request, start, end in ranges:
            # Mostly a decode reads what it has, this step's token included. Bits of
            # both that make up the extent are below it, and only integers have bits.
            if start | end != extent_of(request, 0) or start >= end or gaps:
                _check_read(state, ends, request, start, end)


def _check_read(
    state: Placements, ends: Ends, request: Request, start: int, end: int
) -> None:
    reader = state.requests.get(request)
    if reader is None or not 0 <= start < end:
        accepted = "a running request and 0 <= start < end"
        raise RequestError("read", request, f"range {start} to {end}", accepted)
    extent = ends.get(request, reader.tokens)
    if end > extent:
        raise _unwritten(state, reader, max(start, extent))
    if reader.released:
        _check_held(state, reader, start, end)


def _check_held(state: Placements, reader: RequestState, start: int, end: int) -> None:
    size = state.layout.block_tokens
    for index in range(start // size, (end - 1) // size + 1):
        if reader.blocks[index] == RELEASED:
            value = f"range {start} to {end}, whose block {index} it released"
            raise RequestError("read", reader.id, value, "positions that it holds")


def _write_refusal(
    state: Placements, request: Request, start: int, count: int
) -> RequestError:
    writer = state.running("write", request)
    room = len(writer.blocks) * state.layout.block_tokens
    accepted = (
        f"at least 1 token, first position 0 to {writer.tokens}, end at most {room}"
    )
    return RequestError("write", request, f"{count} tokens at {start}", accepted)


def _repeated(step: Step) -> RequestError:
    requests = [request for request, _, _ in step.writes]
    request = max(requests, key=requests.count)
    return RequestError("write", request, "two ranges in one step", "one range")


def _shared_refusal(
    state: Placements, writer: RequestState, index: int, position: int
) -> SharedBlockError:
    block = writer.blocks[index]
    if block == RELEASED:
        how = "released"
    elif state.binder[block] is not writer:
        how = "bound by another request"
    else:
        how = f"shared or cached since step {state.sealed[block]}"
    return SharedBlockError(writer.id, position, block, how, state.step)


def _unwritten(
    state: Placements, reader: RequestState, position: int
) -> UnwrittenReadError:
    index = position // state.layout.block_tokens
    block = reader.blocks[index] if index < len(reader.blocks) else RELEASED
    written = 0 if block == RELEASED else state.written[block]
    return UnwrittenReadError(reader.id, position, block, state.step, written)
