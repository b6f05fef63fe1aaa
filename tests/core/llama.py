"""What the tests of the runtime share: the paper's configuration, made small."""

from __future__ import annotations

from typing import Any

from patton.config import aim_gddr6, model_preset
from patton.layout import Layout
from patton.runtime import Runtime
from patton.steps import Placement, Request, Step


def llama(**options: Any) -> Runtime:
    """A runtime for the paper's configuration, on a small part of the device."""
    device = aim_gddr6().scaled(options.pop("gib", 4))
    return Runtime.of(Layout.of(device, model_preset("llama3-8b")), **options)


def place(runtime: Runtime, block: int) -> Placement:
    """The placement of a block that is bound."""
    found = runtime.placement(block)
    assert found is not None
    return found


def start(runtime: Runtime, request: Request, blocks: list[int], tokens: int) -> None:
    """Bind and write the first tokens of a request, commits published."""
    step = Step(grants=[(request, [], blocks)], writes=[(request, 0, tokens)])
    runtime.publish(runtime.apply_step(step))
