"""NeuPIMs (ASPLOS 2024): a request lives in one channel and grows there page by page.

From its code (casys-kaist/NeuPIMs, KVCacheAllocator and PIMTensor): Keys take rows for
as many tokens as there are banks, all heads of a token one after another; Values take
rows for a whole row of tokens at once, one for every sixteen elements of every head.
The channel is the one with the least estimated attention latency that has room.
"""

from __future__ import annotations

from collections.abc import Iterable

import attrs
import numpy as np

from patton.commands import Frame
from patton.config import DeviceConfig, ModelConfig
from patton.errors import DeviceConfigError
from patton.layout import Layout
from patton.steps import Ints
from patton.systems.maps import Holdings, Spots, shape_of, whole_frame
from patton.systems.rows import RowMemory, Unit
from patton.systems.system import Claim, Declaration, System, positive

# Of its estimate, in cycles: to load a vector, and for a row of products.
LOAD_CYCLES, ROW_CYCLES = 100, 184

DECLARATION = Declaration(
    title="NeuPIMs",
    year=2024,
    owner="request",
    unit="rows of one channel: Keys 16 tokens, Values 1,024",
    mapping="code",
    claims=(
        Claim("code", "a request in one channel, chosen by estimated latency"),
        Claim("code", "heads of a token along Key rows; dimensions of Values in rows"),
        Claim("inference", "a token's Values are written element by element, 64 rows"),
        Claim("inference", "rows are freed at the end; the code has no release"),
        Claim("inference", "a request too long for a channel has several, by heads"),
        Claim("inference", "several query heads take turns in the open Key row"),
        Claim("inference", "no dual row buffer: AiM has none"),
    ),
)


@attrs.frozen(eq=False)
class NeupimsMap:
    """All heads of a request in its channels, `span` of them from its domain on."""

    layout: Layout
    span: int
    key_frame: Frame
    value_frame: Frame
    value_run: int
    value_channels: int
    elements: Ints
    keys_alike: bool = False

    @classmethod
    def of(cls, layout: Layout, span: int) -> NeupimsMap:
        """Heads are divided among the `span` channels of a request."""
        frame = whole_frame(layout.device, layout.model)
        elements = np.arange(layout.value_subblocks) * layout.device.banks
        run = layout.device.bursts_per_row
        return cls(layout, span, frame, frame, run, 1, elements)

    @property
    def heads(self) -> int:
        """Heads of a request in one channel."""
        return self.layout.model.kv_heads // self.span

    @property
    def key_unit(self) -> Unit:
        """The rows of as many tokens as there are banks."""
        return Unit(
            -(-self.heads // self.layout.keys_per_row), self.layout.device.banks
        )

    @property
    def value_unit(self) -> Unit:
        """A row for every sixteen elements of every head."""
        tokens = self.value_run * self.layout.device.lanes
        return Unit(self.heads * len(self.elements), tokens)

    def holds(self, tokens: int) -> bool:
        """Whether a request of so many tokens fits its channels."""
        rows = self.key_unit.rows_for(tokens) + self.value_unit.rows_for(tokens)
        return rows <= self.key_frame.rows_per_plane

    def keys(self, held: Holdings, request: Ints, group: Ints) -> Spots:
        """See `Map`."""
        channel, head = self._heads()
        further, place = np.divmod(head, self.layout.keys_per_row)
        local = group[:, None] * self.key_unit.rows + further
        return Spots(
            held.domain[request][:, None] + channel,
            held.keys.at(request[:, None], local),
            place[None] * self.layout.key_bursts,
        )

    def values(self, held: Holdings, request: Ints, group: Ints) -> Spots:
        """See `Map`."""
        channel, head = self._heads()
        page, burst = np.divmod(group, self.value_run)
        piece = np.arange(len(self.elements))
        row = head[:, None] * len(piece) + piece
        local = page[:, None, None] * self.value_unit.rows + row
        return Spots(
            (held.domain[request][:, None] + channel)[:, :, None],
            held.values.at(request[:, None, None], local),
            burst[:, None, None],
        )

    def _heads(self) -> tuple[Ints, Ints]:
        """Channel and place there of every head."""
        channel, head = np.divmod(np.arange(self.layout.model.kv_heads), self.heads)
        return channel, head


@attrs.define(eq=False, kw_only=True)
class NeupimsMemory(RowMemory):
    """Rows of the channel with the least estimated latency of attention."""

    def choose(self, domains: Iterable[int]) -> int:
        """See `RowMemory`."""
        load = [0] * len(self.domains)
        for owner in self.requests.values():
            load[owner.domain] += self.latency(len(owner.blocks) * self.block_tokens)
        return min(domains, key=lambda domain: (load[domain], domain))

    def latency(self, tokens: int) -> int:
        """Estimated cycles of a request's attention, as NeuPIMs' scheduler does it."""
        device, model = self.device, self.model
        row = device.bursts_per_row * device.lanes
        heads = model.kv_heads
        key_chunks = -(-heads * model.head_dim // row)
        key_rows = -(-tokens // device.banks)
        value_chunks = -(-tokens // row)
        value_rows = heads * -(-model.head_dim // device.banks)
        return key_chunks * (LOAD_CYCLES + key_rows * ROW_CYCLES) + value_chunks * (
            heads * LOAD_CYCLES + value_rows * ROW_CYCLES
        )


def neupims(max_context: int = 2048, channels_per_request: int | None = None) -> System:
    """NeuPIMs. Raises ConfigError.

    channels_per_request: None for the fewest that hold `max_context` tokens of the
    model (the paper's 2,048 do not fit one channel where every query head has its own
    Key head); 1 is the published form, and cuts the context instead.
    """
    positive("neupims", "max_context", max_context)
    if channels_per_request is not None:
        positive("neupims", "channels_per_request", channels_per_request)

    def make(device: DeviceConfig, model: ModelConfig) -> NeupimsMemory:
        layout = shape_of("neupims", device, model)
        spans = _spans(layout)
        if channels_per_request is None:
            maps = (NeupimsMap.of(layout, span) for span in spans)
            at = next((m for m in maps if m.holds(max_context)), None)
            span = spans[-1] if at is None else at.span
        elif channels_per_request in spans:
            span = channels_per_request
        else:
            name, accepted = "channels_per_request", "one of " + _listed(spans)
            raise DeviceConfigError("neupims", name, channels_per_request, accepted)
        at = NeupimsMap.of(layout, span)
        return NeupimsMemory.of_rows(
            "neupims",
            device,
            model,
            at,
            (at.key_unit, at.value_unit),
            longest=max_context,
            domains=tuple(range(0, device.channels, span)),
        )

    options = {
        "max_context": max_context,
        "channels_per_request": channels_per_request,
    }
    return System("neupims", DECLARATION, options, make)


def _spans(layout: Layout) -> list[int]:
    """Numbers of channels that divide heads and channels evenly."""
    heads, channels = layout.model.kv_heads, layout.device.channels
    return [n for n in range(1, channels + 1) if heads % n == channels % n == 0]


def _listed(numbers: list[int]) -> str:
    return ", ".join(map(str, numbers))
