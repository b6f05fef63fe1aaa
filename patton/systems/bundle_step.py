"""Steps and memories of systems with an outer-product unit."""

from __future__ import annotations

import attrs
import numpy as np

from patton.commands import Axes, CommandStream, Loads, Op, Phase, ResultTable, Strides
from patton.config import DeviceConfig, ModelConfig
from patton.generate.ragged import changes, lengths, offsets, owners, ranges
from patton.generate.rectangles import Rectangles
from patton.systems.bundle_products import Emitter, Stretches, activations
from patton.systems.bundles import BundleMap
from patton.systems.maps import Spots, shape_of
from patton.systems.outer import OuterDevice, OuterUnit
from patton.systems.placed import MappedStep
from patton.systems.rows import RowMemory, Unit
from patton.systems.system import Counts
from patton.systems.writes import Pieces, Segments, burst_counts, rectangles_of


@attrs.frozen(eq=False, kw_only=True)
class BundleStep(MappedStep):
    """A `MappedStep` whose Values are for an outer-product unit."""

    map: BundleMap

    # --- writes -------------------------------------------------------------------

    def _value_rectangles(self, segments: Segments) -> Rectangles:
        """A rectangle for each token and part: all bursts of its Value."""
        at, unit = self.map, self.map.unit
        pieces = Pieces.of(segments, 1)
        spots = at.tokens(self.held, pieces.request, pieces.group)
        part = np.arange(unit.parts)
        return rectangles_of(
            Spots(*(column[:, None] for column in spots)),
            channels=1,
            bank=part * unit.banks_per_head,
            banks=np.array(unit.banks_per_head),
            count=np.array(unit.token_bursts),
            reference=pieces.token[:, None] + pieces.total * part,
            element=np.array(0),
            lanes=np.array(2**unit.lanes - 1, np.uint64),
        )

    def _values(self, segments: Segments, op: Op, phase: Phase) -> CommandStream | None:
        if not len(segments.request):
            return None
        unit, frame = self.map.unit, self.map.value_frame
        bank = unit.token_bursts * unit.lanes
        axes = Axes(Strides(0, 0, 0, 0), Strides(0, bank, unit.lanes, 1))
        rectangles = self._value_rectangles(segments)
        return self._bursts(frame, segments)(rectangles, op, phase=phase, axes=axes)

    def _value_counts(self, segments: Segments) -> Counts:
        rectangles = self._value_rectangles(segments)
        return burst_counts(rectangles, self.map.value_frame, self.device.burst_bytes)

    # --- products -----------------------------------------------------------------

    def _stretches(self) -> Stretches:
        at, reads, unit = self.map, self.reads, self.map.unit
        first, last = reads.start // unit.lanes, (reads.end - 1) // unit.lanes
        query, group = owners(last + 1 - first), ranges(first, last + 1 - first)
        token = group * unit.lanes
        low = np.maximum(token, reads.start[query])
        high = np.minimum(token + unit.lanes, reads.end[query])
        spots = at.tokens(self.held, reads.request[query], low)
        channels = at.value_frame.channels_per_head
        local, place = np.divmod(group // channels, at.row_groups)
        order = np.lexsort((place, spots.channel, local, query))
        starts = changes(query[order], local[order], spots.channel[order])
        head, groups = order[starts], lengths(starts, len(order))
        seen = np.add.reduceat((high - low)[order], starts) if len(order) else order
        return Stretches(
            query=query[head],
            local=local[head],
            channel=spots.channel[head],
            row=spots.row[head],
            group=place[head],
            groups=groups,
            burst=spots.burst[head],
            count=seen * unit.token_bursts,
        )

    def _weighted(self) -> CommandStream | None:
        if not len(self.reads.request):
            return None
        found, spread = self._stretches(), self.map.unit.parts
        emitter = Emitter(self.map, self.map.value_frame.heads_per_kv, found)
        queries = len(self.reads.request)
        columns = emitter.columns(queries)
        registers = np.arange(self.map.unit.registers)
        return CommandStream(
            phase=Phase.SV,
            step=self.step,
            frame=self.map.product_frame,
            loads=self._weight_loads(found, queries),
            results=ResultTable(
                query=np.arange(queries).repeat(len(registers)),
                origin=np.tile(registers, queries),
                channel_stride=0,
                bank_stride=len(registers),
            ),
            queries=self.reads.queries(spread),
            **columns,
        )

    def _weight_loads(self, found: Stretches, queries: int) -> Loads:
        """A pattern for each part and stretch: the weights of its groups."""
        at, unit = self.map, self.map.unit
        channels, parts = at.value_frame.channels_per_head, unit.parts
        owner = owners(found.groups)
        place = ranges(found.group, found.groups)
        group = (found.local[owner] * at.row_groups + place) * channels
        position = (group + found.channel[owner]) * unit.lanes
        part = np.arange(parts)[:, None]
        burst = at.first_weights(found.local)[owner] + place
        burst = burst + part * at.row_groups
        return Loads(
            query=(found.query + queries * part).ravel(),
            ptr=offsets(np.tile(found.groups, parts)),
            burst=burst.ravel(),
            count=np.ones(burst.size, np.int64),
            origin=np.tile(position, parts),
        )

    def _weighted_counts(self) -> Counts:
        found, frame = self._stretches(), self.map.value_frame
        unit, heads = self.map.unit, frame.heads_per_kv
        wide, size = frame.heads, self.device.burst_bytes
        visits = np.lexsort((found.local, found.channel, found.query))
        starts = changes(found.query[visits], found.channel[visits])
        rows = lengths(starts, len(visits))
        results = heads * len(starts) * unit.registers
        loaded = heads * int(found.groups.sum()) * unit.parts
        return Counts(
            activations=float(activations(found, visits, starts, rows, heads) * wide),
            macs=heads * int(found.count.sum()) * wide,
            bytes=(loaded + 2 * results) * wide * size,
        )


@attrs.define(eq=False, kw_only=True)
class BundleMemory(RowMemory):
    """Rows for an outer-product unit."""

    map: BundleMap
    step_type: type[MappedStep] = BundleStep

    @classmethod
    def for_model(
        cls,
        name: str,
        device: DeviceConfig,
        model: ModelConfig,
        *,
        token_bursts: int,
        reserved: int | None = None,
    ) -> BundleMemory:
        """A memory of a device with the unit; reserved: see `RowMemory`.

        Raises LayoutError, DeviceConfigError.
        """
        layout = shape_of(name, device, model)
        at = BundleMap.of(name, layout, token_bursts)
        keys = Unit(1, at.heads.key_row_tokens)
        return cls.of_rows(
            name,
            at.unit.modified(device),
            model,
            at,
            (keys, at.value_unit),
            reserved=reserved,
        )

    @property
    def unit(self) -> OuterUnit:
        """For sums of outer products."""
        return self.map.unit

    def executor(self) -> OuterDevice:
        """A modified device."""
        return OuterDevice(self.device, self.map.unit)
