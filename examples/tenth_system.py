"""A system that is not in the table: Values that stay where they are written first.

PATTON stages a block of Values in one row and moves it when it is full (the paper's
Case R, then Case Ch to C). What if it stayed? A token is then always written to one
row, and nothing is ever copied, but a sum ends with each block. All that this takes is
a map, a memory that says how rows are taken, and a declaration; streams, counts,
proofs, timing and a row of Table 1 follow. Run it: it prints what the idea costs.
"""

from __future__ import annotations

import attrs
import numpy as np

from patton.commands import Frame
from patton.config import DeviceConfig, ModelConfig, aim_gddr6, model_preset
from patton.device.aim import Target, stream_cost
from patton.layout import Layout
from patton.steps import Ints, Step
from patton.systems import (
    Claim,
    Declaration,
    Memory,
    System,
    TermValidator,
    system,
)
from patton.systems.maps import HeadMap, Holdings, Spots, shape_of
from patton.systems.rows import RowMemory, Unit
from patton.systems.table import row


@attrs.frozen(eq=False)
class StayingMap:
    """Keys as the paper has them; a block's Values side by side in one row.

    A group of sixteen tokens is one burst for each sixteen elements of a head. Groups
    take the channels of the head in turn, then the columns of a row.
    """

    layout: Layout
    heads: HeadMap  # where Keys lie: the map that most systems share
    key_frame: Frame  # how streams cover a layer: here each head has its channels
    value_frame: Frame
    elements: Ints  # the first element of each piece of a Value
    keys_alike: bool = True  # Keys are in the same rows of all channels of a head
    value_run: int = 1  # no two groups are side by side, so that no sum goes on
    value_channels: int = 1  # a piece lies in one channel

    @classmethod
    def of(cls, layout: Layout) -> StayingMap:
        """For a model on a device."""
        heads = HeadMap.of(layout)
        elements = np.arange(layout.value_subblocks) * layout.device.banks
        return cls(layout, heads, heads.key_frame, heads.key_frame, elements)

    @property
    def row_groups(self) -> int:
        """Groups of a row of one channel."""
        return self.layout.device.bursts_per_row // len(self.elements)

    def keys(self, held: Holdings, request: Ints, group: Ints) -> Spots:
        """Where Keys of groups lie: [groups, 1], as a frame head is one head."""
        return self.heads.keys(held, request, group)

    def values(self, held: Holdings, request: Ints, group: Ints) -> Spots:
        """Where Values of groups lie: [groups, 1, pieces]."""
        place, channel = np.divmod(group, self.layout.channels_per_head)
        local, slot = np.divmod(place, self.row_groups)
        burst = slot[:, None] * len(self.elements) + np.arange(len(self.elements))
        owned = held.values.at(request, local)  # the request's own rows
        return Spots(channel[:, None, None], owned[:, None, None], burst[:, None, :])


def make(device: DeviceConfig, model: ModelConfig) -> RowMemory:
    """Rows on demand, one for Keys and one for Values at a time."""
    at = StayingMap.of(shape_of("staying", device, model))
    tokens = at.row_groups * device.banks * at.layout.channels_per_head
    units = Unit(1, at.heads.key_row_tokens), Unit(1, tokens)
    return RowMemory.of_rows("staying", device, model, at, units)


STAYING = System(
    name="staying",
    declaration=Declaration(
        title="Staying",
        year=2026,
        owner="request",
        unit="a row of the channels of a head",
        mapping="code",
        claims=(Claim("inference", "a block of Values is never moved"),),
    ),
    options={},
    make=make,
)


def decode(memory: Memory, requests: int, tokens: int) -> None:
    """Prove and price the step in which each of some requests adds a token."""
    size = memory.block_tokens
    ids = iter(range(memory.blocks))
    prefill = Step()
    for request in range(requests):
        blocks = [next(ids) for _ in range(-(-(tokens + 1) // size))]
        prefill.grants = [*prefill.grants, (request, [], blocks)]
        prefill.writes = [*prefill.writes, (request, 0, tokens)]
    validator = TermValidator.of(memory)
    placed = memory.apply(prefill)
    validator.check_step(prefill, placed.requests, placed.streams().present())
    memory.publish(placed)
    step = Step(
        writes=[(request, tokens, 1) for request in range(requests)],
        reads=[(request, 0, tokens + 1) for request in range(requests)],
    )
    placed = memory.apply(step)
    streams = placed.streams().present()
    validator.check_step(step, placed.requests, streams)  # every term, each once
    target = Target(variant="pin", host="port-per-channel")
    for stream in streams:
        counts, cost = placed.counts()[stream.phase], stream_cost(stream, target)
        print(
            f"  {stream.phase:12} {cost.cycles:6} cycles {counts.activations:6g} rows"
            f" opened {sum(cost.energy_pj.values()) / 1e6:7.1f} uJ"
        )


if __name__ == "__main__":
    for candidate in (STAYING, system("patton"), system("pimphony")):
        print(f"{candidate.declaration.title}: {row(candidate)}")
        decode(candidate.on(aim_gddr6(), model_preset("llama3-8b")), 4, 300)
