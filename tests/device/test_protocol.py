"""Which command of which stream is refused, by both executors and by both checks.

Clause DEV-PROTOCOL.
"""

from __future__ import annotations

from importlib.util import module_from_spec, spec_from_file_location
from typing import Any

import attrs
import numpy as np
import pytest

from patton.commands import CommandStream, Op, Phase
from patton.config import DeviceConfig
from patton.device import PlainDevice, ReferenceDevice
from patton.device.protocol import first_bad_entry
from patton.device.rules import Rule, first_violation
from patton.errors import ProtocolError
from tests.device.scripts import Script, frame_of, payload_of, small_device
from tests.sources import PACKAGE

DEVICE = (
    small_device()
)  # 4 channels, 2 banks, 16 rows, 4 bursts of 4 lanes, 2 registers
FREE = small_device(copy_column="free")
MASKLESS = small_device(write_masks=False)
PARTS = {"row": 5, "count": 4}


def begun(device: DeviceConfig = DEVICE, **changes: Any) -> Script:
    """Row 5 is open everywhere, the Global Buffer full, register 0 initialised."""
    script = Script(device, frame_of(device, **changes))
    script.add(Op.ACT, row=5).add(Op.WRGB, count=4)
    return script.add(Op.WRBIAS)


def refusal(stream: CommandStream, device: DeviceConfig) -> ProtocolError:
    """The same from both executors; the whole-stream check finds its entry."""
    errors = []
    for executor in (PlainDevice(device), ReferenceDevice(device)):
        with pytest.raises(ProtocolError) as caught:
            executor.run(stream, payload_of(stream))
        assert [] == list(executor.memory.image())
        errors.append(attrs.astuple(caught.value))
    assert errors[0] == errors[1]
    error = ProtocolError(*errors[0])
    assert error.entry == first_bad_entry(stream, device)
    return error


# The broken rule, the command inside the bad entry, and the bad entry after `begun`.
BAD: list[tuple[Rule, int, Op, dict[str, Any]]] = [
    (Rule.ADDRESS, 0, Op.ACT, {"channel": 3, "channels": 2}),
    (Rule.ADDRESS, 0, Op.ACT, {"channels": 0}),
    (Rule.ADDRESS, 0, Op.ACT, {"channel": 65535, "channels": 65535}),
    (Rule.ADDRESS, 0, Op.ACT, {"bank": 1, "banks": 2}),
    (Rule.ADDRESS, 0, Op.ACT, {"banks": 0}),
    (Rule.ADDRESS, 0, Op.ACT, {"row": 16}),
    (Rule.ADDRESS, 0, Op.ACT, {"row": 2**32 - 1}),
    (Rule.ADDRESS, 1, Op.WRGB, {"burst": 3, "count": 2}),
    (Rule.ADDRESS, 0, Op.WRGB, {"burst": 65535, "count": 1}),
    (Rule.ADDRESS, 0, Op.WRBIAS, {"register": 2}),
    (Rule.ADDRESS, 0, Op.WRBIAS, {"banks": 1}),
    (Rule.ADDRESS, 0, Op.RDMAC, {"register": 255}),
    (Rule.ADDRESS, 0, Op.MACAB, {"row": 5, "banks": 1}),
    (Rule.ADDRESS, 0, Op.MACAB, {"row": 5, "bank": 1}),
    (Rule.ADDRESS, 2, Op.MACAB, {"row": 5, "burst": 2, "count": 3}),
    (Rule.ADDRESS, 0, Op.RDCP, {"row": 5, "banks": 2}),
    (Rule.ADDRESS, 0, Op.RDCP, {"row": 5, "bank": 2}),
    (Rule.ADDRESS, 0, Op.RDCP, {"row": 5, "reference": -1}),
    (Rule.ADDRESS, 1, Op.WRCP, {"row": 5, "reference": 3, "burst": 3, "count": 2}),
    (Rule.ADDRESS, 4, Op.RD, PARTS | {"bank": 1, "banks": 2}),
    (Rule.ADDRESS, 3, Op.RD, {"row": 5, "burst": 1, "count": 4}),
    (Rule.ADDRESS, 0, Op.WR, {"row": 5, "lanes": 0x10}),
    (Rule.ADDRESS, 0, Op.WR, {"row": 5, "lanes": 2**63}),
    (Rule.FUNCTION, 0, Op.RDAF, {}),
    (Rule.FUNCTION, 0, Op.MACSV, {"row": 5}),
    (Rule.COLUMN, 0, Op.RDCP, {"row": 5, "burst": 1, "reference": 2}),
    (Rule.COLUMN, 0, Op.WRCP, {"row": 5, "burst": 1, "reference": 0}),
    (Rule.ROW, 0, Op.MACAB, {"row": 4}),
    (Rule.ROW, 0, Op.RDCP, {"row": 0}),
    (Rule.ROW, 0, Op.WRCP, {"row": 6}),
    (Rule.ROW, 0, Op.RD, {"row": 4}),
    (Rule.ROW, 0, Op.WR, {"row": 15}),
    (Rule.REGISTER, 0, Op.MACAB, PARTS | {"register": 1}),
    (Rule.REGISTER, 0, Op.RDMAC, {"register": 1}),
]


