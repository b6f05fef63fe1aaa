"""`patton where`: from an element to its address, and back."""

from __future__ import annotations

from typing import Any, Unpack

import click

from patton.addresses import Address, Element
from patton.cli.options import (
    LayoutOptions,
    build_layout,
    json_option,
    layout_options,
    print_json,
)
from patton.layout import Kind, Layout
from patton.locate import Location, address_words, element_words, locate

EXAMPLES = """\b
Examples:
  patton where --block 1234 --token 5 --element 70
  patton where --block 1234 --token 5 --element 70 --kind value --head 3 --layer 31
  patton where --at 14 6 293 18 5
"""


@click.command(epilog=EXAMPLES)
@click.option("--block", type=int, metavar="INDEX", help="Granule index, or slot.")
@click.option("--token", type=int, metavar="T", help="Position in the block.")
@click.option("--element", type=int, metavar="E", help="Position in the head vector.")
@click.option(
    "--kind",
    type=click.Choice(["key", "value", "slot"]),
    help="What of the block; a slot's index is z * stripes + stripe.  [default: key]",
)
@click.option("--head", type=int, metavar="H", help="KV head.  [default: 0]")
@click.option("--layer", type=int, metavar="L", help="[default: 0]")
@click.option(
    "--at",
    type=int,
    nargs=5,
    metavar="CH BANK ROW BURST LANE",
    help="What lies at this address, instead of where an element lies.",
)
@layout_options()
@json_option
def where(
    *,
    block: int | None,
    token: int | None,
    element: int | None,
    kind: Kind | None,
    head: int | None,
    layer: int | None,
    at: tuple[int, int, int, int, int] | None,
    as_json: bool,
    **options: Unpack[LayoutOptions],
) -> None:
    """Find the address of an element, or what lies at an address.

    INDEX counts granules (a bound block has one, for Key and Value alike) or, with
    --kind slot, slots of the Commit Zone.
    """
    given = (block, token, element, kind, head, layer)
    if at is not None and given != (None,) * len(given):
        raise click.UsageError("--at has no further coordinates beside it")
    found = build_layout(**options)
    if at is not None:
        location = locate(found, Address(*at))
    elif block is None or token is None or element is None:
        raise click.UsageError("--block, --token and --element belong together")
    else:
        asked = Element(layer or 0, head or 0, block, token, element)
        location = locate(found, found.address_of(kind or "key", asked))
    if as_json:
        print_json(as_data(found, location))
    else:
        click.echo(in_words(found, location, address_first=at is not None))


def as_data(layout: Layout, location: Location) -> dict[str, Any]:
    """A location as plain data; what does not apply is None."""
    names = ("layer", "head", "index", "token", "element")
    element = location.element or dict.fromkeys(names)
    numbers = element._asdict() if isinstance(element, Element) else element
    pair = place = None
    if location.element is not None and location.kind != "slot":
        pair = layout.pair_of(location.element.index)
        place = location.element.index - pair * layout.pair_blocks
    return {
        **location.address._asdict(),
        "use": location.use,
        "region": location.region or None,
        "kind": location.kind,
        **numbers,
        "pair": pair,
        "place": place,
        "note": location.note or None,
    }


def in_words(layout: Layout, location: Location, *, address_first: bool) -> str:
    """A location in two or three lines, the answer last."""
    address = address_words(location.address)
    lines = [location.note] if location.note else []
    if location.kind is not None and location.element is not None:
        lines.append(element_words(layout, location.kind, location.element))
    where_to = f" ({location.region} region)" if location.kind else ""
    address += where_to
    return "\n".join([address, *lines] if address_first else [*lines, address])
