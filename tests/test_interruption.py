"""Every stream stopped before every one of its commands, then repeated or abandoned.

Clause CMD-COMMIT.

A step that has everything (writes to slots and O1Vs, read-backs, QK, SV, partial
blocks, commits) is interrupted on the device, on several geometries and with every way
to commit. Repeated, it leaves the same memory as if nothing had happened. Abandoned, no
value is lost, every reader still finds its tokens where they are visible, and places
and slots can be used again: the steps that follow are compared with the reference in
every bit, and validated term by term. At the stop itself, every lane of the device
holds what the validator's tags say.

Abandoned writes mean that the writers are preempted and their new blocks dropped; an
abandoned commit is one that is not published. Reads that stop change nothing.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator

import attrs
import numpy as np
import pytest
from numpy.typing import NDArray

from patton.commands import Phase
from patton.config import CommitWay
from patton.device import BankMemory, ReferenceDevice
from patton.device.provenance import StreamValidator
from patton.device.provenance.tags import FILLED, UNWRITTEN, Ledger
from patton.engine import data
from patton.executor import Results
from patton.layout import Layout
from patton.steps import PlacedStep, StepPlan
from tests.device.provenance.runs import WAYS, fork
from tests.scene import SHAPES, Call, Scene, Validated, prepared

pytestmark = pytest.mark.usefixtures("specification")

WRITES = (Phase.KEY_WRITE, Phase.VALUE_WRITE, Phase.COMMIT)


# --- the three questions --------------------------------------------------------------


def stops(call: Call) -> Iterator[int]:
    """The number of every command, over all folds, and the end."""
    total = int(call.stream.command_offsets()[-1])
    yield from range(call.stream.frame.folds * total + 1)


@attrs.frozen
class Stopped:
    """A device that was stopped, with validators of all folds; `fold` was stopped in.

    The other folds are where they are at the first or the last stop of all.
    """

    device: ReferenceDevice
    validators: list[StreamValidator]
    fold: int
    results: Results

    @classmethod
    def at(cls, scene: Scene, placed: PlacedStep, call: Call, stop: int) -> Stopped:
        device = ReferenceDevice(scene.layout.device)
        device.memory = copy.deepcopy(call.before)
        results = device.run(call.stream, call.payload, stop=stop)
        if call.stream.phase not in WRITES:
            return cls(device, call.validators, 0, results)  # they would see nothing
        total = int(call.stream.command_offsets()[-1])
        validators = [fork(validator) for validator in call.validators]
        for fold, validator in enumerate(validators):
            inside = min(max(stop - fold * total, 0), total)
            who = scene.identify_in(placed)
            validator.interrupt(placed, call.stream, inside, who)
        last = len(validators) - 1
        return cls(device, validators, min(stop // total, last), results)

    @property
    def validator(self) -> StreamValidator:
        return self.validators[self.fold]

    def copy(self) -> tuple[ReferenceDevice, StreamValidator]:
        """For what does not come back."""
        device = ReferenceDevice(self.device.device)
        device.memory = copy.deepcopy(self.device.memory)
        return device, fork(self.validator)


def image(memory: BankMemory) -> list[tuple[int, int, bytes, bytes]]:
    return sorted(memory.image())


def check_tags(scene: Scene, memory: BankMemory, folds: list[StreamValidator]) -> None:
    """Every lane of every head holds, on the device, what its tag says."""
    layout, rows = scene.layout, 0
    numbers = [scene_numbers(scene, validator.ledger) for validator in folds]
    for head in range(layout.model.kv_heads):
        fold, group = divmod(head, layout.groups)
        validator, of_head = folds[fold], numbers[fold][:, :, head]
        for place in np.flatnonzero(validator.memory._slab).tolist():
            channel, row = divmod(place, layout.rows_per_plane)
            tags = validator.memory._tags[validator.memory._slab[place]]
            rows += bool(tags.any())
            due = tags.swapaxes(0, 1)  # burst and bank, as in the device
            at = group * layout.channels_per_head + channel
            bits, masks = memory.slab(at, fold * layout.rows_per_plane + row)
            token, kind, element = due >> 24, due >> 23 & 1, due & (1 << 23) - 1
            expected = np.where(token > FILLED, of_head[kind, token, element], 0)
            assert np.array_equal(token != UNWRITTEN, memory.flags(masks))
            assert np.array_equal(expected, bits)
    assert rows == len(image(memory))


def scene_numbers(scene: Scene, ledger: Ledger) -> NDArray[np.uint16]:
    """Elements [Key or Value, token of the ledger, head, D]."""
    identity = ledger.identity[: ledger.size]
    return np.stack([scene.data(kind, identity) for kind in (data.keys, data.values)])


def check_repeated(device: ReferenceDevice, call: Call) -> None:
    """The stream again, from its beginning: the same results, the same memory."""
    results = device.run(call.stream, call.payload)
    assert np.array_equal(results.mac, call.results.mac)
    assert np.array_equal(results.read, call.results.read)
    assert image(device.memory) == image(call.after)


def check_reads(call: Call, stopped: Stopped) -> None:
    """A stream of reads that stopped has changed nothing, and what it read is right."""
    assert image(stopped.device.memory) == image(call.after)
    for name in ("mac", "read"):
        found, due = getattr(stopped.results, name), getattr(call.results, name)
        written = getattr(stopped.results, f"{name}_written")
        assert np.array_equal(found[written], due[written])


def followed(scene: Scene, plan: StepPlan, expected: NDArray[np.float32]) -> None:
    """The streams of a step come to the reference's outputs."""
    placed = plan.place()
    result = scene.run(placed, Validated(scene, placed))
    assert result.outputs is not None
    assert result.outputs.tobytes() == expected.tobytes()


