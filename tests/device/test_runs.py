"""Runs as a whole: heads and layers, interruptions, and what is refused unexecuted."""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np
import pytest

from patton.commands import CommandStream, Op, Source
from patton.config import ElementType
from patton.device import PlainDevice, ReferenceDevice
from patton.elements import encode
from patton.errors import (
    DeviceConfigError,
    ExecutionError,
    FrameError,
    PayloadError,
    ProtocolError,
)
from patton.executor import Payload, Results
from tests.device.scripts import (
    Script,
    filling,
    frame_of,
    payload_of,
    same_results,
    small_device,
)
from tests.device.streams import (
    random_device,
    random_frame,
    random_payload,
    random_stream,
)

Device = PlainDevice | ReferenceDevice
BOTH = pytest.mark.parametrize("kind", [PlainDevice, ReferenceDevice])
DEVICE = small_device()


@BOTH
def test_heads_and_layers_have_their_own_rows(kind: type[Device]) -> None:
    """Five heads of one channel each on two groups: two folds full, one half empty.

    Head h: channel h % 2 * 2 + channel, row (layer * 3 + h // 2) * 2 + row.
    """
    frame = frame_of(
        DEVICE, heads=5, groups=2, channels_per_head=2, folds=3, rows_per_plane=2
    )
    script = Script(DEVICE, frame).add(Op.ACT, channel=1, channels=1, row=1)
    script.add(Op.WR, channel=1, channels=1, bank=1, banks=1, row=1, burst=3)
    script.add(Op.RD, channel=1, channels=1, bank=1, banks=1, row=1, burst=3)
    stream = script.stream()
    values = np.arange(1, 5 * 4 + 1, dtype=np.uint16).reshape(1, 5, 4)
    device = kind(DEVICE)

    results = device.run(stream, payload_of(stream, values), layer=1)

    assert values.tolist() == results.read.tolist()
    assert results.read_written.all()
    # The sixth head does not exist: channel 3 of the last fold stays untouched.
    expected = [(1, 7), (1, 9), (1, 11), (3, 7), (3, 9)]
    assert expected == [row[:2] for row in device.memory.image()]
    for head, place in enumerate([(1, 7), (3, 7), (1, 9), (3, 9), (1, 11)]):
        bits, _written = device.memory.read(place[0], 1, place[1], 3)
        assert values[0, head].tolist() == bits.tolist()


@BOTH
def test_operands_resolve_per_head_and_channel(kind: type[Device]) -> None:
    """One multicast command: every head has its data, a WR every channel, too."""
    frame = frame_of(DEVICE, heads=2, groups=2, channels_per_head=2)
    script = Script(DEVICE, frame).add(Op.ACT).add(Op.WR, banks=2).add(Op.WRGB)
    script.add(Op.WRBIAS).add(Op.MACAB).add(Op.RDMAC)
    stream = script.stream()
    # WR: by channel, then bank; then the operand of both channels. Each for two heads.
    numbers = np.array([[1, 2], [3, 4], [5, 6], [7, 8], [10, 100]], np.float32)
    table = np.zeros((5, 2, 4), np.uint16)
    table[:, :, 0] = encode(numbers, DEVICE.element)

    results = kind(DEVICE).run(stream, payload_of(stream, table))

    expected = np.array([[[10, 30], [200, 400]], [[50, 70], [600, 800]]], np.float32)
    assert encode(expected, DEVICE.element).tolist() == results.mac.tolist()


@BOTH
def test_the_payload_index_is_followed(kind: type[Device]) -> None:
    """A burst that is stored once may be sent several times."""
    script = Script(DEVICE).add(Op.ACT).add(Op.WR, channels=1, count=4)
    stream = script.add(Op.RD, channels=1, count=4).stream()
    table = np.arange(12, dtype=np.uint16).reshape(3, 1, 4)
    index = np.array([2, 2, 0, 1, 1, 2, 0, 0], np.int32)

    results = kind(DEVICE).run(stream, Payload(table, index))

    assert table[index].tolist() == results.read.tolist()


def test_few_products_at_a_time_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """How much is computed or written at once, and in which bundles, does not show."""
    for name, value in (("batched._PRODUCTS", 1), ("batched._WRITTEN_BURSTS", 1)):
        monkeypatch.setattr(f"patton.device.{name}", value)
    monkeypatch.setattr("patton.device.products.MEMBERS_MAX", 2)
    for seed in range(20):
        check_alike(seed)


