"""CENT (ASPLOS 2025): static tensors of the longest context, one for each query.

From its code (Yufeng98/CENT, cent_simulation/TransformerBlock.py): a token's Keys of
all heads lie one after another in rows of one bank, tokens go over the banks of all
channels; Values lie by head and dimension, their dimensions over the channels of a
head, 1,024 tokens along a row.
"""

from __future__ import annotations

from typing import Literal

import attrs
import numpy as np

from patton.commands import Frame
from patton.config import DeviceConfig, ModelConfig
from patton.errors import DeviceConfigError
from patton.layout import Layout
from patton.steps import Ints
from patton.systems.maps import HeadMap, Holdings, Spots, shape_of, whole_frame
from patton.systems.rows import RowMemory, Unit
from patton.systems.system import Claim, Declaration, System, choice, positive

DECLARATION = Declaration(
    title="CENT",
    year=2025,
    owner="model",
    unit="a tensor of the longest context",
    mapping="code",
    claims=(
        Claim("code", "Key of token t in bank t mod all banks, heads along the rows"),
        Claim("code", "Values by head and dimension, rows reserved from the start"),
        Claim("inference", "dimensions over all channels of a head: its second map"),
        Claim("inference", "a tensor serves the next query when one has ended"),
        Claim("code", "4,096 tokens in its scripts"),
    ),
)


ValueLayout = Literal["spread", "channel"]


@attrs.frozen(eq=False)
class CentMap:
    """Keys over all channels, Values over those of their head, or in the first."""

    layout: Layout
    value_layout: ValueLayout
    heads: HeadMap
    key_frame: Frame
    value_frame: Frame
    value_run: int
    value_channels: int
    elements: Ints
    keys_alike: bool = True

    @classmethod
    def of(cls, layout: Layout, value_layout: ValueLayout) -> CentMap:
        """The map of a model on a device."""
        heads = HeadMap.of(layout)
        at = cls(
            layout=layout,
            value_layout=value_layout,
            heads=heads,
            key_frame=whole_frame(layout.device, layout.model),
            value_frame=heads.value_frame,
            value_run=heads.value_run,
            value_channels=heads.value_channels,
            elements=heads.elements,
        )
        if value_layout == "spread":
            return at
        elements = np.arange(layout.value_subblocks) * layout.device.banks
        return attrs.evolve(at, value_channels=1, elements=elements)

    @property
    def key_unit(self) -> Unit:
        """The rows of as many tokens as there are banks in all channels."""
        device, model = self.layout.device, self.layout.model
        rows = -(-model.kv_heads // self.layout.keys_per_row)
        return Unit(rows, device.channels * device.banks)

    def keys(self, held: Holdings, request: Ints, group: Ints) -> Spots:
        """See `Map`."""
        row, channel = np.divmod(group, self.layout.device.channels)
        heads = np.arange(self.layout.model.kv_heads)
        further, place = np.divmod(heads, self.layout.keys_per_row)
        local = row[:, None] * self.key_unit.rows + further
        return Spots(
            channel[:, None],
            held.keys.at(request[:, None], local),
            place[None] * self.layout.key_bursts,
        )

    @property
    def value_unit(self) -> Unit:
        """The rows of as many tokens as a row holds."""
        if self.value_layout == "spread":
            return Unit(self.layout.rows_per_value, self.heads.value_set_tokens)
        return Unit(len(self.elements), self.value_run * self.layout.device.lanes)

    def values(self, held: Holdings, request: Ints, group: Ints) -> Spots:
        """See `Map`."""
        if self.value_layout == "spread":
            return self.heads.values(held, request, group)
        page, burst = np.divmod(group[:, None, None], self.value_run)
        local = page * len(self.elements) + np.arange(len(self.elements))
        row = held.values.at(request[:, None, None], local)
        return Spots(np.array(0), row, burst)


def cent(max_context: int = 4096, value_layout: ValueLayout = "spread") -> System:
    """CENT with tensors of `max_context` tokens. Raises ConfigError.

    value_layout: "spread", dimensions over the channels of a head, its map for several
    devices, which leaves none idle; or "channel", its map for one device, all of a
    head's dimensions in one channel.
    """
    positive("cent", "max_context", max_context)
    choice("cent", "value_layout", value_layout, ("spread", "channel"))

    def make(device: DeviceConfig, model: ModelConfig) -> RowMemory:
        layout = shape_of("cent", device, model)
        if layout.folds > 1:  # Keys and Values of a plane then share no rows
            accepted = f"{model.kv_heads} or more, one for each Key head"
            raise DeviceConfigError("cent", "channels", device.channels, accepted)
        at = CentMap.of(layout, value_layout)
        return RowMemory.of_rows(
            "cent",
            device,
            model,
            at,
            (at.key_unit, at.value_unit),
            reserved=max_context,
        )

    options = {"max_context": max_context, "value_layout": value_layout}
    return System("cent", DECLARATION, options, make)
