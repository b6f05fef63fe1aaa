"""The two executors against each other, on random streams of every kind.

The streams mix all commands on small devices of odd shape, where everything collides;
memory, written bits, results and refusals must be the same to the last bit.
"""

from __future__ import annotations

from collections import Counter

import attrs
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from patton.commands import CommandStream, Op, Source
from patton.config import DeviceConfig
from patton.device import PlainDevice, ReferenceDevice
from patton.device.plan import plan_of
from patton.device.protocol import first_bad_entry
from patton.device.rules import FOREIGN, Rule, first_violation
from patton.errors import ProtocolError
from patton.executor import Payload, Results
from tests.device.scripts import filling, frame_of, same_results, small_device
from tests.device.streams import (
    layers_of,
    mutated,
    random_device,
    random_frame,
    random_payload,
    random_stream,
)

SEEDS = st.integers(0, 2**32 - 1)
SOURCES: tuple[Source, ...] = ("host", "host", "read-back", "copy")


def random_sources(rng: np.random.Generator, many: int) -> list[Source]:
    return [SOURCES[i] for i in rng.integers(len(SOURCES), size=many)]


class Pair:
    """Both executors over one device."""

    def __init__(self, config: DeviceConfig) -> None:
        self.config = config
        self.devices = PlainDevice(config), ReferenceDevice(config)

    def run(
        self,
        stream: CommandStream,
        payload: Payload,
        layer: int,
        stop: int | None = None,
    ) -> Results | ProtocolError:
        """What both answer, having compared all that can be seen."""
        answers: list[Results | ProtocolError] = []
        for device in self.devices:
            try:
                answers.append(device.run(stream, payload, layer=layer, stop=stop))
            except ProtocolError as error:
                answers.append(error)
        plain, batched = (list(device.memory.image()) for device in self.devices)
        assert plain == batched
        one, other = answers
        if isinstance(one, ProtocolError):
            assert isinstance(other, ProtocolError)
            assert attrs.astuple(one) == attrs.astuple(other)
        else:
            assert isinstance(other, Results)
            assert same_results(one, other)
        return one


def small_enough(stream: CommandStream) -> bool:
    """Whether a changed stream can still be executed in no time."""
    sizes = (stream.payload_offsets, stream.read_offsets, stream.mac_offsets)
    return max(int(offsets()[-1]) for offsets in sizes) < 10_000


@given(seed=SEEDS)
def test_legal_streams_have_one_outcome(seed: int) -> None:
    """Several streams one after another, in any layer, some of them interrupted."""
    rng = np.random.default_rng(seed)
    config = random_device(rng)
    frame = random_frame(rng, config)
    pair, layers = Pair(config), layers_of(config, frame)
    for source in random_sources(rng, 2):
        layer = int(rng.integers(layers))
        if rng.random() < 0.5:
            fill = filling(
                config, frame, int(rng.integers(1, frame.rows_per_plane + 1))
            )
            pair.run(fill, random_payload(rng, fill, config), layer)
        stream = random_stream(rng, config, frame, source=source)
        commands = int(stream.command_offsets()[-1]) * frame.folds
        stop = None if rng.random() < 0.7 else int(rng.integers(commands + 1))
        answer = pair.run(stream, random_payload(rng, stream, config), layer, stop)
        assert isinstance(answer, Results), answer


@given(seed=SEEDS)
def test_damaged_streams_have_one_outcome(seed: int) -> None:
    """Both refuse the same command for the same reason, or both execute it."""
    rng = np.random.default_rng(seed)
    config = random_device(rng)
    frame = random_frame(rng, config)
    pair = Pair(config)
    (source,) = random_sources(rng, 1)
    stream = random_stream(rng, config, frame, source=source)
    for _ in range(int(rng.integers(1, 4))):
        if len(stream):
            stream = mutated(rng, stream)
    if small_enough(stream):
        pair.run(stream, random_payload(rng, stream, config), 0)
    violation = first_violation(stream, config)
    entry = None if violation is None else violation.entry
    assert entry == first_bad_entry(stream, config)


def test_damage_is_of_every_kind() -> None:
    """The test above would be weaker than it looks if some rule were never broken."""
    found: Counter[str] = Counter()
    for seed in range(600):
        rng = np.random.default_rng(seed)
        config = random_device(rng)
        source = SOURCES[seed % len(SOURCES)]
        stream = random_stream(rng, config, random_frame(rng, config), source=source)
        if len(stream):
            error = first_violation(mutated(rng, stream), config)
            found["none" if error is None else error.rule] += 1

    # No random stream has an RDAF or a MACSV, and the step order is not in the stream.
    assert {*Rule, "none"} - {Rule.FUNCTION, Rule.STEP} == found.keys()


def test_random_streams_do_what_they_are_for() -> None:
    """All kinds of commands, cuts, bundles, and results that are not zero."""
    ops: Counter[Op] = Counter()
    seen: Counter[str] = Counter()
    config = small_device(copy_column="free")
    frame = frame_of(config)
    for seed in range(40):
        rng = np.random.default_rng(seed)
        device = ReferenceDevice(config)
        fill = filling(config, frame, 3)
        device.run(fill, random_payload(rng, fill, config))
        source = SOURCES[seed % len(SOURCES)]
        stream = random_stream(rng, config, frame, source=source, actions=30)
        ops.update(stream.counts())
        plan = plan_of(stream)
        seen["cuts"] += len(plan.cuts)
        seen["bundles"] += sum(len(group.pieces) > 1 for group in plan.products.groups)
        seen["repeated writes"] += int((plan.writes.turn > 0).sum())
        results = device.run(stream, random_payload(rng, stream, config))
        seen["results"] += int(np.count_nonzero(results.mac))
        seen["written results"] += int(results.mac_written.sum())
        seen["unwritten results"] += int((~results.mac_written).sum())

    assert set(Op) - FOREIGN == ops.keys()
    assert {} == {name: count for name, count in seen.items() if count < 20}


@pytest.mark.parametrize("many", [1, 7, 40])
def test_one_long_stream(many: int) -> None:
    """More commands than fit any chunk, on a device with many channels."""
    rng = np.random.default_rng(many)
    config = small_device(channels=40, banks=3, rows=64, row_bytes=96, burst_bytes=16)
    frame = frame_of(config, heads=many, groups=many, channels_per_head=40 // many)
    pair = Pair(config)
    fill = filling(config, frame, 4)
    pair.run(fill, random_payload(rng, fill, config), 0)
    stream = random_stream(rng, config, frame, actions=60)

    pair.run(stream, random_payload(rng, stream, config), 0)
