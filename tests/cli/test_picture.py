from __future__ import annotations

from collections import Counter
from typing import Any

import attrs
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from patton.addresses import Address
from patton.cli.picture import colours
from patton.cli.picture.cells import Cells
from patton.cli.picture.chart import ROWS_MOST, Band, Chart
from patton.cli.picture.footprint import Area, Footprints
from patton.cli.picture.memory_map import memory_map
from patton.cli.picture.occupancy import Occupancy
from patton.cli.picture.shapes import Box, Hatch, Label, Picture, Shape
from patton.cli.picture.svg import to_svg
from patton.config import MODEL_PRESETS, aim_gddr6
from patton.errors import LayoutError
from patton.layout import Kind, Layout
from patton.locate import Region, first_row, locate
from patton.runtime import Runtime
from tests.cli.hand_made import PARTIAL_TOKENS, every_kind, parsed
from tests.core.driver import RandomEngine
from tests.core.strategies import address_counts, layouts, random_layout

KINDS: tuple[Kind, ...] = ("key", "value", "slot")
SVG = "{http://www.w3.org/2000/svg}"


def small_layouts(most_lanes: int) -> list[Layout]:
    drawn = [random_layout(np.random.default_rng(seed)) for seed in range(120)]
    return [x for x in drawn if np.prod(address_counts(x.device)) <= most_lanes]


def bursts_of(area: Area) -> list[tuple[int, int, int]]:
    rows = range(area.first_row, area.last_row + 1)
    bursts = range(area.burst, area.end)
    return [(area.channel, row, burst) for row in rows for burst in bursts]


@pytest.mark.parametrize("layout", small_layouts(3_000), ids=lambda _: "random")
def test_footprints_are_what_the_addresses_say(layout: Layout) -> None:
    """Each burst with an element or padding of a granule is in its areas; no other."""
    model = layout.model
    layer, head = model.layers - 1, model.kv_heads - 1
    row, channel = first_row(layout, layer, head), head % layout.groups
    channel *= layout.channels_per_head
    placed: dict[tuple[Kind, int], set[tuple[int, int, int]]] = {}
    channels, banks, rows, bursts, lanes = address_counts(layout.device)
    for at in np.ndindex(channels, banks, rows, bursts, lanes):
        found = locate(layout, Address(*at))
        if found.kind is not None and found.element is not None:
            where = found.element
            if (where.layer, where.head) == (layer, head):
                spot = (at[0] - channel, at[2] - row, at[3])
                placed.setdefault((found.kind, where.index), set()).add(spot)
    footprints = Footprints(layout, layer, head)

    assert 2 * layout.granules + layout.slots * layout.stripes == len(placed)
    for (kind, index), expected in placed.items():
        areas = footprints.areas(kind, index)
        spots = [spot for area in areas for spot in bursts_of(area)]
        assert len(spots) == len(set(spots))
        assert expected == set(spots)
        assert {spot[1] for spot in spots} == footprints.rows(kind, [index])


@given(layouts())
def test_rows_know_their_granules(layout: Layout) -> None:
    """Asked for the granules on a row, footprints name all that have an area there."""
    footprints = Footprints(layout, 0, 0)
    for kind in KINDS[:2]:
        row = min(footprints.rows(kind, [layout.granules - 1]))
        on_row = {
            granule
            for granule in range(layout.granules)
            if row in footprints.rows(kind, [granule])
        }

        assert on_row <= footprints.granules_on(kind, [row])


@given(layouts())
def test_a_pair_is_outlined_by_its_granules(layout: Layout) -> None:
    """The areas of a pair cover those of its granules and nothing more."""
    footprints = Footprints(layout, 0, 0)
    pair = layout.pairs - 1
    granules = range(pair * layout.pair_blocks, layout.granules)
    parts = [area for kind in KINDS[:2] for g in granules
             for area in footprints.areas(kind, g)]  # fmt: skip
    outline = footprints.pair_areas(pair)

    assert {spot for area in parts for spot in bursts_of(area)} == {
        spot for area in outline for spot in bursts_of(area)
    }