def test_bundles_do_not_trust_their_marks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where all sequences of bursts have the same mark, they are told apart."""
    monkeypatch.setattr(
        "patton.device.products._Bursts._marks",
        lambda self: np.zeros(len(self.begin) - 1, np.uint64),
    )
    for seed in range(20):
        check_alike(seed)


def check_alike(seed: int) -> None:
    rng = np.random.default_rng(seed)
    config = random_device(rng)
    frame = random_frame(rng, config)
    devices = PlainDevice(config), ReferenceDevice(config)
    for stream in (filling(config, frame, 1), random_stream(rng, config, frame)):
        payload = random_payload(rng, stream, config)
        assert same_results(*(device.run(stream, payload) for device in devices))
    assert images_equal(*devices)


def images_equal(one: Device, other: Device) -> bool:
    return list(one.memory.image()) == list(other.memory.image())


@BOTH
def test_entries_without_commands_do_nothing(kind: type[Device]) -> None:
    """Whatever they name: no command says it."""
    script = Script(DEVICE)
    wild = {"channel": 999, "channels": 999, "row": 2**31, "register": 99}
    for op in Op:
        if op not in (Op.ACT, Op.WRBIAS, Op.RDMAC, Op.RDAF):
            script.add(op, **wild, count=0)
    script.add(Op.ACT).add(Op.WR, channels=1).add(Op.RD, channels=1)
    script.add(Op.RD, **wild, banks=0, count=9)
    stream = script.stream()

    results = kind(DEVICE).run(
        stream, payload_of(stream, np.ones((2, 1, 4), np.uint16))
    )

    assert [[[1] * 4]] * 2 == results.read.tolist()


# --- interruptions --------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(6))
def test_stopped_after_every_command(seed: int) -> None:
    """Memory and results are those of the commands before, in both executors.

    What a command does is what the state after it has more than the one before; one
    command at a time and together they come to the same.
    """
    rng = np.random.default_rng(seed)
    config = random_device(rng)
    frame = random_frame(rng, config)
    sources: tuple[Source, ...] = ("host", "read-back", "copy")
    source = sources[seed % 3]
    stream = random_stream(rng, config, frame, source=source, actions=6)
    payload = random_payload(rng, stream, config)
    total = int(stream.command_offsets()[-1]) * frame.folds
    fill = filling(config, frame, 1)
    before = random_payload(rng, fill, config)
    for stop in range(total + 2):
        devices = PlainDevice(config), ReferenceDevice(config)
        for device in devices:
            device.run(fill, before)
        results = [device.run(stream, payload, stop=stop) for device in devices]
        assert same_results(*results), stop
        assert images_equal(*devices), stop
    whole = ReferenceDevice(config)
    whole.run(fill, before)
    assert same_results(whole.run(stream, payload), results[0])
    assert images_equal(whole, devices[0])


@BOTH
def test_a_stop_counts_commands_over_the_folds(kind: type[Device]) -> None:
    """Numbers go on from fold to fold; nothing from the stop on is done."""
    frame = frame_of(DEVICE, heads=2, groups=1, folds=2, rows_per_plane=8)
    script = Script(DEVICE, frame).add(Op.ACT).add(Op.WR, banks=1, count=2)
    stream = script.add(Op.RD, banks=1, count=2, channels=1).stream()  # 5 commands
    ones = np.ones((8, 2, 4), np.uint16)

    def outcome(stop: int) -> tuple[int, int]:
        device = kind(DEVICE)
        results = device.run(stream, payload_of(stream, ones), stop=stop)
        bursts = [
            device.memory.read(0, 0, row, burst) for row in (0, 8) for burst in (0, 1)
        ]
        return sum(int(mask == 15) for _bits, mask in bursts), int(
            results.read.sum() // 4
        )

    # (written bursts in channel 0, returned bursts)
    assert [(0, 0), (0, 0), (1, 0), (2, 0), (2, 1), (2, 2)] == [
        outcome(stop) for stop in range(6)
    ]
    assert [(2, 2), (3, 2), (4, 2), (4, 3), (4, 4), (4, 4)] == [
        outcome(stop) for stop in range(6, 12)
    ]
    assert (0, 0) == outcome(-1)


@BOTH
def test_an_interrupted_stream_can_be_repeated(kind: type[Device]) -> None:
    """The step order lets the same step come again."""
    device = kind(DEVICE)
    stream = Script(DEVICE).add(Op.ACT).add(Op.WR).stream(step=3)
    payload = payload_of(stream, np.ones((8, 1, 4), np.uint16))
    device.run(stream, payload, stop=4)
    device.run(stream, payload)

    assert 4 == len(list(device.memory.image()))


# --- refusals -------------------------------------------------------------------------


@BOTH
@pytest.mark.parametrize("element", [ElementType.FP8, ElementType.INT8])
def test_placement_only_elements_are_refused(
    kind: type[Device], element: ElementType
) -> None:
    """No device is made for elements that it cannot compute with."""
    with pytest.raises(DeviceConfigError, match="bf16 or fp16"):
        kind(small_device(element=element))


def one_write(frame_changes: dict[str, Any] | None = None) -> CommandStream:
    frame = frame_of(DEVICE, **(frame_changes or {}))
    return Script(DEVICE, frame).add(Op.ACT).add(Op.WR, channels=1).stream(step=1)


@BOTH
@pytest.mark.parametrize(
    ("changes", "layer", "parameter", "accepted"),
    [
        ({"banks": 4}, 0, "banks", "2"),
        ({"lanes": 8}, 0, "lanes", "4"),
        ({"bursts_per_row": 8}, 0, "bursts_per_row", "4"),
        ({"groups": 2}, 0, "channels", "up to 4"),
        ({"heads": 2}, 0, "heads", "up to groups * folds, 1"),
        ({"heads": 0}, 0, "heads, groups, channels per head or folds", "from 1"),
        ({"groups": 0}, 0, "heads, groups, channels per head or folds", "from 1"),
        ({"rows_per_plane": 17}, 0, "rows of a layer", "1 to 16"),
        ({"rows_per_plane": 4, "folds": 2}, 2, "layer", "0 to 1"),
        ({"rows_per_plane": 0}, 0, "rows of a layer", "1 to 16"),
        ({}, 1, "layer", "0 to 0"),
        ({}, -1, "layer", "0 to 0"),
    ],
)
def test_streams_of_another_device_are_refused(
    kind: type[Device],
    changes: dict[str, Any],
    layer: int,
    parameter: str,
    accepted: str,
) -> None:
    """The frame must be the device's, and the layer inside its rows."""
    stream = one_write()
    changed = attrs.evolve(stream, frame=attrs.evolve(stream.frame, **changes))
    payload = payload_of(stream)
    error = refuse(kind(DEVICE), FrameError, changed, payload, layer, parameter)
    assert accepted == error.accepted


