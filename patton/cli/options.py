"""Options that several subcommands have, and the layout that they describe."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Protocol, TypedDict, TypeVar

import click

from patton.config import DEVICE_PRESETS, MODEL_PRESETS, device_preset, model_preset
from patton.layout import Layout

MODEL, DEVICE = "llama3-8b", "aim-gddr6"

# More than any device has; smaller numbers are judged by the layout, which names a fit.
COUNT = click.IntRange(max=2**31 - 1)

Function = TypeVar("Function", bound=Callable[..., Any])


class Decorator(Protocol):
    """What gives a function further options, and leaves its type."""

    def __call__(self, function: Function, /) -> Function:
        """The function with the options."""


class LayoutOptions(TypedDict):
    """The values of `layout_options`, as a command receives them."""

    model: str | None
    device: str | None
    slots: int | None
    pair_blocks: int | None
    block_tokens: int
    capacity_gib: float | None


def layout_options(
    *, model: str | None = MODEL, device: str | None = DEVICE
) -> Decorator:
    """The options that describe a layout, with these defaults.

    None leaves a default to the command. It takes the options as keyword arguments,
    `**options: Unpack[LayoutOptions]`.
    """
    models, devices = ", ".join(MODEL_PRESETS), ", ".join(DEVICE_PRESETS)
    options = (
        click.option(
            "--model",
            default=model,
            show_default=True,
            metavar="NAME|config.json",
            help=f"{models}, or a Hugging Face config.json.",
        ),
        click.option(
            "--device",
            default=device,
            show_default=True,
            metavar="NAME",
            help=f"{devices}.",
        ),
        *_sizes(),
    )
    return _all(options)


def _sizes() -> tuple[Decorator, ...]:
    return (
        click.option(
            "--slots",
            type=COUNT,
            metavar="S",
            help="Commit Zone slots per stripe, rounded up to rows.  [default: a row]",
        ),
        click.option(
            "--pair-blocks",
            type=COUNT,
            metavar="N",
            help="Blocks of an Order-2 pair.  [default: from 16, a multiple of the "
            "channels of a head]",
        ),
        click.option(
            "--block-tokens",
            type=COUNT,
            default=16,
            show_default=True,
            metavar="T",
            help="Tokens of an engine's block.",
        ),
        click.option(
            "--capacity-gib",
            type=float,
            metavar="X",
            help="Size of the device, by its number of rows.  [default: as it is]",
        ),
    )


def _all(options: tuple[Decorator, ...]) -> Decorator:
    def decorate(function: Function) -> Function:
        # The last one applied comes first in the help.
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


json_option = click.option(
    "--json", "as_json", is_flag=True, help="One JSON object instead of text."
)


def build_layout(
    *,
    model: str | None = None,
    device: str | None = None,
    slots: int | None = None,
    pair_blocks: int | None = None,
    block_tokens: int = 16,
    capacity_gib: float | None = None,
) -> Layout:
    """The layout that the options describe; None is a default. Raises ConfigError."""
    organisation = device_preset(DEVICE if device is None else device)
    if capacity_gib is not None:
        organisation = organisation.scaled(capacity_gib)
    return Layout.of(
        organisation,
        model_preset(MODEL if model is None else model),
        block_tokens=block_tokens,
        pair_blocks=pair_blocks,
        slots=slots,
    )


def print_json(data: dict[str, Any]) -> None:
    """One JSON object, for machines, in a form that people can read too."""
    click.echo(json.dumps(data, indent=2))
