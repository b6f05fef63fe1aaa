"""The cells of one channel group in one plane, a tag per lane."""

from __future__ import annotations

import numpy as np

from patton.commands import Frame
from patton.device.cells import Ints


class TagMemory:
    """Tags of every lane, in memory proportional to the rows that are written.

    A row of a channel is a slab [bursts, banks, E]: a MACAB takes one burst of every
    bank, and finds them together. Slab 0 stands for every row that was never written.
    A cell is a burst of one bank, numbered by channel, row, burst and bank.
    """

    def __init__(self, frame: Frame) -> None:
        self.rows, self.bursts = frame.rows_per_plane, frame.bursts_per_row
        self.banks = frame.banks
        self._slab = np.zeros(frame.channels_per_head * self.rows, np.int32)
        self._tags = np.zeros((1, self.bursts, self.banks, frame.lanes), np.int64)
        self._used = 1

    def cells(self, channel: Ints, row: Ints, burst: Ints, bank: Ints) -> Ints:
        """Numbers of cells; the arguments broadcast."""
        place = (channel * self.rows + row) * self.bursts + burst
        return place * self.banks + bank

    def address(self, cell: int) -> tuple[int, int, int, int]:
        """Channel, row, burst and bank of a cell."""
        place, bank = divmod(cell, self.banks)
        place, burst = divmod(place, self.bursts)
        return (*divmod(place, self.rows), burst, bank)

    def read(self, cells: Ints) -> Ints:
        """Tags [..., E] of cells."""
        place, bank = np.divmod(cells, self.banks)
        tags: Ints = self._tags[*self._slabs(place), bank]
        return tags

    def read_banks(self, places: Ints) -> Ints:
        """Tags [..., B, E] of a burst in all banks; place: cell // banks."""
        tags: Ints = self._tags[self._slabs(places)]
        return tags

    def write(self, cells: Ints, tags: Ints) -> None:
        """Replace whole cells, which are all different."""
        place, bank = np.divmod(cells, self.banks)
        rows = place // self.bursts
        fresh = np.unique(rows[self._slab[rows] == 0])
        if len(fresh):
            self._provide(fresh)
        self._tags[*self._slabs(place), bank] = tags

    def _slabs(self, places: Ints) -> tuple[Ints, Ints]:
        rows, burst = np.divmod(places, self.bursts)
        return self._slab[rows].astype(np.int64), burst

    def _provide(self, rows: Ints) -> None:
        end = self._used + len(rows)
        if end > len(self._tags):
            room = max(end, 2 * len(self._tags))
            grown = np.zeros((room, *self._tags.shape[1:]), np.int64)
            grown[: self._used] = self._tags[: self._used]
            self._tags = grown
        self._slab[rows] = np.arange(self._used, end)
        self._used = end