def random_runtime(seed: int, steps: int) -> Runtime:
    rng = np.random.default_rng(seed)
    engine = RandomEngine(Runtime.of(random_layout(rng)), rng, publish_always=True)
    for _ in range(steps):
        engine.step()
    return engine.runtime


@pytest.mark.parametrize("seed", range(25))
def test_any_state_of_any_layout_can_be_drawn(seed: int) -> None:
    """Nothing lies outside the picture, everything has an extent, the XML is sound."""
    runtime = random_runtime(seed, steps=12)
    model = runtime.layout.model
    picture = memory_map(
        Occupancy.of(runtime), layer=model.layers - 1, head=model.kv_heads - 1
    )

    parsed(to_svg(picture))
    for item in picture.items:
        if isinstance(item, Label):
            assert 0 <= item.x <= picture.width
            assert 0 <= item.y <= picture.height
            continue
        for box in item.boxes:
            assert 0 <= box.x
            assert 0 <= box.y
            assert box.x + box.width <= picture.width
            assert box.y + box.height <= picture.height
            assert 0 < box.width
            assert 0 <= box.height


@pytest.mark.parametrize("seed", range(25, 40))
def test_counts_add_up(seed: int) -> None:
    """The two lines of counts agree with the runtime."""
    runtime = random_runtime(seed, steps=12)
    layout, occupancy = runtime.layout, Occupancy.of(runtime)
    granules, pairs = occupancy.words()
    bound = len(list(runtime.placements.bound_blocks()))
    slots = layout.slots * layout.stripes - runtime.placements.zone.free_count()

    assert granules.endswith(f" {layout.granules - bound:,} free.")
    assert f", {runtime.free_pairs:,} free. " in pairs
    assert pairs.endswith(f", of which {slots:,} hold a block.")


def shapes_of(picture: Picture, block: int) -> list[Shape]:
    return [
        item
        for item in picture.items
        if isinstance(item, Shape) and f"\nblock {block}, " in item.tip
    ]


def picture_of(runtime: Runtime, **options: Any) -> Picture:
    return memory_map(Occupancy.of(runtime), **options)


ANN, BOB, DAN = (colours.of_request(number) for number in range(3))


def test_colours_tell_who_holds_a_block() -> None:
    """One request has its colour, several have the shared one, cache is hatched."""
    picture = picture_of(every_kind())
    fills = {block: shapes_of(picture, block)[-1].fill for block in range(6)}

    assert {
        0: colours.SHARED,
        1: ANN,
        2: BOB,
        3: colours.CACHED,
        4: colours.CACHED,
        5: DAN,
    } == fills


def test_tips_say_what_a_cell_is() -> None:
    """Who points at a cell reads granule, block, holders, tokens and slot."""
    picture = picture_of(every_kind())

    assert [
        ["granule 64: place 0 of pair 4", "block 0, shared by requests ann, bob"],
        [
            "granule 65: place 1 of pair 4",
            "block 1, of request ann",
            "5 of 16 tokens written",
            "Value in Commit Zone slot 0",
        ],
        ["granule 80: place 0 of pair 5", "block 2, of request bob"],
        ["granule 0: place 0 of pair 0", "block 3, cached"],
    ] == [shapes_of(picture, n)[0].tip.splitlines() for n in range(4)]
    assert ("ann", "bob") == shapes_of(picture, 0)[0].owners
    assert () == shapes_of(picture, 3)[0].owners


def test_a_full_block_is_one_shape() -> None:
    """Key in one channel and Value in all four of the head."""
    (shape,) = shapes_of(picture_of(every_kind()), 2)

    assert 1 + 4 == len(shape.boxes)