@pytest.mark.parametrize(
    ("rule", "place", "op", "fields"),
    BAD,
    ids=[f"{r}-{o.name}-{f}" for r, _, o, f in BAD],
)
def test_a_bad_command_is_named(
    rule: Rule, place: int, op: Op, fields: dict[str, Any]
) -> None:
    """The flat number, the entry and the command; what follows does not matter."""
    stream = begun().add(op, **fields).add(Op.RDAF).stream()

    error = refusal(stream, DEVICE)

    # ACT, four WRGBs and WRBIAS come before.
    assert (rule, 6 + place, 3) == (error.rule, error.index, error.entry)
    assert error.command.startswith(op.name)
    assert error.accepted


def test_the_error_reads_well() -> None:
    """The command is the single one, with its own bank and burst."""
    stream = begun().add(Op.RD, row=5, bank=1, banks=2, count=4).stream()

    assert (
        "command 10 (entry 3, RD channel=0+4 bank=2+1 row=5 burst=0+1 register=0 "
        "reference=0 element=0): bank 2+1; accepted: 1 or more of 0 to 1"
    ) == str(refusal(stream, DEVICE))


@pytest.mark.parametrize(
    ("op", "fields"),
    [
        (Op.ACT, {"channel": 3, "channels": 1, "bank": 1, "banks": 1, "row": 15}),
        (Op.WRGB, {"burst": 3}),
        (Op.WRBIAS, {"register": 1}),
        (Op.MACAB, PARTS),
        (Op.RDMAC, {}),
        (Op.RDCP, PARTS | {"bank": 1}),
        (Op.WRCP, {"row": 5, "burst": 3, "reference": 3}),
        (Op.RD, PARTS),
        (Op.WR, PARTS | {"lanes": 0x8}),
        (Op.WR, {"row": 99, "count": 0}),
        (Op.MACAB, {"channel": 99, "register": 9, "count": 0}),
    ],
)
def test_a_good_command_is_not_refused(op: Op, fields: dict[str, Any]) -> None:
    """The last address of everything; and an entry without commands asks nothing."""
    stream = begun().add(op, **fields).stream()

    assert first_bad_entry(stream, DEVICE) is None
    assert first_violation(stream, DEVICE) is None


def test_every_bank_needs_the_row() -> None:
    """Another row, or none, in one bank of one channel is enough."""
    script = begun().add(Op.ACT, channel=2, channels=1, bank=1, banks=1, row=6)
    script.add(Op.MACAB, channel=0, channels=2, row=5)
    script.add(Op.RD, bank=0, banks=1, row=5)

    error = refusal(script.add(Op.RD, row=5, count=2).stream(), DEVICE)

    assert (Rule.ROW, 6) == (error.rule, error.entry)
    assert 6 + 1 + 1 + 1 + 2 == error.index
    assert "row 6 open in channel 2" == error.found


