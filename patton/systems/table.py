"""The paper's Table 1, worked out: what systems do, measured, and what is said of them.

Whether memory is allocated as a request grows, whether blocks are shared and kept, and
what a token's Value costs to write is measured on a memory of the system. Where the
mapping comes from, and whether the unit is modified, is declared.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, Literal, NamedTuple

import attrs

from patton.commands import Op, Phase
from patton.config import DeviceConfig, ModelConfig, aim_gddr6, model_preset
from patton.errors import PlacementError
from patton.steps import Step
from patton.systems.registry import SYSTEMS
from patton.systems.system import Memory, System

Support = Literal["yes", "partly", "no"]
Writes = Literal["efficient", "utilized burst", "not considered"]

# The systems of the table, in its order.
NAMES: Final = (
    "neupims",
    "attacc",
    "cent",
    "blockpim",
    "paise",
    "attenpim",
    "l3",
    "pimphony",
    "patton",
)


class Row(NamedTuple):
    """What the table says of a system.

    dynamic: memory is allocated as requests grow; paged: blocks are shared and outlive
    requests, or (partly) Keys are at least allocated block by block; mapping: the whole
    address of an element is given; writes: of single tokens; modified: the unit.
    """

    dynamic: bool
    paged: Support
    mapping: bool
    writes: Writes
    modified: bool


# Paper, Table 1.
PAPER: Final[Mapping[str, Row]] = {
    "NeuPIMs": Row(True, "partly", False, "not considered", False),
    "AttAcc": Row(False, "no", False, "not considered", False),
    "CENT": Row(False, "no", False, "not considered", False),
    "BlockPIM": Row(True, "yes", False, "not considered", False),
    "PAISE": Row(False, "no", True, "not considered", False),
    "AttenPIM": Row(False, "no", True, "utilized burst", True),
    "L3": Row(False, "no", True, "utilized burst", True),
    "PIMphony": Row(True, "no", False, "not considered", False),
    "PATTON": Row(True, "yes", True, "efficient", False),
}

_IN_CODE: Final = (
    "the public code places every element; the paper goes by the publication"
)
REASONS: Final[Mapping[tuple[str, str], str]] = {
    ("NeuPIMs", "mapping"): _IN_CODE,
    ("AttAcc", "mapping"): _IN_CODE + " (its HBM traces; on AiM only the slots are it)",
    ("CENT", "mapping"): _IN_CODE,
    ("AttenPIM", "dynamic"): (
        "a third party's summary has whole rows allocated on demand, with more than "
        "90 % of them used; the paper says static"
    ),
}


class Difference(NamedTuple):
    """Where the table here is not the paper's, and why."""

    title: str
    column: str
    here: object
    paper: object
    reason: str


@attrs.frozen
class Measured:
    """What was measured for a row.

    reserved_tokens: for which a request of one block takes room; key_step: whether its
    second block takes more; shares: a block was shared after its request had ended;
    value_activations: all-bank equivalents per head and token, over the tokens of a
    block written one by one, commits included; whole_bursts: no lane is masked.
    """

    reserved_tokens: int
    longest: int
    key_step: bool
    shares: bool
    value_activations: float
    whole_bursts: bool


def table1(
    names: Iterable[str] = NAMES,
    device: DeviceConfig | None = None,
    model: ModelConfig | None = None,
) -> dict[str, Row]:
    """The rows of systems by their titles.

    Measured on AiM and a model whose heads have a channel each by default, so that no
    row is opened in several channels for one head.
    """
    rows = {}
    for name in names:
        found = SYSTEMS[name]()
        rows[found.declaration.title] = row(found, device, model)
    return rows


def row(
    system: System, device: DeviceConfig | None = None, model: ModelConfig | None = None
) -> Row:
    """The row of one system; device, model: as in `table1`."""
    device, model = device or aim_gddr6(), model or model_preset("opt-6.7b")
    found, declaration = measure(system, device, model), system.declaration
    paged: Support = "partly" if found.key_step else "no"
    pieces = -(-model.head_dim // device.banks)
    writes: Writes = "not considered"
    if found.whole_bursts:
        writes = "utilized burst"
    elif found.value_activations < pieces / 2:
        writes = "efficient"
    return Row(
        dynamic=found.reserved_tokens < found.longest,
        paged="yes" if found.shares else paged,
        mapping=declaration.mapping != "inference",
        writes=writes,
        modified=declaration.modified,
    )


def differences(rows: Mapping[str, Row]) -> list[Difference]:
    """Where rows are not the paper's; a reason that is not known is empty.

    Systems that the paper's table does not have differ from nothing.
    """
    return [
        Difference(title, column, here, paper, REASONS.get((title, column), ""))
        for title, found in rows.items()
        if title in PAPER
        for column, here, paper in zip(Row._fields, found, PAPER[title], strict=True)
        if here != paper
    ]


def measure(system: System, device: DeviceConfig, model: ModelConfig) -> Measured:
    """Measure a system on fresh memories."""
    memory = system.on(device, model)
    memory.admit("first", 1)
    memory.bind("first", 0)
    reserved, used = memory.usage().tokens_reserved, memory.usage().used
    memory.bind("first", 1)
    activations, whole = _value_writes(system.on(device, model))
    return Measured(
        reserved_tokens=reserved,
        longest=memory.longest,
        key_step=memory.usage().used > used,
        shares=_shares(system.on(device, model)),
        value_activations=activations / model.kv_heads,
        whole_bursts=whole,
    )


def _shares(memory: Memory) -> bool:
    """Whether a block can be shared when the request that filled it has ended."""
    size = memory.block_tokens
    memory.bind("first", 0)
    memory.publish(memory.apply(Step(writes=[("first", 0, size)])))
    memory.finish("first")
    try:
        memory.share("second", 0)
    except PlacementError:
        return False
    return True


def _value_writes(memory: Memory) -> tuple[float, bool]:
    """Row activations per token of a block that is written token by token.

    And whether all Values were written in whole bursts.
    """
    tokens, total, whole = memory.device.lanes, 0.0, True
    memory.bind("lone", 0)
    for step in _single_tokens(tokens):
        placed = memory.apply(step)
        counts = placed.counts()
        for phase in (Phase.VALUE_WRITE, Phase.COMMIT):
            total += counts[phase].activations if phase in counts else 0.0
        stream = placed.streams().value_write
        assert stream is not None
        assert stream.lanes is not None
        lanes = stream.lanes[stream.op == Op.WR]
        whole &= bool((lanes == 2**memory.device.lanes - 1).all())
        memory.publish(placed)
    return total / tokens, whole


def _single_tokens(tokens: int) -> Iterator[Step]:
    for position in range(tokens):
        yield Step(writes=[("lone", position, 1)])
