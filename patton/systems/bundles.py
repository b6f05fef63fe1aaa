"""Bundles: several heads side by side in the banks, for an outer-product unit.

Keys lie as in `HeadMap`. A bundle of heads shares the channels of all of them; groups
of sixteen tokens take these channels in turn and then the columns of a row, each token
in whole bursts.
"""

from __future__ import annotations

import attrs
import numpy as np

from patton.commands import Frame
from patton.layout import Layout
from patton.steps import Ints
from patton.systems.maps import HeadMap, Holdings, Spots
from patton.systems.outer import OuterUnit
from patton.systems.rows import Unit


@attrs.frozen(eq=False)
class BundleMap:
    """Keys by head, Values by bundle. value_frame: of streams that write Values."""

    layout: Layout
    unit: OuterUnit
    heads: HeadMap
    key_frame: Frame
    value_frame: Frame
    keys_alike: bool = True

    @classmethod
    def of(cls, name: str, layout: Layout, token_bursts: int) -> BundleMap:
        """The map of a model on a device. Raises DeviceConfigError."""
        unit = OuterUnit.of(name, layout, token_bursts)
        heads = HeadMap.of(layout)
        frame = attrs.evolve(
            heads.key_frame,
            heads=layout.model.kv_heads // unit.parts,
            groups=layout.groups // unit.parts,
            channels_per_head=layout.channels_per_head * unit.parts,
        )
        return cls(layout, unit, heads, heads.key_frame, frame)

    @property
    def product_frame(self) -> Frame:
        """Of SV streams: an output of a bundle is those of its heads, one by one."""
        head_dim = self.value_frame.head_dim * self.unit.parts
        return attrs.evolve(self.value_frame, head_dim=head_dim)

    @property
    def row_groups(self) -> int:
        """Groups of a row of one channel."""
        return self.unit.tokens_per_row // self.unit.lanes

    @property
    def value_unit(self) -> Unit:
        """A row of all channels of a bundle."""
        return Unit(1, self.value_frame.channels_per_head * self.unit.tokens_per_row)

    def keys(self, held: Holdings, request: Ints, group: Ints) -> Spots:
        """See `Map`."""
        return self.heads.keys(held, request, group)

    def tokens(self, held: Holdings, request: Ints, token: Ints) -> Spots:
        """Channel, row and first burst of the Values of tokens."""
        group, lane = np.divmod(token, self.unit.lanes)
        place, channel = np.divmod(group, self.value_frame.channels_per_head)
        local, place = np.divmod(place, self.row_groups)
        column = place * self.unit.lanes + lane
        row = held.values.at(request, local)
        return Spots(channel, row, column * self.unit.token_bursts)

    def first_weights(self, local: Ints) -> Ints:
        """Where the weights of a row are in the Global Buffer, which holds several."""
        return local % self.buffer_rows * self.unit.row_weights

    @property
    def buffer_rows(self) -> int:
        """Rows whose weights the Global Buffer holds at a time."""
        return self.unit.bursts_per_row // self.unit.row_weights