def test_act_closes_what_was_open() -> None:
    """A row that was open before is not."""
    error = refusal(begun().add(Op.ACT, row=6).add(Op.MACAB, row=5).stream(), DEVICE)

    assert (Rule.ROW, 4) == (error.rule, error.entry)


def test_a_stream_starts_with_nothing() -> None:
    """Rows, buffer and registers of the stream before do not count."""
    for op, rule in ((Op.MACAB, Rule.ROW), (Op.RDMAC, Rule.REGISTER)):
        for executor in (PlainDevice(DEVICE), ReferenceDevice(DEVICE)):
            before, after = begun().stream(), Script(DEVICE).add(op, row=5).stream()
            executor.run(before, payload_of(before))
            with pytest.raises(ProtocolError) as caught:
                executor.run(after, payload_of(after))
            assert (rule, 0, 0) == (
                caught.value.rule,
                caught.value.index,
                caught.value.entry,
            )


def test_each_burst_of_an_operand_must_be_loaded() -> None:
    """The first burst that is missing in any of the channels is named."""
    script = Script(DEVICE).add(Op.ACT, row=5).add(Op.WRBIAS)
    script.add(Op.WRGB, burst=0, count=3)
    script.add(Op.WRGB, burst=3, channel=0, channels=3)
    script.add(Op.MACAB, row=5, count=4, channels=3).add(Op.MACAB, row=5, count=4)

    error = refusal(script.stream(), DEVICE)

    assert (Rule.OPERAND, 5, 1 + 1 + 3 + 1 + 4 + 3) == (
        error.rule,
        error.entry,
        error.index,
    )
    assert error.found.startswith("Global Buffer burst 3 of channel 3")


def test_a_copy_loads_where_it_goes() -> None:
    """RDCP to other bursts makes those operands, and no others."""
    script = Script(FREE).add(Op.ACT, row=5).add(Op.WRBIAS)
    script.add(Op.RDCP, row=5, burst=0, count=2, reference=2)
    script.add(Op.WRCP, row=5, burst=1, count=2, reference=2)
    assert first_bad_entry(script.stream(), FREE) is None
    script.add(Op.MACAB, row=5, burst=1, count=2)

    error = refusal(script.stream(), FREE)

    assert (Rule.OPERAND, 4, 6) == (error.rule, error.entry, error.index)


def test_reading_a_register_leaves_it_undefined() -> None:
    """A second RDMAC is refused, and so is a MACAB; other channels keep theirs."""
    script = begun().add(Op.RDMAC, channel=1, channels=1)
    script.add(Op.RDMAC, channel=2, channels=2)
    assert first_bad_entry(script.stream(), DEVICE) is None
    for op in (Op.MACAB, Op.RDMAC):
        more = Script(DEVICE)
        more.entries = script.entries.copy()

        error = refusal(more.add(op, row=5).stream(), DEVICE)

        assert (Rule.REGISTER, 5) == (error.rule, error.entry)
        assert "register 0 of channel 1 not initialised" == error.found


def test_a_register_may_be_initialised_twice() -> None:
    """The first sum is given up."""
    assert first_bad_entry(begun().add(Op.WRBIAS).stream(), DEVICE) is None


def test_masked_writes_need_masks() -> None:
    """A device without them writes whole bursts: all lanes, or the rest filled."""
    whole = begun(MASKLESS).add(Op.WR, row=5).add(Op.WR, row=5, lanes=1, fill=True)
    assert first_bad_entry(whole.stream(), MASKLESS) is None

    error = refusal(whole.add(Op.WR, row=5, lanes=0b0111).stream(), MASKLESS)

    assert (Rule.MASK, 5) == (error.rule, error.entry)