@BOTH
@pytest.mark.parametrize(
    ("changes", "parameter"),
    [
        ({"op": np.array([0, len(Op)], np.uint8)}, "op"),
        ({"row": np.zeros(3, np.uint32)}, "column lengths"),
    ],
)
def test_malformed_columns_are_refused(
    kind: type[Device], changes: dict[str, Any], parameter: str
) -> None:
    """Unknown commands, and columns that do not belong together."""
    stream = one_write()
    changed = attrs.evolve(stream, **changes)
    refuse(kind(DEVICE), FrameError, changed, payload_of(stream), 0, parameter)


TABLE = np.ones((2, 1, 4), np.uint16)
INDEX = np.array([0, 1], np.int32)


@BOTH
@pytest.mark.parametrize(
    ("payload", "parameter"),
    [
        (Payload(TABLE[:, 0], INDEX), "table shape"),
        (Payload(np.ones((2, 2, 4), np.uint16), INDEX), "table shape"),
        (Payload(np.ones((2, 1, 3), np.uint16), INDEX), "table shape"),
        (Payload(TABLE.astype(np.float32), INDEX), "table type"),
        (Payload(TABLE, INDEX[:1]), "index shape"),
        (Payload(TABLE, np.zeros(3, np.int32)), "index shape"),
        (Payload(TABLE, np.array([0, 2], np.int32)), "index"),
        (Payload(TABLE, np.array([-1, 0], np.int32)), "index"),
    ],
)
def test_payloads_of_another_shape_are_refused(
    kind: type[Device], payload: Payload, parameter: str
) -> None:
    """The host's data must be what the stream's entries take."""
    refuse(kind(DEVICE), PayloadError, one_write(), payload, 0, parameter)


def refuse(
    device: Device,
    error: type[Any],
    stream: CommandStream,
    payload: Payload,
    layer: int,
    parameter: str,
) -> Any:
    """The error is typed and names the parameter; nothing has happened."""
    with pytest.raises(error) as caught:
        device.run(stream, payload, layer=layer)

    assert parameter == caught.value.parameter
    assert caught.value.accepted in str(caught.value)
    assert [] == list(device.memory.image())
    # Nor does the refused step stand in the way of an earlier one.
    good = attrs.evolve(one_write(), step=0)
    device.run(good, payload_of(good))
    return caught.value


@BOTH
@pytest.mark.parametrize("seed", range(10))
def test_a_refused_stream_changes_nothing(kind: type[Device], seed: int) -> None:
    """Not a byte of the memory, though only its last command is bad."""
    rng = np.random.default_rng(seed)
    config = small_device()
    frame = frame_of(config)
    device = kind(config)
    first = random_stream(rng, config, frame)
    device.run(first, random_payload(rng, first, config))
    before = list(device.memory.image())
    script = Script(config).add(Op.ACT, row=3).add(Op.WR, row=3, count=4)
    bad = script.add(Op.RDAF).stream()

    with pytest.raises(ProtocolError):
        device.run(bad, random_payload(rng, bad, config))

    assert before == list(device.memory.image())


def test_results_of_nothing_are_empty() -> None:
    """A stream without commands returns arrays without rows."""
    stream = Script(DEVICE).stream()

    results: Results = ReferenceDevice(DEVICE).run(stream, payload_of(stream))

    assert ((0, 1, 2), (0, 1, 4)) == (results.mac.shape, results.read.shape)
    assert same_results(results, PlainDevice(DEVICE).run(stream, payload_of(stream)))


def test_errors_of_executors_are_one_family() -> None:
    """A caller that wants to know only whether a stream ran catches one class."""
    for error in (ProtocolError, FrameError, PayloadError):
        assert issubclass(error, ExecutionError)
