"""The cells of the map: granules, slots, free places and the borders of pairs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property

import attrs

from patton.cli.picture import colours
from patton.cli.picture.chart import Band, Chart
from patton.cli.picture.footprint import Footprints
from patton.cli.picture.occupancy import Held, Occupancy
from patton.cli.picture.shapes import Box, Fill, Shape
from patton.locate import regions
from patton.steps import Request


@attrs.define(eq=False)
class Cells:
    """What lies where in the picture; numbers: of the running requests, by age."""

    occupancy: Occupancy
    footprints: Footprints
    chart: Chart
    numbers: dict[Request, int]

    @classmethod
    def of(cls, occupancy: Occupancy, footprints: Footprints) -> Cells:
        """Cells on a chart of the rows that hold something."""
        layout = occupancy.layout
        pairs = occupancy.used_pairs
        size = layout.pair_blocks
        granules = [p * size + place for p in pairs for place in range(size)]
        slots = [
            held.placement.slot
            for held in occupancy.held.values()
            if held.placement.slot is not None
        ]
        bands = []
        for region in regions(layout):
            if region.kind is not None and region.rows:
                indices = slots if region.kind == "slot" else granules
                unit = layout.rows_per_value if region.kind == "value" else 1
                rows = footprints.rows(region.kind, indices)
                bands.append(Band.of(region, rows, unit))
        numbers = {request: n for n, request in enumerate(occupancy.tokens)}
        return cls(occupancy, footprints, Chart.of(layout, tuple(bands)), numbers)

    @cached_property
    def granules(self) -> list[int]:
        """The granules that are in the picture, at least in part."""
        found: set[int] = set()
        for band in self.chart.bands:
            if band.region.kind in {"key", "value"}:
                found |= self.footprints.granules_on(band.region.kind, band.rows)
        return sorted(found)

    @cached_property
    def pairs(self) -> list[int]:
        """Their pairs."""
        return sorted({self.occupancy.layout.pair_of(g) for g in self.granules})

    # --- granules -----------------------------------------------------------------

    def free_places(self) -> Iterator[Shape]:
        """Places without a block of pairs that have one; an owner's in its tint."""
        places: dict[Request | None, list[Box]] = {}
        for granule in self.granules:
            pair = self.occupancy.layout.pair_of(granule)
            if granule not in self.occupancy.held and pair in self.occupancy.used_pairs:
                owner = self.occupancy.owner_of(granule)
                places.setdefault(owner, []).extend(self._boxes(granule))
        edge_width = 1 if self._has_edges else 0.25
        for owner, boxes in places.items():
            if owner is None:
                yield Shape(_outlines(boxes), None, colours.FAINT, edge_width)
            else:
                tint = colours.pale(self._colour((owner,)), colours.TINT)
                tip = f"free place of a pair that request {owner} owns"
                yield Shape(_cells(boxes), tint, tip=tip, owners=(str(owner),))

    def blocks(self) -> Iterator[Shape]:
        """The blocks, Key and Value as one shape; partial ones filled from below."""
        block_tokens = self.occupancy.layout.block_tokens
        for granule in self.granules:
            held = self.occupancy.held.get(granule)
            if held is None:
                continue
            key, value = self._key(granule), self._value(granule)
            part = held.placement.written / block_tokens
            in_slot = held.placement.slot is not None
            fill, words = self._fill(held), self._words(held)
            owners = tuple(map(str, held.requests))
            if part == 1 and not in_slot:
                yield Shape(_cells(key + value), fill, tip=words, owners=owners)
                continue
            yield self._reserved(_outlines(key + value), held)
            filled = key if in_slot else key + value
            levels = tuple(box.lowest(part) for box in _cells(filled))
            yield Shape(levels, fill, tip=words, owners=owners)

    def borders(self) -> Iterator[Shape]:
        """Outlines of pairs: free, without an owner, owned; the strongest on top."""
        owner, used = self.occupancy.owner, self.occupancy.used_pairs
        free = [pair for pair in self.pairs if pair not in used]
        unowned = [p for p in self.pairs if p in used and owner[p] is None]
        owned = [pair for pair in self.pairs if owner[pair] is not None]
        for pairs, colour, width in (
            (free, colours.FAINT, 0.75),
            (unowned, colours.UNOWNED_BORDER, 1.25),
            (owned, colours.OWNED_BORDER, 1.25),
        ):
            areas = [self.footprints.pair_areas(pair) for pair in pairs]
            boxes = tuple(box for area in areas for box in self.chart.boxes(area))
            yield Shape(boxes, None, colour, width)

    # --- the Commit Zone ----------------------------------------------------------

    def slots(self) -> Iterator[Shape]:
        """All slots in the picture, those that hold a block filled."""
        layout = self.occupancy.layout
        every = {
            slot: self.chart.boxes(self.footprints.areas("slot", slot))
            for slot in range(layout.slots * layout.stripes)
        }
        boxes = tuple(box for boxes in every.values() for box in boxes)
        yield Shape(_cells(boxes), colours.FREE_SLOT)
        for held in self.occupancy.held.values():
            slot = held.placement.slot
            if slot is None:
                continue
            words, owners = self._words(held), tuple(map(str, held.requests))
            part = held.placement.written / layout.block_tokens
            yield self._reserved(_outlines(every[slot]), held)
            levels = tuple(box.lowest(part) for box in _cells(every[slot]))
            yield Shape(levels, self._fill(held), tip=words, owners=owners)

    # --- looks --------------------------------------------------------------------

    def _key(self, granule: int) -> tuple[Box, ...]:
        return self.chart.boxes(self.footprints.areas("key", granule))

    def _value(self, granule: int) -> tuple[Box, ...]:
        return self.chart.boxes(self.footprints.areas("value", granule))

    def _boxes(self, granule: int) -> tuple[Box, ...]:
        return self._key(granule) + self._value(granule)

    def _colour(self, requests: tuple[Request, ...]) -> str:
        """Of what these requests hold, as a plain colour."""
        if len(requests) == 1:
            return colours.of_request(self.numbers[requests[0]])
        return colours.SHARED if requests else colours.QUIET

    def _reserved(self, boxes: tuple[Box, ...], held: Held) -> Shape:
        """What a block will fill: an outline, or a tint where that would be all."""
        colour, edge = self._colour(held.requests), None
        ground = colours.pale(colour, 2 * colours.TINT)
        if self._has_edges:
            ground, edge = colours.GROUND, colour
        owners = tuple(map(str, held.requests))
        return Shape(boxes, ground, edge, tip=self._words(held), owners=owners)

    @property
    def _has_edges(self) -> bool:
        return self.chart.burst_width * self.footprints.layout.value_width >= 3

    def _fill(self, held: Held) -> Fill:
        return self._colour(held.requests) if held.requests else colours.CACHED

    def _words(self, held: Held) -> str:
        """What a cell is, for who points at it."""
        layout, placement = self.occupancy.layout, held.placement
        pair = layout.pair_of(placement.granule)
        place = placement.granule - pair * layout.pair_blocks
        names = ", ".join(map(str, held.requests))
        holders = f"of request {names}" if names else "cached"
        if len(held.requests) > 1:
            holders = f"shared by requests {names}"
        lines = [
            f"granule {placement.granule}: place {place} of pair {pair}",
            f"block {placement.block}, {holders}",
        ]
        if placement.written < layout.block_tokens:
            lines.append(f"{placement.written} of {layout.block_tokens} tokens written")
        if placement.slot is not None:
            lines.append(f"Value in Commit Zone slot {placement.slot}")
        return "\n".join(lines)


def _cells(boxes: Iterable[Box]) -> tuple[Box, ...]:
    """The boxes with a gap to their right and lower neighbours, if they are wide.

    On one side only, so that edges fall between pixels and colours stay whole.
    """
    gaps = [(box, min(1, box.width / 4)) for box in boxes]
    return tuple(Box(b.x, b.y, b.width - gap, b.height - gap) for b, gap in gaps)


def _outlines(boxes: Iterable[Box]) -> tuple[Box, ...]:
    """Where a line of one pixel goes to lie just inside of each cell."""
    return tuple(box.inset(min(0.5, box.width / 6)) for box in _cells(boxes))
