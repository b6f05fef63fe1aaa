"""The command stream of one phase of one step: columns of equal length, and tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from patton.commands import text
from patton.commands.tables import (
    COLUMNS,
    OPTIONAL_COLUMNS,
    Axes,
    Command,
    Frame,
    Ints,
    Loads,
    Op,
    Phase,
    Queries,
    ResultTable,
    Source,
    Tokens,
)

# Entries of these kinds are one command, whatever their rectangle.
_SINGLE = (Op.ACT, Op.WRBIAS, Op.RDMAC, Op.RDAF)
_BANK_BY_BANK = (Op.RD, Op.WR)


@attrs.frozen(eq=False, kw_only=True)
class CommandStream:
    """Commands of one phase of an engine step, for one plane and one head.

    Columns, all [entries] and of the types in COLUMNS:

    op; channel, channels: consecutive channels from the first of the head's channel
    group; they and all groups are the mask of one multicast command, whose operands
    resolve per head and channel. bank, banks: consecutive banks, all of them where the
    command has no choice. row: relative to the plane, 0 where a command names no row.
    burst, count: consecutive bursts, 0 and 1 where a command names none. register.
    reference: what the data are, see below. Only in streams with RD or WR: element, the
    head element at the first channel and bank and lane 0 of `burst`, and lanes, a mask
    of the lanes that carry one of the stream's tokens. Only in streams with WR: fill,
    whether all other lanes are written zero (else they stay).

    Commands of an entry, in order: ACT, WRBIAS, RDMAC, RDAF are one; WRGB, MACAB, RDCP,
    WRCP are `count`, bursts ascending; RD and WR are `banks * count`, bank by bank and
    bursts ascending in a bank. A flat command number counts them over the stream.

    reference: of WRGB see `Loads`, of RDMAC see `ResultTable`, of RD and WR see `Axes`.
    RDCP and WRCP name their first Global Buffer burst. Where `source` is "read-back" a
    WR names the ordinal of the first burst that it writes among all bursts that the
    stream's RD entries return (`read_offsets`), and has the shape of that RD.

    source: where written data come from, the host, the stream's own reads, or copies
    inside the device. A stream is self-contained: at its start all rows are closed, and
    Global Buffer and registers are undefined.
    """

    phase: Phase
    step: int
    frame: Frame
    op: NDArray[np.uint8]
    channel: NDArray[np.uint16]
    channels: NDArray[np.uint16]
    bank: NDArray[np.uint8]
    banks: NDArray[np.uint8]
    row: NDArray[np.uint32]
    burst: NDArray[np.uint16]
    count: NDArray[np.uint16]
    register: NDArray[np.uint8]
    reference: NDArray[np.int32]
    element: NDArray[np.int32] | None = None
    lanes: NDArray[np.uint64] | None = None
    fill: NDArray[np.bool_] | None = None
    axes: Axes | None = None
    tokens: Tokens | None = None
    loads: Loads | None = None
    results: ResultTable | None = None
    queries: Queries | None = None
    source: Source = "host"

    def __len__(self) -> int:
        return len(self.op)

    def columns(self) -> dict[str, NDArray[Any]]:
        """The columns that this stream has, by name."""
        names = (*COLUMNS, *OPTIONAL_COLUMNS)
        found = {name: getattr(self, name) for name in names}
        return {name: column for name, column in found.items() if column is not None}

    def commands(self) -> Iterator[Command]:
        """The entries one by one, in readable form."""
        columns = {name: column.tolist() for name, column in self.columns().items()}
        columns["op"] = [Op(op) for op in columns["op"]]
        for values in zip(*columns.values(), strict=True):
            yield Command(**dict(zip(columns, values, strict=True)))

    def command_counts(self) -> Ints:
        """Single commands of each entry [entries]; a multicast command is one."""
        counts = self.count.astype(np.int64)
        counts[np.isin(self.op, _SINGLE)] = 1
        many = np.isin(self.op, _BANK_BY_BANK)
        counts[many] *= self.banks[many]
        return counts

    def command_offsets(self) -> Ints:
        """Flat number of each entry's first command, and their total [entries + 1]."""
        return _offsets(self.command_counts())

    def counts(self) -> dict[Op, int]:
        """Single commands by kind, where there are any; a multicast command is one."""
        totals = np.bincount(self.op, self.command_counts(), minlength=len(Op))
        return {op: int(totals[op]) for op in Op if totals[op]}

    def activations(self) -> float:
        """Row activations per head and fold, in all-bank equivalents.

        Sixteen banks of sixteen count 1, one bank 1/16; every channel counts.
        """
        opened = self.op == Op.ACT
        banks = self.channels[opened].astype(np.int64) * self.banks[opened]
        return int(banks.sum()) / self.frame.banks

    def payload_bursts(self) -> Ints:
        """Host bursts per head that each entry takes [entries].

        WRGB: its bursts. WR from the host: channels * banks * count of them, burst
        fastest, then bank, then channel.
        """
        ops = (Op.WRGB, Op.WR) if self.source == "host" else (Op.WRGB,)
        return self._bursts(ops)

    def payload_offsets(self) -> Ints:
        """First host burst of each entry, and their total [entries + 1]."""
        return _offsets(self.payload_bursts())

    def mac_offsets(self) -> Ints:
        """First result row of each entry, and their total [entries + 1].

        An RDMAC has one row of results per channel, with a value per bank.
        """
        rows = np.where(self.op == Op.RDMAC, self.channels, 0)
        return _offsets(rows)

    def read_offsets(self) -> Ints:
        """First returned burst of each entry, and their total [entries + 1].

        An RD returns channels * banks * count, burst fastest, then bank, then channel.
        """
        return _offsets(self._bursts((Op.RD,)))

    def to_text(self) -> str:
        """The whole stream as text, one line an entry; `from_text` reads it back."""
        return text.write(self)

    @classmethod
    def from_text(cls, content: str) -> CommandStream:
        """The stream that `to_text` wrote; comments and blank lines are passed over.

        Raises StreamError, which names the line.
        """
        return cls(**text.read(content))

    def _bursts(self, ops: Iterable[Op]) -> Ints:
        bursts = self.count.astype(np.int64)
        many = np.isin(self.op, _BANK_BY_BANK)
        bursts[many] *= self.channels[many].astype(np.int64) * self.banks[many]
        bursts[~np.isin(self.op, tuple(ops))] = 0
        return bursts


def _offsets(counts: NDArray[Any]) -> Ints:
    offsets = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=offsets[1:])
    return offsets