def test_a_partial_block_in_a_slot() -> None:
    """Its granules are outlined, its Key and its slot are filled to its tokens."""
    outline, key, slot, value = shapes_of(picture_of(every_kind()), 1)

    assert (colours.GROUND, ANN, 1 + 4) == (
        outline.fill,
        outline.stroke,
        len(outline.boxes),
    )
    assert (1, 4, 4) == (len(key.boxes), len(slot.boxes), len(value.boxes))
    for whole, filled in ((outline.boxes[:1], key), (slot.boxes, value)):
        # The outline lies half a pixel inside of the cell that is filled.
        part = {round(filled.boxes[0].height / (box.height + 1), 6) for box in whole}
        assert {PARTIAL_TOKENS / 16} == part


def test_a_partial_block_in_its_granule() -> None:
    """Without a Commit Zone Key and Value are filled alike."""
    outline, levels = shapes_of(picture_of(every_kind(commit_zone=False)), 1)

    assert len(outline.boxes) == len(levels.boxes) == 1 + 4
    for level, whole in zip(levels.boxes, outline.boxes, strict=True):
        assert PARTIAL_TOKENS / 16 == round(level.height / (whole.height + 1), 6)
        assert whole.y < level.y


def test_free_places_show_whose_pair_it_is() -> None:
    """An owner's free places have its tint, those of nobody an outline."""
    picture = picture_of(every_kind())
    shapes = [item for item in picture.items if isinstance(item, Shape)]
    tints = {
        shape.owners: shape
        for shape in shapes
        if shape.tip.startswith("free place of a pair that request")
    }

    assert {("ann",), ("bob",), ("dan",)} == tints.keys()
    assert colours.pale(ANN, colours.TINT) == tints["ann",].fill
    assert 14 * 5 == len(tints["ann",].boxes)  # two of sixteen places are taken
    assert 14 * 5 == len(
        next(shape for shape in shapes if shape.stroke == colours.FAINT).boxes
    )


def test_requests_are_listed_with_their_tokens() -> None:
    """The legend names every running request, its colour and its tokens."""
    picture = picture_of(every_kind())
    texts = [item.text for item in picture.items if isinstance(item, Label)]
    tips = [
        (item.fill, item.tip)
        for item in picture.items
        if isinstance(item, Shape) and item.tip.startswith("request ")
    ]

    assert {"ann", "bob", "dan", "21", "32", "16"} <= set(texts)
    assert [
        (ANN, "request ann: 21 tokens"),
        (BOB, "request bob: 32 tokens"),
        (DAN, "request dan: 16 tokens"),
    ] == tips


def test_many_requests_do_not_flood_the_legend() -> None:
    """Beyond two dozen only their number is told, and colours begin anew."""
    occupancy = Occupancy.of(every_kind())
    occupancy.tokens = dict.fromkeys(["ann", "bob", "dan", *range(30)], 1)
    labels = [x.text for x in memory_map(occupancy).items if isinstance(x, Label)]

    assert "and 9 more" in labels
    assert colours.of_request(0) == colours.of_request(24)


@pytest.mark.parametrize(("layer", "head"), [(2, 0), (0, 1), (-1, 0)])
def test_a_layer_or_head_that_is_not_there(layer: int, head: int) -> None:
    """Layers and heads are those of the model."""
    with pytest.raises(LayoutError, match="accepted: 0 to "):
        picture_of(every_kind(), layer=layer, head=head)


def test_rows_and_channels_are_those_of_the_device() -> None:
    """Another layer and head show other row and channel numbers."""
    layout = Layout.of(aim_gddr6(), MODEL_PRESETS["llama3-8b"])
    picture = picture_of(Runtime.of(layout), layer=3, head=2)
    texts = [item.text for item in picture.items if isinstance(item, Label)]

    assert "channels 8 to 11, rows 1536 to 2047" in picture.description
    assert {"channel 8", "channel 11", "1536"} <= set(texts)
    assert "\u00b7 \u00b7 \u00b7  rows 1537 to 1790" in texts


# --- the chart ---------------------------------------------------------------------


