"""The paper's representative configuration, and short ways to look at it.

AiM with 16 banks and bursts of 16 elements, blocks of 16 tokens, a head dimension of
128. OPT-6.7B gives a Key-Value head one channel, so that a Value granule lies in eight
rows of it; Llama3-8B gives it four, so that it lies in two rows of each.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import attrs

from patton.addresses import Address, Element
from patton.commands import Command, CommandStream, Op
from patton.config import DeviceConfig, aim_gddr6, model_preset
from patton.generate import StepStreams, generate_step
from patton.layout import Kind, Layout
from patton.runtime import Runtime
from patton.steps import Request, Step, StepPlan

AIM = aim_gddr6()
OPT = Layout.of(AIM, model_preset("opt-6.7b"))
LLAMA = Layout.of(AIM, model_preset("llama3-8b"))
BOTH = (OPT, LLAMA)
TOKENS, HEAD_DIM, BANKS, LANES = 16, 128, 16, 16

Burst = tuple[int, int, int, int]  # channel, bank, row, burst


def layout_of(device: DeviceConfig = AIM, **model: Any) -> Layout:
    """A layout of Llama3-8B with other numbers."""
    return Layout.of(device, attrs.evolve(model_preset("llama3-8b"), **model))


def at(
    layout: Layout, kind: Kind, index: int, token: int = 0, element: int = 0
) -> Address:
    """Where an element of the first head and layer lies."""
    return layout.address_of(kind, Element(0, 0, index, token, element))


def lies(
    layout: Layout,
    kind: Kind,
    indices: Iterable[int],
    tokens: Iterable[int] = range(TOKENS),
    elements: Iterable[int] = range(HEAD_DIM),
    head: int = 0,
) -> list[Address]:
    """Addresses of elements of granules or slots, element by element."""
    return [
        layout.address_of(kind, Element(0, head, index, token, element))
        for index in indices
        for token in tokens
        for element in elements
    ]


def values(addresses: Iterable[Address], field: str) -> list[int]:
    """The different values of a field, ascending."""
    return sorted({getattr(address, field) for address in addresses})


def bursts(addresses: Iterable[Address]) -> set[Burst]:
    """The bursts in which they lie."""
    return {(a.channel, a.bank, a.row, a.burst) for a in addresses}


def columns(addresses: Iterable[Address]) -> list[int]:
    """Their positions along a row, in elements, in the order given."""
    return [address.burst * LANES + address.lane for address in addresses]


# --- steps and streams ----------------------------------------------------------------


def served(layout: Layout, **options: Any) -> Runtime:
    """A runtime with all memory free."""
    return Runtime.of(layout, **options)


def grow(
    runtime: Runtime, request: Request, blocks: Sequence[int], tokens: int
) -> StepPlan:
    """A step that binds blocks for a request and writes tokens after those it has."""
    running = runtime.placements.requests.get(request)
    first = running.tokens if running else 0
    step = Step(grants=[(request, [], [*blocks])], writes=[(request, first, tokens)])
    return runtime.apply_step(step)


def prefill(
    runtime: Runtime, request: Request, blocks: Sequence[int], tokens: int
) -> StepPlan:
    """The same, with its commits published."""
    plan = grow(runtime, request, blocks, tokens)
    runtime.publish(plan)
    return plan


def decode(runtime: Runtime, requests: Sequence[Request]) -> StepPlan:
    """A step that writes one token of each request, not published."""
    tables = runtime.placements.requests
    return runtime.apply_step(
        Step(writes=[(request, tables[request].tokens, 1) for request in requests])
    )


def attend(runtime: Runtime, *requests: Request) -> StepStreams:
    """The streams of a step in which a query of each request sees all it has."""
    tables = runtime.placements.requests
    reads = [(request, 0, tables[request].tokens) for request in requests]
    return generate_step(runtime.apply_step(Step(reads=reads)).place())


def streams(plan: StepPlan) -> StepStreams:
    """The streams of a step that has just been applied."""
    return generate_step(plan.place())


def commands(stream: CommandStream | None) -> list[Command]:
    """The entries of a stream that there must be."""
    assert stream is not None
    return [*stream.commands()]


def only(entries: Iterable[Command], *ops: Op) -> list[Command]:
    """The entries of some kinds."""
    return [entry for entry in entries if entry.op in ops]


def run_of(entries: Iterable[Command]) -> list[tuple[str, int]]:
    """Accumulator commands in their order: kind, and how often."""
    accumulate = (Op.WRBIAS, Op.MACAB, Op.RDMAC)
    return [(entry.op.name, entry.count) for entry in only(entries, *accumulate)]


def acts(stream: CommandStream | None) -> int:
    """Rows that it opens, a multicast command counted once."""
    return 0 if stream is None else stream.counts().get(Op.ACT, 0)


def written_bursts(stream: CommandStream | None) -> set[Burst]:
    """The bursts into which a stream writes."""
    return {
        (channel, bank, entry.row, burst)
        for entry in only(commands(stream), Op.WR)
        for channel in range(entry.channel, entry.channel + entry.channels)
        for bank in range(entry.bank, entry.bank + entry.banks)
        for burst in range(entry.burst, entry.burst + entry.count)
    }
