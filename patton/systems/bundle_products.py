"""SV with outer products: what is seen row by row, and the commands that multiply it.

Sums of a channel go on over all of its rows, for one query head after another, and are
read once.
"""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np

from patton.commands import COLUMNS, Op
from patton.steps import Ints
from patton.systems.bundles import BundleMap


@attrs.frozen(eq=False)
class Stretches:
    """What a query sees in a row of a channel; arrays [stretches].

    By query, then local row, then channel. group: of the row, the first seen; groups:
    how many; burst, count: bursts of the row.
    """

    query: Ints
    local: Ints
    channel: Ints
    row: Ints
    group: Ints
    groups: Ints
    burst: Ints
    count: Ints


def activations(
    found: Stretches, order: Ints, starts: Ints, rows: Ints, heads: int
) -> int:
    """Rows opened: those of a query's channel for every query head, if it has several.

    A single row stays open, also from a query before that ended with it.
    """
    row, channel = found.row[order], found.channel[order]
    first, last = row[starts], row[starts + rows - 1]
    opened = np.where(rows > 1, heads * rows, 1)
    of_channel = np.argsort(channel[starts], kind="stable")
    same = np.zeros(len(starts), np.bool_)
    beside = np.diff(channel[starts][of_channel]) == 0
    same[of_channel[1:]] = beside & (last[of_channel][:-1] == first[of_channel][1:])
    return int((opened - same).sum())


class Emitter:
    """The commands of an SV stream, query by query and query head by query head."""

    def __init__(self, at: BundleMap, heads: int, found: Stretches) -> None:
        self.at, self.heads, self.found = at, heads, found
        self.rows: list[dict[str, int]] = []
        self.open = [-1] * at.value_frame.channels_per_head
        self.weights = at.first_weights(found.local).tolist()
        self.lists = {
            name: column.tolist()
            for name, column in attrs.asdict(found, recurse=False).items()
        }

    def columns(self, queries: int) -> dict[str, Any]:
        """The columns of all entries."""
        edges = np.searchsorted(self.found.query, np.arange(queries + 1)).tolist()
        for query in range(queries):
            stretches = range(edges[query], edges[query + 1])
            for head in range(self.heads):
                self._vector(query, head, stretches)
        defaults = {"banks": self.at.unit.banks, "count": 1}
        return {
            name: np.array(
                [row.get(name, defaults.get(name, 0)) for row in self.rows], kind
            )
            for name, kind in COLUMNS.items()
        }

    def _vector(self, query: int, head: int, stretches: range) -> None:
        """All of one query head: clear, rows by rows of a buffer, read."""
        unit, local = self.at.unit, self.lists["local"]
        channels = sorted({self.lists["channel"][s] for s in stretches})
        held = self.at.buffer_rows
        fills: dict[int, list[int]] = {}
        for stretch in stretches:
            fills.setdefault(local[stretch] // held, []).append(stretch)
        for number, some in enumerate(fills.values()):
            self._load(some, head)
            if number == 0:
                for register in range(unit.registers):
                    self._on(Op.WRBIAS, channels, register=register)
            self._multiply(some)
        for register in range(unit.registers):
            group = query * unit.registers + register
            reference = group * self.heads + head
            self._on(Op.RDMAC, channels, register=register, reference=reference)

    def _load(self, stretches: list[int], head: int) -> None:
        """The weights of stretches, for each part."""
        size = len(self.found.query)
        for stretch in stretches:
            for part in range(self.at.unit.parts):
                self._put(
                    Op.WRGB,
                    channel=self.lists["channel"][stretch],
                    channels=1,
                    burst=self.weights[stretch]
                    + part * self.at.row_groups
                    + self.lists["group"][stretch],
                    count=self.lists["groups"][stretch],
                    reference=(part * size + stretch) * self.heads + head,
                )

    def _multiply(self, stretches: list[int]) -> None:
        """Stretches row by row, neighbouring channels that do the same together."""
        runs: list[list[int]] = []
        names = ("local", "row", "burst", "count")
        for stretch in stretches:
            before = runs[-1][-1] if runs else None
            beside = before is not None and all(
                self.lists[name][stretch] == self.lists[name][before] for name in names
            )
            channel = self.lists["channel"]
            if beside and before is not None:
                beside = channel[stretch] == channel[before] + 1
            if beside:
                runs[-1].append(stretch)
            else:
                runs.append([stretch])
        for run in runs:
            self._open(run)
            self._put(
                Op.MACSV,
                channel=self.lists["channel"][run[0]],
                channels=len(run),
                row=self.lists["row"][run[0]],
                burst=self.lists["burst"][run[0]],
                count=self.lists["count"][run[0]],
                reference=self.weights[run[0]],
            )

    def _open(self, run: list[int]) -> None:
        row = self.lists["row"][run[0]]
        channels = [self.lists["channel"][stretch] for stretch in run]
        closed = [channel for channel in channels if self.open[channel] != row]
        self._on(Op.ACT, closed, row=row)
        for channel in closed:
            self.open[channel] = row

    def _on(self, op: Op, channels: list[int], **fields: int) -> None:
        """A command for each run of neighbouring channels."""
        start = 0
        for index in range(1, len(channels) + 1):
            if index == len(channels) or channels[index] != channels[index - 1] + 1:
                count = index - start
                self._put(op, channel=channels[start], channels=count, **fields)
                start = index

    def _put(self, op: Op, **fields: int) -> None:
        self.rows.append({"op": int(op), **fields})
