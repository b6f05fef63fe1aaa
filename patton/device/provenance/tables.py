"""What a stream says of itself must be what its step asks for.

Operands and results are named by a stream's own tables. Before any of it is executed,
the tables are compared with the step: else a stream that computes one thing could call
it another.
"""

from __future__ import annotations

import attrs
import numpy as np

from patton.commands import CommandStream, Frame, Op, Phase
from patton.device.cells import Flags, spread
from patton.device.provenance.faults import fault_at, fault_of_entry
from patton.device.provenance.tags import Fault
from patton.errors import FrameError
from patton.layout import Layout
from patton.steps import PlacedStep

_VECTOR = frozenset({Op.ACT, Op.WRGB, Op.WRBIAS, Op.MACAB, Op.RDMAC})
_WRITE, _READ = frozenset({Op.ACT, Op.WR}), frozenset({Op.ACT, Op.RD})
_COMMIT = {
    "host": _WRITE,
    "read-back": _WRITE | _READ,
    "copy": frozenset({Op.ACT, Op.RDCP, Op.WRCP}),
}
_OPS = {
    Phase.KEY_WRITE: _WRITE,
    Phase.VALUE_WRITE: _WRITE,
    Phase.READ_KEY: _READ,
    Phase.READ_VALUE: _READ,
    Phase.QK: _VECTOR,
    Phase.SV: _VECTOR,
    Phase.PARTIAL: _VECTOR,
}


def check_frame(stream: CommandStream, layout: Layout) -> None:
    """The stream covers the heads and planes of the layout. Raises FrameError.

    Heads and planes then have channels and rows of their own, so that what one of them
    does is what all of them do.
    """
    for name, value in attrs.asdict(frame_of(layout)).items():
        if getattr(stream.frame, name) != value:
            raise FrameError(name, getattr(stream.frame, name), str(value))


def frame_of(layout: Layout) -> Frame:
    """The frame of every stream for a layout."""
    device, model = layout.device, layout.model
    return Frame(
        heads=model.kv_heads,
        heads_per_kv=model.query_heads_per_kv,
        groups=layout.groups,
        channels_per_head=layout.channels_per_head,
        folds=layout.folds,
        rows_per_plane=layout.rows_per_plane,
        banks=device.banks,
        lanes=device.lanes,
        bursts_per_row=device.bursts_per_row,
        head_dim=model.head_dim,
    )


def check_tables(stream: CommandStream, placed: PlacedStep) -> None:
    """Raises ValidationError."""
    ops = _COMMIT[stream.source] if stream.phase == Phase.COMMIT else _OPS[stream.phase]
    wrong = ~np.isin(stream.op, list(ops))
    _check_entries(stream, wrong, "the stream", "this command", "others in this phase")
    if ops is _VECTOR:
        _check_queries(stream, placed)
        _check_loads(stream)
        _check_results(stream)
    elif Op.RDCP not in ops:
        has = stream.axes is not None and stream.tokens is not None
        has = has and stream.element is not None and stream.lanes is not None
        _require(stream, has, "the tables of data", "incomplete", "tokens and axes")
        assert stream.tokens is not None
        request = stream.tokens.request
        known = bool(((request >= 0) & (request < len(placed.requests))).all())
        known = known and len(request) == len(stream.tokens.position)
        _require(stream, known, "the table of tokens", "broken", "tokens of the step")


def _check_entries(
    stream: CommandStream, wrong: Flags, what: str, found: str, due: str
) -> None:
    if wrong.any():
        raise fault_of_entry(stream, int(np.argmax(wrong)), what, found, due)


def _require(
    stream: CommandStream, holds: bool, what: str, found: str, due: str
) -> None:
    if not holds:
        raise fault_at(stream, None, what, Fault.TABLE, found, due)


def _check_queries(stream: CommandStream, placed: PlacedStep) -> None:
    queries = stream.queries
    same = queries is not None and all(
        np.array_equal(found, due)
        for found, due in (
            (queries.request, placed.read_request),
            (queries.start, placed.read_start),
            (queries.end, placed.read_end),
        )
    )
    _require(stream, same, "the queries", "others", "those of the step, in its order")


def _check_loads(stream: CommandStream) -> None:
    """Every load is of a pattern of a query, and patterns name a burst once."""
    loads, frame = stream.loads, stream.frame
    has = loads is not None and stream.queries is not None
    _require(stream, has, "the table of operands", "none", "a table")
    assert loads is not None
    assert stream.queries is not None
    size, queries = len(loads.query), len(stream.queries.start)
    fits = len(loads.ptr) == size + 1 and loads.ptr[-1] == len(loads.burst)
    fits = fits and bool((np.diff(loads.ptr) >= 0).all())
    fits = fits and bool(((loads.query >= 0) & (loads.query < queries)).all())
    end = loads.burst + loads.count
    fits = fits and bool(((loads.burst >= 0) & (end <= frame.bursts_per_row)).all())
    _require(stream, fits, "the table of operands", "broken", "bursts of queries")
    run = spread(loads.burst, loads.count)
    pattern = np.repeat(np.arange(size), np.diff(loads.ptr))[run.source]
    times = np.bincount(pattern * frame.bursts_per_row + run.value)
    once = bool((times <= 1).all())
    _require(stream, once, "the table of operands", "a burst twice", "each once")
    wrong = (stream.op == Op.WRGB) & (
        (stream.reference < 0) | (stream.reference >= size * frame.heads_per_kv)
    )
    due = f"one of {size} patterns"
    _check_entries(stream, wrong, "the operand", "a reference to none", due)


def _check_results(stream: CommandStream) -> None:
    """Every result is of a query; bank b has the b-th component from the first."""
    table, frame = stream.results, stream.frame
    _require(stream, table is not None, "the table of results", "none", "a table")
    assert table is not None
    assert stream.queries is not None
    queries = len(stream.queries.start)
    fits = table.bank_stride == 1 and len(table.query) == len(table.origin)
    fits = fits and bool(((table.query >= 0) & (table.query < queries)).all())
    _require(stream, fits, "the table of results", "broken", "components by bank")
    size = len(table.query) * frame.heads_per_kv
    wrong = (stream.op == Op.RDMAC) & (
        (stream.reference < 0) | (stream.reference >= size)
    )
    due = f"one of {len(table.query)} groups"
    _check_entries(stream, wrong, "the result", "a reference to none", due)
