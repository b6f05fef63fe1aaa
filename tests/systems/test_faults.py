"""Planted faults: what a system puts to a wrong place, or reads there, is found.

Each is planted into one stream of a step whose other streams are as they should be; the
device's protocol or the validator must refuse the step.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

import attrs
import numpy as np
import pytest

from patton.commands import CommandStream, Op, Phase
from patton.config import aim_gddr6, model_preset
from patton.errors import ProtocolError, ValidationError
from patton.steps import Ints, Step
from patton.systems import system
from patton.systems.maps import Holdings, Spots, spread_of
from patton.systems.memory import MappedMemory
from patton.systems.placed import InnerStep, MappedStep
from tests.systems.scene import VARIANTS, Scene, variant_id

Fault = Callable[[CommandStream, int], CommandStream | None]
PRODUCTS = (Op.MACAB, Op.MACSV)


@attrs.frozen(eq=False)
class Prepared:
    """A run after its first step, and the step that follows."""

    scene: Scene
    step: Step
    requests: tuple[Any, ...]
    streams: list[CommandStream]

    def refuses(self, streams: list[CommandStream]) -> bool:
        """Whether these in the place of the step's are found wrong."""
        validator = copy.deepcopy(self.scene.validator)
        try:
            validator.check_step(self.step, self.requests, streams, self.scene.identify)
        except (ProtocolError, ValidationError):
            return True
        return False


def prepared(variant: tuple[str, dict[str, Any]]) -> Prepared:
    """Two requests and what an earlier one left, then a token of each and reads."""
    scene = Scene.named(*variant, "llama3-8b")
    step = Step()
    for request, count in (("left", 130), ("a", 50), ("b", 24)):
        scene.write(step, request, count)
    scene.run(step)
    step = Step()
    scene.finish(step, "left")
    for request in ("a", "b"):
        scene.write(step, request, 1)
        scene.read(step, request)
    placed = scene.memory.apply(step)
    return Prepared(scene, step, placed.requests, placed.streams().present())


# --- streams --------------------------------------------------------------------------


def changed(stream: CommandStream, at: Any, **fields: Any) -> CommandStream:
    """The stream with these columns of some entries replaced."""
    columns = {}
    for name, value in fields.items():
        column = getattr(stream, name).copy()
        column[at] = value
        columns[name] = column
    return attrs.evolve(stream, **columns)


def picked(stream: CommandStream, index: Any) -> CommandStream:
    """The entries with these indices."""
    columns = {name: column[index] for name, column in stream.columns().items()}
    return attrs.evolve(stream, **columns)


def opened_for(stream: CommandStream, at: int) -> int:
    """The ACT that opens the row of an entry in its first channel."""
    acts = np.flatnonzero(stream.op[:at] == Op.ACT)
    first = stream.channel[acts].astype(int)
    mine = (first <= stream.channel[at]) & (
        stream.channel[at] < first + stream.channels[acts]
    )
    return int(acts[mine][-1])


def visit(stream: CommandStream, at: int) -> Ints:
    """An entry, its ACTs and all others between them that touch the same row."""
    start = opened_for(stream, at)
    while start and stream.op[start - 1] == Op.ACT:
        start -= 1
    following = np.arange(start, len(stream))
    ends = np.flatnonzero((stream.op[following] == Op.ACT) & (following > at))
    last = int(following[ends[0]]) if len(ends) else len(stream)
    found = np.arange(start, last)
    same = stream.row[found] == stream.row[at]
    same &= stream.channel[found] == stream.channel[at]
    return np.asarray(found[same])


