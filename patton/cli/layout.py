"""`patton layout`: how a model's KV cache divides a device."""

from __future__ import annotations

from typing import Any, Unpack

import attrs
import click
from rich.console import Console
from rich.table import Table

from patton.cli.options import (
    LayoutOptions,
    build_layout,
    json_option,
    layout_options,
    print_json,
)
from patton.config import GIB
from patton.layout import Layout
from patton.locate import regions

MIB = 2**20

# Attribute of Layout, its short symbol in the literature, and what it is.
SHAPES = (
    ("block_tokens", "T", "tokens of a block"),
    ("pair_blocks", "N", "blocks of an Order-2 pair"),
    ("channels_per_head", "c", "channels of one KV head"),
    ("groups", "", "KV heads side by side, each on own channels"),
    ("folds", "F", "KV heads that share channels, each in own rows"),
    ("planes", "P", "layers x folds"),
    ("key_bursts", "dk", "bursts of one token's Key"),
    ("key_width", "wk", "bursts of a Key granule"),
    ("keys_per_row", "kr", "Key granules of a row and channel"),
    ("value_subblocks", "dv", "groups of one head element per bank"),
    ("value_channels", "cv", "channels of a Value granule"),
    ("rows_per_value", "rv", "rows of a Value granule, of a Value row set"),
    ("value_width", "wv", "bursts of a Value granule, in each of its rows"),
    ("values_per_set", "vr", "Value granules of a row set and stripe"),
    ("stripes", "u", "Value granules side by side in those channels"),
    ("slots", "S", "Commit Zone slots of a stripe"),
    ("slots_per_row", "spr", "slots of a Commit Zone row and stripe"),
)
EXAMPLES = """\b
Examples:
  patton layout
  patton layout --model opt-6.7b --slots 16
  patton layout --model ./my-model/config.json --device lpddr5 --json
"""


@click.command(epilog=EXAMPLES)
@layout_options()
@json_option
def layout(*, as_json: bool, **options: Unpack[LayoutOptions]) -> None:
    """Show shapes, regions and capacity of a model on a device."""
    found = build_layout(**options)
    if as_json:
        print_json(as_data(found))
    else:
        _print(found, Console(highlight=False))


def as_data(found: Layout) -> dict[str, Any]:
    """Every derived number by its attribute name, and what it was derived from."""
    left_out = ("device", "model", "map")
    numbers = attrs.asdict(found, filter=lambda field, _: field.name not in left_out)
    return {
        "model": found.model.name,
        "device": found.device.name,
        "capacity_bytes": found.device.capacity_bytes,
        **numbers,
        "ideal_tokens": found.ideal_tokens,
    }


def _print(found: Layout, console: Console) -> None:
    device, model = found.device, found.model
    console.print(
        f"[bold]{model.name}[/]: {model.layers} layers, {model.kv_heads} KV heads of "
        f"{model.head_dim} elements, {model.query_heads_per_kv} query heads each\n"
        f"[bold]{device.name}[/]: {device.capacity_bytes / GIB:g} GiB in "
        f"{device.channels} channels of {device.banks} banks, {device.rows} rows of "
        f"{device.bursts_per_row} bursts of {device.lanes} {device.element.name}\n",
        soft_wrap=True,
    )
    for table in (_shape_table(found), _region_table(found)):
        console.print(table)
        console.print()
    console.print(_capacity(found), soft_wrap=True)


def _table(title: str, *columns: tuple[str, bool]) -> Table:
    """A plain table; a column is its head and whether it holds numbers."""
    table = Table(title=title, title_justify="left", title_style="bold", box=None)
    for name, is_number in columns:
        table.add_column(name, justify="right" if is_number else "left")
    return table


def _shape_table(found: Layout) -> Table:
    columns = (("name", False), ("", False), ("value", True), ("meaning", False))
    table = _table("Shapes", *columns)
    for name, symbol, meaning in SHAPES:
        table.add_row(name, symbol, f"{getattr(found, name):,}", meaning)
    return table


def _region_table(found: Layout) -> Table:
    held = {
        "key": f"{found.granules:,} Key granules",
        "value": f"{found.granules:,} Value granules, as many",
        "slot": f"{found.slots * found.stripes:,} slots",
        None: "nothing: another pair does not fit",
    }
    table = _table(
        f"Regions of each plane of {found.rows_per_plane:,} rows (of every KV head)",
        ("region", False),
        ("rows", True),
        ("first", True),
        ("last", True),
        ("holds", False),
    )
    for region in regions(found):
        if region.rows:
            ends = (region.first_row, region.end_row - 1)
            numbers = [f"{number:,}" for number in (region.rows, *ends)]
            table.add_row(region.name, *numbers, held[region.kind])
    return table


def _capacity(found: Layout) -> str:
    part = found.tokens / found.ideal_tokens
    beyond = found.device.rows - found.planes * found.rows_per_plane
    return (
        f"[bold]Capacity[/]\n"
        f"{found.tokens:,} tokens in {found.granules:,} granules, {found.pairs:,} "
        f"pairs; {part:.1%} of the {found.ideal_tokens:,} that the bytes would hold\n"
        f"{found.unused_rows:,} unused rows in each of {found.planes:,} planes, "
        f"{beyond:,} beyond the last plane\n"
        f"{found.padding_bytes:,} bytes ({found.padding_bytes / MIB:,.1f} MiB) of "
        f"padding inside granules"
    )
