"""The banks' cells: what is stored, and which lanes of it were ever written."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from patton.config import DeviceConfig

Bits = NDArray[np.uint16]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]
Masks = NDArray[np.unsignedinteger]


class BankMemory:
    """All rows of all channels, in memory proportional to the rows that are written.

    A row of a channel, over all banks, is a slab [banks, bursts, E]. Slab 0 stands for
    every row that was never written: a lookup needs no special case, and because the
    directory starts as zeros, the parts of it that nobody asks for take no memory.

    A lane keeps a written bit beside its 16 bits. A pattern that marks unwritten lanes
    would be ambiguous, as every pattern is an element.
    """

    def __init__(self, device: DeviceConfig) -> None:
        self.device = device
        self.full_mask = mask_of_all(device.lanes)
        self._directory = np.zeros((device.channels, device.rows), np.int32)
        self._used = 1
        self._data = np.zeros((1, *self._slab_shape, device.lanes), np.uint16)
        self._written = np.zeros((1, *self._slab_shape), self.full_mask.dtype)

    @property
    def _slab_shape(self) -> tuple[int, int]:
        return self.device.banks, self.device.bursts_per_row

    @property
    def rows_written(self) -> int:
        """Rows of single channels that take memory."""
        return self._used - 1

    def slabs(self, channels: Ints, rows: Ints) -> Ints:
        """The slab of each row; the arguments broadcast."""
        return self._directory[channels, rows].astype(np.int64)

    def provide(self, channels: Ints, rows: Ints) -> None:
        """A slab for each row that has none; the arguments broadcast."""
        missing = self.slabs(channels, rows) == 0
        if missing.any():
            channels, rows = np.broadcast_arrays(channels, rows)
            places = channels[missing] * np.int64(self.device.rows) + rows[missing]
            fresh = np.unique(places)
            self._grow(self._used + len(fresh))
            numbers = np.arange(self._used, self._used + len(fresh))
            self._directory.reshape(-1)[fresh] = numbers
            self._used += len(fresh)

    def _grow(self, slabs: int) -> None:
        if slabs <= len(self._data):
            return
        room = max(slabs, 2 * len(self._data))
        for name in ("_data", "_written"):
            old = getattr(self, name)
            new = np.zeros((room, *old.shape[1:]), old.dtype)
            new[: self._used] = old[: self._used]
            setattr(self, name, new)

    @property
    def bursts(self) -> NDArray[np.void]:
        """Every burst as one item [slabs * banks * bursts_per_row], for bulk access."""
        return self._data.view(f"V{2 * self.device.lanes}").reshape(-1)

    @property
    def masks(self) -> Masks:
        """Lane mask of written lanes of every burst of `bursts`."""
        return self._written.reshape(-1)

    def slab(self, channel: int, row: int) -> tuple[Bits, Masks]:
        """One row as stored: bits [banks, bursts, E], written masks [banks, bursts]."""
        number = self._directory[channel, row]
        return self._data[number], self._written[number]

    def read(
        self, channel: int, bank: int, row: int, burst: int
    ) -> tuple[Bits, np.unsignedinteger]:
        """One burst: a copy of its bits [E], and the mask of its written lanes."""
        data, written = self.slab(channel, row)
        return data[bank, burst].copy(), written[bank, burst]

    def write(
        self,
        place: tuple[int, int, int, int],
        bits: Bits,
        lanes: np.unsignedinteger,
        written: np.unsignedinteger,
    ) -> None:
        """Write some lanes of one burst.

        place: channel, bank, row, burst; bits [E]; lanes: mask of those to write;
        written: mask of their new written bits.
        """
        channel, bank, row, burst = place
        self.provide(np.array([channel]), np.array([row]))
        data, masks = self.slab(channel, row)
        chosen = self.flags(lanes)
        data[bank, burst, chosen] = bits[chosen]
        masks[bank, burst] = masks[bank, burst] & ~lanes | written & lanes

    def flags(self, masks: Masks | np.unsignedinteger) -> Flags:
        """Lane masks as booleans, lanes in a new last axis."""
        return flags_of(masks, self.device.lanes)

    def image(self) -> Iterator[tuple[int, int, bytes, bytes]]:
        """Channel, row, bits and written masks of every row that holds something."""
        for channel, row in np.argwhere(self._directory).tolist():
            data, written = self.slab(channel, row)
            if written.any():
                yield channel, row, data.tobytes(), written.tobytes()


def mask_of_all(lanes: int) -> np.unsignedinteger:
    """Mask of all lanes of a burst, of the smallest type that has a bit for each."""
    mask: np.unsignedinteger = np.min_scalar_type(2**lanes - 1).type(2**lanes - 1)
    return mask


def flags_of(masks: Masks | np.unsignedinteger, lanes: int) -> Flags:
    """Lane masks as booleans [..., lanes]."""
    bits = np.asarray(masks, np.uint64)[..., None] >> np.arange(lanes, dtype=np.uint64)
    return (bits & np.uint64(1)).astype(np.bool_)