@attrs.define
class Sequel:
    """The steps after an abandoned stream, planned once for all its stops."""

    scene: Scene
    plans: list[tuple[StepPlan, NDArray[np.float32]]] = attrs.field(factory=list)

    def add(self, plan: StepPlan) -> None:
        self.plans.append((plan, self.scene.expected(plan.place())))

    def play(self, stopped: Stopped) -> None:
        device, validator = stopped.copy()
        scene = attrs.evolve(self.scene, device=device, validators=[validator])
        for plan, expected in self.plans:
            followed(scene, plan, expected)


def after_abandoned_commit(scene: Scene, plan: StepPlan) -> Sequel:
    """Nothing is published: blocks are read in slots, and their commits come again.

    Then they are read in their O1Vs, and others take their slots.
    """
    sequel, slots = Sequel(scene), {commit.slot for commit in plan.commits}
    again = scene.plan([("a", [], [4]), ("b", [], [5])], {"a": 1, "b": 1, "c": 1})
    assert {commit.slot for commit in again.commits} >= slots
    sequel.add(again)
    scene.runtime.publish(again)
    last = scene.plan([("d", [], [6]), ("e", [], [7])], dict.fromkeys("abcde", 1))
    assert slots & set(last.place().write_slot.tolist())
    sequel.add(last)
    return sequel


def after_abandoned_writes(scene: Scene, plan: StepPlan) -> Sequel:
    """The writers are preempted and what they were writing is dropped.

    Others hit what is left, and take the places and slots of the rest.
    """
    sequel, size = Sequel(scene), scene.layout.block_tokens
    slots = set(plan.place().write_slot.tolist())
    for request in "abc":
        scene.runtime.finish(request)
    for block in (1, 2):
        scene.runtime.evict(block)
    scene.tokens["d"] = scene.tokens["a"][:size]
    again = scene.plan(
        [("d", [0], [1]), ("e", [], [2]), ("f", [], [3])], {"d": 2, "e": 1, "f": 3}
    )
    assert slots & set(again.place().write_slot.tolist())
    sequel.add(again)
    return sequel


def taken_down(layout: Layout) -> tuple[Scene, PlacedStep, list[Call]]:
    """The step that is to be interrupted, executed whole."""
    scene, plan = prepared(layout)
    placed, calls = plan.place(), list[Call]()
    result = scene.run(placed, Validated(scene, placed, calls))
    assert result.outputs is not None
    assert result.outputs.tobytes() == scene.expected(placed).tobytes()
    return scene, placed, calls


def count(calls: list[Call], name: str) -> None:
    """Say how many stops were tried."""
    seen = {str(call.stream.phase): len([*stops(call)]) for call in calls}
    print(f"{name}: {sum(seen.values())} interruptions, {seen}")  # noqa: T201


def stop_everywhere(
    scene: Scene, placed: PlacedStep, call: Call, sequel: Sequel
) -> None:
    """Every stop of a stream that writes: abandoned, and repeated."""
    last = None
    for stop in stops(call):
        stopped = Stopped.at(scene, placed, call, stop)
        check_tags(scene, stopped.device.memory, stopped.validators)
        now = image(stopped.device.memory)
        if now != last:  # commands that write nothing leave nothing new to follow
            sequel.play(stopped)
            last = now
        check_repeated(stopped.device, call)
        stopped.validator.check(placed, call.stream, scene.identify_in(placed))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", SHAPES)
def test_commits_stopped_before_every_command(name: str, way: CommitWay) -> None:
    """No value is lost, the slot stays visible, and it can be used again."""
    layout = SHAPES[name].layout(way)
    scene, placed, calls = taken_down(layout)
    sequel = after_abandoned_commit(*prepared(layout))
    commits = [call for call in calls if call.stream.phase == Phase.COMMIT]
    for call in commits:
        stop_everywhere(scene, placed, call, sequel)

    assert len(commits) == 1
    count(commits, f"{name}, {way}")


@pytest.mark.parametrize("name", SHAPES)
def test_other_streams_stopped_before_every_command(name: str) -> None:
    """Written again or dropped, nothing of the half of a stream is ever read."""
    layout = SHAPES[name].layout("host")
    scene, placed, calls = taken_down(layout)
    sequel = after_abandoned_writes(*prepared(layout))
    others = [call for call in calls if call.stream.phase != Phase.COMMIT]
    for call in others:
        if call.stream.phase in WRITES:
            stop_everywhere(scene, placed, call, sequel)
        else:
            for stop in stops(call):
                check_reads(call, Stopped.at(scene, placed, call, stop))

    assert {call.stream.phase for call in others} == set(Phase) - {Phase.COMMIT}
    count(others, name)


@pytest.mark.parametrize("name", SHAPES)
def test_only_commits_depend_on_the_way_to_commit(name: str) -> None:
    """So that it is enough to stop the other streams for one of the ways."""
    texts = []
    for way in WAYS:
        _, _, calls = taken_down(SHAPES[name].layout(way))
        texts.append([c.stream.to_text() for c in calls if c.stream.phase != "commit"])

    assert texts[0] == texts[1] == texts[2]