def entry(stream: CommandStream, op: Op, which: int) -> int | None:
    """Of the entries of a kind the first, the middle or the last."""
    found = np.flatnonzero(stream.op == op)
    return int(found[[0, len(found) // 2, -1][which]]) if len(found) else None


def write_to_bank(stream: CommandStream, which: int) -> CommandStream | None:
    """Another bank, where not all are written."""
    at = entry(stream, Op.WR, which)
    if at is None or stream.banks[at] == 16:
        return None
    found, banks = visit(stream, at), int(stream.banks[at])
    bank = (stream.bank[found].astype(int) + banks) % 16
    return changed(stream, found, bank=bank)


def write_to_row(stream: CommandStream, which: int) -> CommandStream | None:
    """Another row, which is opened for it."""
    at = entry(stream, Op.WR, which)
    if at is None:
        return None
    found = visit(stream, at)
    return changed(stream, found, row=stream.row[found] ^ 1)


def write_to_column(stream: CommandStream, which: int) -> CommandStream | None:
    """Another burst of the row."""
    at = entry(stream, Op.WR, which)
    if at is None:
        return None
    width = int(stream.count[at])
    return changed(stream, at, burst=(int(stream.burst[at]) + width) % 64)


def write_to_channel(stream: CommandStream, which: int) -> CommandStream | None:
    """Another channel, where the entry does not take all of the head's."""
    at, channels = entry(stream, Op.WR, which), stream.frame.channels_per_head
    if at is None or stream.channels[at] == channels:
        return None
    found = visit(stream, at)
    channel = (stream.channel[found].astype(int) + 1) % channels
    return changed(stream, found, channel=channel)


def write_of_token(stream: CommandStream, which: int) -> CommandStream | None:
    """Another token of the stream, or another head of it."""
    at = entry(stream, Op.WR, which)
    if at is None or stream.tokens is None or stream.axes is None:
        return None
    size = len(stream.tokens.position)
    shift = 1 if stream.reference[at] + 1 < size else -1
    return changed(stream, at, reference=stream.reference[at] + shift)


def write_in_lane(stream: CommandStream, which: int) -> CommandStream | None:
    """Another lane of the burst, with the element that belongs there."""
    at = entry(stream, Op.WR, which)
    if at is None or stream.lanes is None or stream.lanes[at] == 0xFFFF:
        return None
    lanes = int(stream.lanes[at])
    moved = lanes >> 1 if lanes & 1 == 0 else lanes << 1
    shift = 1 if lanes & 1 == 0 else -1
    found = changed(stream, at, lanes=np.uint64(moved))
    return changed(found, at, reference=stream.reference[at] + shift)


def stale_buffer(stream: CommandStream, which: int) -> CommandStream | None:
    """A load is left out: the Global Buffer has what was there before."""
    at = entry(stream, Op.WRGB, which)
    if at is None:
        return None
    return picked(stream, np.delete(np.arange(len(stream)), at))


def wrong_vector(stream: CommandStream, which: int) -> CommandStream | None:
    """A load of another query head or another query's vector."""
    at = entry(stream, Op.WRGB, which)
    if at is None or stream.loads is None:
        return None
    size = len(stream.loads.query) * stream.frame.heads_per_kv
    return changed(stream, at, reference=(int(stream.reference[at]) + 1) % size)


def product(stream: CommandStream, which: int) -> int | None:
    """An entry that multiplies."""
    found = [entry(stream, op, which) for op in PRODUCTS]
    return next((at for at in found if at is not None), None)


def multiplied_row(stream: CommandStream, which: int) -> CommandStream | None:
    """Another row is opened and multiplied."""
    at = product(stream, which)
    if at is None:
        return None
    found = np.array([opened_for(stream, at), at])
    return changed(stream, found, row=stream.row[at] ^ 1)


def multiplied_column(stream: CommandStream, which: int) -> CommandStream | None:
    """Other bursts are multiplied."""
    at = product(stream, which)
    if at is None:
        return None
    burst = int(stream.burst[at]) + 1
    burst = burst if burst + stream.count[at] <= 64 else burst - 2
    return changed(stream, at, burst=burst)


def multiplied_less(stream: CommandStream, which: int) -> CommandStream | None:
    """A product is left out."""
    at = product(stream, which)
    if at is None:
        return None
    return picked(stream, np.delete(np.arange(len(stream)), at))


def multiplied_twice(stream: CommandStream, which: int) -> CommandStream | None:
    """A product is added twice."""
    at = product(stream, which)
    if at is None:
        return None
    return picked(stream, np.insert(np.arange(len(stream)), at, at))


def wrong_result(stream: CommandStream, which: int) -> CommandStream | None:
    """A result is taken for that of another query head, query or position."""
    at = entry(stream, Op.RDMAC, which)
    if at is None or stream.results is None:
        return None
    size = len(stream.results.query) * stream.frame.heads_per_kv
    last = stream.results.group_stride * stream.frame.heads_per_kv
    last *= int(stream.channels[at]) - 1
    reference = int(stream.reference[at]) + 1
    reference = reference if reference + last < size else reference - 2
    return changed(stream, at, reference=reference)


WRITE_FAULTS = (
    write_to_bank,
    write_to_row,
    write_to_column,
    write_to_channel,
    write_of_token,
    write_in_lane,
)
READ_FAULTS = (
    stale_buffer,
    wrong_vector,
    multiplied_row,
    multiplied_column,
    multiplied_less,
    multiplied_twice,
    wrong_result,
)


def planted(stream: CommandStream) -> Iterator[tuple[str, CommandStream]]:
    """Every fault at three places of a stream."""
    writes = stream.phase in {Phase.KEY_WRITE, Phase.VALUE_WRITE}
    for fault in WRITE_FAULTS if writes else READ_FAULTS:
        for which in range(3):
            found = fault(stream, which)
            if found is not None:
                yield f"{stream.phase} {fault.__name__} {which}", found


@pytest.mark.parametrize("variant", VARIANTS, ids=variant_id)
def test_a_fault_in_a_stream_is_found(variant: tuple[str, dict[str, Any]]) -> None:
    """Wrong bank, row, column, channel, lane, head, vector, result; a stale buffer."""
    run = prepared(variant)
    assert not run.refuses(run.streams)

    kinds, missed = set(), []
    for number, stream in enumerate(run.streams):
        for name, wrong in planted(stream):
            kinds.add(name.split()[1])
            streams = [*run.streams[:number], wrong, *run.streams[number + 1 :]]
            if not run.refuses(streams):
                missed.append(name)

    assert [] == missed
    # Values of inner-product units are written to all banks; a frame of few channels
    # may have all of them in every entry.
    assert {f.__name__ for f in (*WRITE_FAULTS, *READ_FAULTS)} - kinds <= {
        "write_to_channel",
        "write_in_lane",
    }


# --- maps -----------------------------------------------------------------------------


@attrs.frozen(eq=False)
class Planted:
    """A map that finds the Keys or Values of some groups elsewhere."""

    right: Any
    what: str
    which: str

    def __getattr__(self, name: str) -> Any:
        return getattr(self.right, name)

    def keys(self, held: Holdings, request: Ints, group: Ints) -> Spots:
        spots: Spots = self.right.keys(held, request, group)
        return self.moved(spots, request) if self.which == "keys" else spots

    def values(self, held: Holdings, request: Ints, group: Ints) -> Spots:
        spots: Spots = self.right.values(held, request, group)
        return self.moved(spots, request) if self.which == "values" else spots

    def moved(self, spots: Spots, request: Ints) -> Spots:
        """The last group of the first request is the wrong one."""
        channel, row, burst = (np.array(x) for x in np.broadcast_arrays(*spots))
        at = int(np.flatnonzero(request == request[0])[-1])
        if self.what == "channel":
            channel[at] = (channel[at] + 1) % self.right.key_frame.channels_per_head
        elif self.what == "row":
            row[at] ^= 1
        elif self.what == "column":
            width = 8 if self.which == "keys" else 1
            burst[at] = (burst[at] + width) % 64
        else:
            for column in (channel, row, burst):
                column[at] = np.roll(column[at], 1, axis=0)
        return Spots(channel, row, burst)


def plantable() -> Iterator[tuple[tuple[str, dict[str, Any]], str, str]]:
    """Variants, caches and faults that a map of theirs can have."""
    for name, options in VARIANTS:
        memory = system(name, **options).on(aim_gddr6(), model_preset("llama3-8b"))
        if not isinstance(memory, MappedMemory):
            continue
        right: Any = memory.map
        for which in ("keys", "values"):
            if which == "values" and memory.step_type is not InnerStep:
                continue
            frame = getattr(right, "key_frame" if which == "keys" else "value_frame")
            everywhere = which == "values" and right.value_channels > 1
            for what in ("channel", "row", "column", "head"):
                # Of a head's own frame no stream speaks of heads, and Values in all
                # channels of a head name none.
                if what == "head" and spread_of(frame, memory.model) == 1:
                    continue
                if what == "channel" and everywhere:
                    continue
                yield (name, options), which, what


@pytest.mark.parametrize(
    ("variant", "which", "what"), list(plantable()), ids=variant_id
)
def test_a_fault_in_a_map_is_found(
    variant: tuple[str, dict[str, Any]], which: str, what: str
) -> None:
    """Whether it is there when a step is written, or when it is read."""
    scene = Scene.named(*variant, "llama3-8b")
    step = Step()
    for request in ("a", "b"):
        scene.write(step, request, 50)
        scene.read(step, request)
    placed = scene.memory.apply(step)
    assert isinstance(placed, MappedStep)
    wrong = attrs.evolve(placed, map=Planted(placed.map, what, which))
    run = Prepared(scene, step, placed.requests, [])
    straight, faulty = placed.streams(), wrong.streams()

    assert not run.refuses(straight.present())
    for phase in ("key_write", "qk") if which == "keys" else ("value_write", "sv"):
        stream = getattr(faulty, phase)
        assert run.refuses(attrs.evolve(straight, **{phase: stream}).present())