def test_few_rows_are_all_shown() -> None:
    """A region that fits is shown whole."""
    band = Band.of(Region("Key", "key", 5, ROWS_MOST), {7}, 1)

    assert tuple(range(5, 5 + ROWS_MOST)) == band.rows
    assert [range(5, 5 + ROWS_MOST)] == band.runs


@pytest.mark.parametrize(
    ("used", "unit", "shown"),
    [
        ((), 1, (100,)),
        ((), 4, (100, 101, 102, 103)),
        ((150, 152, 160), 1, (150, 151, 152, 160)),
        ((104, 105, 108, 109), 2, tuple(range(104, 110))),
        (tuple(range(100, 200, 2)), 1, tuple(range(100, 196, 2))),
    ],
)
def test_of_many_rows_those_in_use(
    used: tuple[int, ...], unit: int, shown: tuple[int, ...]
) -> None:
    """Rows in use are shown, small gaps bridged, and at most so many."""
    band = Band.of(Region("Value", "value", 100, 1000), used, unit)

    assert shown == band.rows
    assert len(band.rows) <= ROWS_MOST


def test_what_is_left_out_is_marked() -> None:
    """Every run of rows that is not shown has its mark, and its place."""
    layout = Layout.of(aim_gddr6(), MODEL_PRESETS["llama3-8b"])
    region = Region("Key", "key", 0, 255)
    chart = Chart.of(layout, (Band.of(region, {10, 40}, 1),))

    assert [range(10), range(11, 40), range(41, 255)] == [r for _, r in chart.omitted]
    assert chart.tops[10][0] < chart.omitted[1][0] < chart.tops[40][0]
    assert None is chart.box(Area(0, 9, 9, 0, 8))
    assert None is chart.box(Area(4, 10, 10, 0, 8))
    shown = chart.box(Area(1, 10, 10, 8, 16))
    assert shown is not None
    assert 8 * chart.burst_width == shown.width


def test_a_wide_device_is_cut() -> None:
    """Channels beyond what a picture can hold are left out and told."""
    device = attrs.evolve(aim_gddr6(), channels=256, rows=64)
    model = attrs.evolve(MODEL_PRESETS["tiny"], kv_heads=1)
    runtime = Runtime.of(Layout.of(device, model))
    cells = Cells.of(Occupancy.of(runtime), Footprints(runtime.layout, 0, 0))

    assert 64 == cells.chart.channels
    assert "(the last 192 not shown)" in picture_of(runtime).description


# --- shapes and colours ------------------------------------------------------------


def test_boxes() -> None:
    """A margin is taken on all sides; a level stands on the ground."""
    box = Box(10, 20, 8, 40)

    assert Box(11, 21, 6, 38) == box.inset(1)
    assert Box(10, 50, 8, 10) == box.lowest(0.25)
    assert box == box.lowest(1)


def test_pale() -> None:
    """A colour is mixed with white."""
    assert "#ffffff" == colours.pale("#4363d8", 0)
    assert "#4363d8" == colours.pale("#4363d8", 1)
    assert "#cccccc" == colours.pale("#000000", 0.2)


def test_colours_of_requests_differ() -> None:
    """Two dozen requests can be told apart, also from what means something else."""
    others = {colours.SHARED, colours.FREE_SLOT, colours.FAINT, colours.GROUND}

    assert 24 == len(set(colours.REQUESTS))
    assert others.isdisjoint(colours.REQUESTS)


@given(st.text(st.characters(codec="utf-8", exclude_categories=["Cc"])))
def test_svg_escapes(text: str) -> None:
    """Names from a log cannot break the file."""
    shape = Shape((Box(0, 0, 1, 1),), Hatch("#fff", "#000"), tip=text, owners=(text,))
    picture = Picture(9, 9, text, text, (shape, Label(1, 1, text)))
    root = parsed(to_svg(picture, owners=True))
    found = Counter(element.tag for element in root.iter())

    assert text == (root.findtext(f"{SVG}title") or "")
    assert text == (root.findtext(f"{SVG}text") or "")
    assert 1 == found[f"{SVG}pattern"]
