"""PIMphony (HPCA 2026): chunks of 1 MB on demand, tokens over the channels of a head.

A chunk is one row of all banks of all channels, owned by a request for the Keys or the
Values of a layer. Token-Centric Partitioning spreads the tokens of a head over all its
channels (Paper 5.2); out-of-order command issue is a change of the controller, and is
left out.
"""

from __future__ import annotations

from typing import Literal

import attrs
import numpy as np

from patton.commands import Frame
from patton.config import DeviceConfig, ModelConfig
from patton.layout import Layout
from patton.steps import Ints
from patton.systems.maps import HeadMap, Holdings, Spots, shape_of
from patton.systems.rows import RowMemory, Unit, head_memory
from patton.systems.system import Claim, Declaration, System, choice

Chunk = Literal["row", "in_row", "channel"]

DECLARATION = Declaration(
    title="PIMphony",
    year=2026,
    owner="request",
    unit="chunks of 1 MB",
    mapping="inference",
    claims=(
        Claim("paper", "chunks of 1 MB on demand, freed when the request ends"),
        Claim("inference", "a chunk is one row of all banks of all channels"),
        Claim("inference", "Values take chunks for all rows of a full reduction"),
        Claim("patton", "channels divided among heads; tokens over a head's channels"),
        Claim("inference", "commands are issued in order: AiM's controller is kept"),
    ),
)


@attrs.frozen(eq=False)
class ChunkMap:
    """Values of as many tokens as a Key row has, side by side in one row of a chunk."""

    layout: Layout
    heads: HeadMap
    key_frame: Frame
    value_frame: Frame
    value_run: int
    value_channels: int
    elements: Ints
    keys_alike: bool = True

    @classmethod
    def of(cls, layout: Layout) -> ChunkMap:
        """The map of a model on a device."""
        heads = HeadMap.of(layout)
        elements = np.arange(layout.value_subblocks) * layout.device.banks
        frame, run = heads.key_frame, layout.keys_per_row
        return cls(layout, heads, frame, frame, run, 1, elements)

    def keys(self, held: Holdings, request: Ints, group: Ints) -> Spots:
        """See `Map`."""
        return self.heads.keys(held, request, group)

    def values(self, held: Holdings, request: Ints, group: Ints) -> Spots:
        """See `Map`."""
        run, place = np.divmod(group, self.value_run)
        chunk, channel = np.divmod(run, self.layout.channels_per_head)
        row = held.values.at(request, chunk)
        burst = np.arange(len(self.elements)) * self.value_run + place[:, None]
        every = channel[:, None, None], row[:, None, None], burst[:, None, :]
        return Spots(*every)


def pimphony(chunk: Chunk = "row") -> System:
    """PIMphony. Raises ConfigError.

    chunk: "row", one row of all channels, Values in groups of chunks so that a sum runs
    over whole rows (the favourable reading); "in_row", the same with all of a token's
    Values in one chunk; "channel", 32 rows of one channel, of which a request takes one
    in every channel of every head at a time.
    """
    choice("pimphony", "chunk", chunk, ("row", "in_row", "channel"))

    def make(device: DeviceConfig, model: ModelConfig) -> RowMemory:
        if chunk != "in_row":
            rows = 1 if chunk == "row" else device.channels
            return head_memory("pimphony", device, model, units=rows)
        layout = shape_of("pimphony", device, model)
        at = ChunkMap.of(layout)
        unit = Unit(1, at.heads.key_row_tokens)
        return RowMemory.of_rows("pimphony", device, model, at, (unit, unit))

    return System("pimphony", DECLARATION, {"chunk": chunk}, make)