@pytest.mark.parametrize("missing", ["lanes", "fill"])
def test_writes_need_their_columns(missing: str) -> None:
    """A stream without lanes or fill cannot write."""
    stream = begun().add(Op.WR, row=5).stream()
    stream = attrs.evolve(stream, **{missing: None})  # type: ignore[arg-type]

    assert Rule.MASK == refusal(stream, DEVICE).rule


def test_copies_take_nothing_from_the_host() -> None:
    """A WR in a stream of copies has no data."""
    error = refusal(begun().add(Op.WR, row=5).stream(source="copy"), DEVICE)

    assert Rule.SOURCE == error.rule


@pytest.mark.parametrize(
    ("reference", "place"), [(-1, 0), (-9, 0), (0, None), (8, None), (9, 7), (16, 0)]
)
def test_what_is_written_back_was_read(reference: int, place: int | None) -> None:
    """One channel of the eight bursts each that two RDs returned before."""
    script = begun().add(Op.RD, row=5, count=4, channels=2)
    script.add(Op.WR, row=5, count=4, channels=1, reference=reference)
    script.add(Op.RD, row=5, count=4)
    stream = script.stream(source="read-back")
    if place is None:
        assert first_bad_entry(stream, DEVICE) is None
        return

    error = refusal(stream, DEVICE)

    assert (Rule.SOURCE, 4, 6 + 8 + place) == (error.rule, error.entry, error.index)


def test_the_last_channel_reads_ahead() -> None:
    """A multicast write fails at the burst that its last channel lacks."""
    script = begun().add(Op.RD, row=5, count=4, channels=1)
    script.add(Op.WR, row=5, count=2, banks=1, channels=4, reference=1)

    error = refusal(script.stream(source="read-back"), DEVICE)

    # The last channel begins 3 * 2 bursts later and wants bursts 7 and 8 of 8.
    assert (Rule.SOURCE, 4, 6 + 8 + 1) == (error.rule, error.entry, error.index)


@pytest.mark.parametrize("kind", [PlainDevice, ReferenceDevice])
def test_steps_of_a_layer_go_up(kind: type[PlainDevice | ReferenceDevice]) -> None:
    """Earlier steps are refused, repeats are not; layers are independent."""
    device = kind(DEVICE)
    streams = [begun(rows_per_plane=8).stream(step=step) for step in (4, 4, 7, 6, 6)]
    for stream, layer in zip(streams, (0, 0, 0, 1, 0), strict=True):
        if stream is not streams[-1]:
            device.run(stream, payload_of(stream), layer=layer)
    with pytest.raises(ProtocolError) as caught:
        device.run(streams[-1], payload_of(streams[-1]), layer=0)

    assert (Rule.STEP, 0, 0) == (
        caught.value.rule,
        caught.value.index,
        caught.value.entry,
    )
    assert "step 6 of layer 0 after step 7" == caught.value.found
    # The refused stream did not change the order.
    device.run(streams[2], payload_of(streams[2]), layer=0)


def test_an_empty_stream_keeps_the_order_too() -> None:
    """It has no command to be named, but it is refused."""
    nothing: Any = np.zeros(0, np.uint8)
    columns = dict.fromkeys(begun().stream().columns(), nothing)
    for executor in (PlainDevice(DEVICE), ReferenceDevice(DEVICE)):
        empty = [
            CommandStream(phase=Phase.QK, step=step, frame=frame_of(DEVICE), **columns)
            for step in (3, 2)
        ]
        assert (0, 1, 2) == executor.run(empty[0], payload_of(empty[0])).mac.shape
        with pytest.raises(ProtocolError, match="no command"):
            executor.run(empty[1], payload_of(empty[1]))


def test_the_device_has_one_name() -> None:
    """Under a second name, as through the link, it would be loaded twice."""
    spec = spec_from_file_location("device", PACKAGE / "device" / "__init__.py")
    assert spec is not None
    assert spec.loader is not None

    with pytest.raises(ImportError, match=r"import patton\.device"):
        spec.loader.exec_module(module_from_spec(spec))
