"""A memory map in which every kind of cell occurs, and pictures read back."""

from __future__ import annotations

from xml.etree import ElementTree as ET

from patton.config import MODEL_PRESETS, tiny_device
from patton.layout import Layout
from patton.runtime import Runtime
from patton.steps import Step

PARTIAL_TOKENS = 5


def every_kind(*, commit_zone: bool = True) -> Runtime:
    """Blocks 0 to 5 of the tiny model.

    Block 0 is shared by "ann" and "bob", 1 is ann's and partial in slot 0, 2 is bob's
    and full, 3 and 4 are cached, 5 is dan's and full, but in slot 1 for want of its
    confirmation. Without a Commit Zone 1 and 5 lie in their granules.
    """
    layout = Layout.of(tiny_device(), MODEL_PRESETS["tiny"])
    runtime = Runtime.of(layout, commit_zone=commit_zone)
    tokens = runtime.layout.block_tokens
    _apply(runtime, Step(grants=[("cat", [], [3, 4])], writes=[("cat", 0, 2 * tokens)]))
    ann = Step(
        finishes=["cat"],
        grants=[("ann", [], [0, 1])],
        writes=[("ann", 0, tokens + PARTIAL_TOKENS)],
    )
    bob = Step(grants=[("bob", [0], [2])], writes=[("bob", tokens, tokens)])
    dan = Step(
        grants=[("dan", [], [5])], writes=[("dan", 0, tokens)], drafts={"dan": 1}
    )
    for step in (ann, bob, dan):
        _apply(runtime, step)
    return runtime


def parsed(svg: str) -> ET.Element:
    """The root of an SVG text that the command wrote."""
    return ET.fromstring(svg)  # noqa: S314  (our own text)


def _apply(runtime: Runtime, step: Step) -> None:
    runtime.publish(runtime.apply_step(step))
