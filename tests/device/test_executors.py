"""What the commands do, worked out by hand, on both executors (DEV-WRITTEN, too)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from patton.commands import Op
from patton.config import ElementType
from patton.device import PlainDevice, ReferenceDevice
from patton.elements import encode
from patton.executor import Executor, Results
from tests.device.scripts import Script, payload_of, same_results, small_device

Device = PlainDevice | ReferenceDevice
BOTH = pytest.mark.parametrize("kind", [PlainDevice, ReferenceDevice])

# One channel of two banks, rows of four bursts of four lanes, two registers.
DEVICE = small_device(channels=1)


def bits(
    *numbers: float, element: ElementType = ElementType.BF16
) -> NDArray[np.uint16]:
    return encode(np.array(numbers, np.float32), element)


def run(
    device: Executor,
    script: Script,
    *values: NDArray[np.uint16],
    **options: Any,
) -> Results:
    """Run with these payload bursts; `source` goes to the stream."""
    stream = script.stream(source=options.pop("source", "host"))
    data = np.stack(values) if values else None
    return device.run(stream, payload_of(stream, data), **options)


def written(device: Device, *bursts: NDArray[np.uint16], row: int = 0) -> Device:
    """The bursts of a row from 0 on, bank 0 first, then bank 1."""
    script = Script(device.device).add(Op.ACT, row=row)
    script.add(Op.WR, row=row, count=len(bursts) // device.device.banks)
    run(device, script, *bursts)
    return device


@BOTH
def test_a_bank_multiplies_its_burst_with_the_shared_operand(
    kind: type[Device],
) -> None:
    """One value per bank: the sum of the products, over all bursts."""
    device = written(
        kind(DEVICE),
        bits(1, 2, 3, 4),
        bits(5, 6, 7, 8),
        bits(1, 0, 0, 0),
        bits(0, 0, 0, 2),
    )
    script = Script(DEVICE).add(Op.ACT).add(Op.WRGB, count=2).add(Op.WRBIAS)
    script.add(Op.MACAB, count=2).add(Op.RDMAC)

    results = run(device, script, bits(1, 10, 100, 1000), bits(0.5, 0.25, 0, 1))

    # 4321 takes more bits than BF16 has: it is rounded once, with the 12 added.
    expected = bits(4321 + 2.5 + 1.5 + 8, 1 + 2)
    assert expected.tolist() == results.mac[0, 0].tolist()
    assert results.mac_written.all()


@BOTH
def test_one_rounding_at_the_end(kind: type[Device]) -> None:
    """256 + 1 + 1 is 258, though BF16 cannot hold 257."""
    one = bits(1, 0, 0, 0)
    device = written(kind(DEVICE), *[bits(256, 0, 0, 0), one, one] * 2)
    script = Script(DEVICE).add(Op.ACT).add(Op.WRGB, count=3).add(Op.WRBIAS)
    script.add(Op.MACAB, count=3).add(Op.RDMAC)

    results = run(device, script, one, one, one)

    assert bits(258, 258).tolist() == results.mac[0, 0].tolist()


@BOTH
def test_bursts_are_added_in_stream_order(kind: type[Device]) -> None:
    """2^24 + 1 + 1 loses both ones in FP32, 1 + 1 + 2^24 does not."""
    big, one, less = (bits(n, 0, 0, 0) for n in (2**24, 1, -(2**24)))
    device = written(kind(DEVICE), big, one, one, less, one, one, big, less)
    script = Script(DEVICE).add(Op.ACT).add(Op.WRGB, count=4).add(Op.WRBIAS)

    results = run(device, script.add(Op.MACAB, count=4).add(Op.RDMAC), *[one] * 4)

    assert bits(0, 2).tolist() == results.mac[0, 0].tolist()


def test_all_registers_of_all_channels_are_apart() -> None:
    """As many as a command can name, set up and read in different orders."""
    device = small_device(channels=2, result_registers=255)
    results = []
    for kind in (PlainDevice, ReferenceDevice):
        executor, script = kind(device), Script(device)
        script.add(Op.ACT).add(Op.WR, count=4).add(Op.WRGB, count=4)
        where = [(channel, register) for channel in (0, 1) for register in range(255)]
        for channel, register in where:
            at = {"channel": channel, "channels": 1, "register": register}
            burst = (register + channel) % 4
            script.add(Op.WRBIAS, **at).add(Op.MACAB, burst=burst, **at)
        for channel, register in reversed(where):
            at = {"channel": channel, "channels": 1, "register": register}
            script.add(Op.RDMAC, **at)
        count = int(script.stream().payload_offsets()[-1])
        values = [bits(*(n + lane for lane in range(4))) for n in range(count)]
        results.append(run(executor, script, *values))

    assert len(results[0].mac) == 2 * 255
    assert len(np.unique(results[0].mac)) > 8
    assert same_results(*results)


@BOTH
def test_registers_are_independent(kind: type[Device]) -> None:
    """Each keeps its own sum; one that is initialised again starts from zero."""
    device = written(kind(DEVICE), *[bits(1, 1, 1, 1), bits(2, 2, 2, 2)] * 2)
    script = Script(DEVICE).add(Op.ACT).add(Op.WRGB, count=2)
    script.add(Op.WRBIAS).add(Op.MACAB, burst=1)
    script.add(Op.WRBIAS, register=1).add(Op.MACAB, burst=1, register=1)
    script.add(Op.WRBIAS).add(Op.MACAB, burst=0).add(Op.RDMAC, register=1)
    script.add(Op.MACAB, burst=0).add(Op.RDMAC)
    one = bits(1, 1, 1, 1)

    results = run(device, script, one, one)

    assert [bits(8, 8).tolist()] * 2 == results.mac[:, 0].tolist()


@BOTH
def test_an_accumulation_of_nothing_is_a_written_zero(kind: type[Device]) -> None:
    """WRBIAS, RDMAC: +0, and no lane was used that is unwritten."""
    results = run(kind(DEVICE), Script(DEVICE).add(Op.WRBIAS).add(Op.RDMAC))

    assert [[[0, 0]]] == results.mac.tolist()
    assert results.mac_written.all()


@BOTH
def test_negative_zero_products_sum_to_zero(kind: type[Device]) -> None:
    """The accumulator begins with +0, which -0 does not change."""
    device = written(kind(DEVICE), *[bits(-0.0, -0.0, -0.0, -0.0)] * 2)
    script = Script(DEVICE).add(Op.ACT).add(Op.WRGB).add(Op.WRBIAS)

    results = run(device, script.add(Op.MACAB).add(Op.RDMAC), bits(1, 1, 1, 1))

    assert [0, 0] == results.mac[0, 0].tolist()


@BOTH
def test_a_load_serves_what_follows_it(kind: type[Device]) -> None:
    """The operand of a MACAB is the last one loaded, not a later one."""
    device = written(kind(DEVICE), *[bits(1, 1, 1, 1)] * 2)
    script = Script(DEVICE).add(Op.ACT)
    for _ in range(2):
        script.add(Op.WRGB).add(Op.WRBIAS).add(Op.MACAB).add(Op.RDMAC)
    script.add(Op.WRGB)

    results = run(device, script, *[bits(n, 0, 0, 0) for n in (3, 5, 7)])

    assert [bits(3, 3).tolist(), bits(5, 5).tolist()] == results.mac[:, 0].tolist()


@BOTH
@pytest.mark.parametrize(
    ("element", "one", "many"),
    [(ElementType.BF16, 2.0**127, 3), (ElementType.FP16, 60000.0, 2)],
)
def test_overflow_is_infinity_and_nan_is_one_pattern(
    kind: type[Device], element: ElementType, one: float, many: int
) -> None:
    """Infinity minus infinity, and NaNs of any payload, end as the same quiet NaN."""
    device = kind(small_device(channels=1, element=element))
    large = bits(one, one, one, one, element=element)
    nan = np.array([0x7FA5, 0, 0, 0xFFFF], np.uint16)
    if element is ElementType.FP16:
        nan = np.array([0x7C05, 0, 0, 0xFFFF], np.uint16)
    written(device, large, large, nan, large)
    script = Script(device.device).add(Op.ACT).add(Op.WRGB, count=2).add(Op.WRBIAS)
    script.add(Op.MACAB, count=1).add(Op.RDMAC)
    script.add(Op.WRBIAS).add(Op.MACAB, count=2).add(Op.RDMAC)
    factor = bits(*[float(many)] * 4, element=element)

    results = run(device, script, factor, bits(*[-np.inf] * 4, element=element))

    quiet, infinity = bits(np.nan, np.inf, element=element).tolist()
    # inf (FP16: far beyond its largest number) in bank 0, NaN in bank 1.
    assert [infinity, quiet] == results.mac[0, 0].tolist()
    minus = bits(-np.inf, element=element).tolist()[0]
    bank0 = quiet if element is ElementType.BF16 else minus
    assert [bank0, quiet] == results.mac[1, 0].tolist()


@BOTH
def test_subnormal_numbers_count(kind: type[Device]) -> None:
    """Nothing is flushed to zero, neither elements nor FP32 sums."""
    tiny = np.array([1, 1, 0, 0], np.uint16)  # 2^-133
    device = written(kind(DEVICE), tiny, tiny)
    script = Script(DEVICE).add(Op.ACT).add(Op.WRGB).add(Op.WRBIAS)

    results = run(device, script.add(Op.MACAB).add(Op.RDMAC), bits(1, 1, 1, 1))

    assert [2, 2] == results.mac[0, 0].tolist()


# --- written bits ---------------------------------------------------------------------


@BOTH
@pytest.mark.parametrize(("fill", "expected"), [(True, [1, 0]), (False, [0, 0])])
def test_a_sum_is_written_if_all_its_lanes_were(
    kind: type[Device], fill: bool, expected: list[bool]
) -> None:
    """Zero fill counts as written; an unwritten lane anywhere taints its bank."""
    device = kind(DEVICE)
    script = Script(DEVICE).add(Op.ACT)
    script.add(Op.WR, banks=1, burst=0).add(Op.WR, banks=1, burst=1, lanes=2, fill=fill)
    run(device, script, *[bits(1, 1, 1, 1)] * 2)
    products = Script(DEVICE).add(Op.ACT).add(Op.WRGB, count=2).add(Op.WRBIAS)
    products.add(Op.MACAB, count=2).add(Op.RDMAC)

    results = run(device, products, *[bits(1, 1, 1, 1)] * 2)

    assert expected == results.mac_written[0, 0].tolist()
    assert bits(5, 0).tolist() == results.mac[0, 0].tolist()


@BOTH
def test_reads_return_the_written_bit_of_each_lane(kind: type[Device]) -> None:
    """Masked writes mark their lanes, and later ones keep the others."""
    device = kind(DEVICE)
    script = Script(DEVICE).add(Op.ACT).add(Op.WR, banks=1, lanes=0b0010)
    script.add(Op.WR, banks=1, lanes=0b1000).add(Op.RD)

    results = run(device, script, bits(1, 2, 3, 4), bits(5, 6, 7, 8))

    assert [bits(0, 2, 0, 8).tolist(), [0] * 4] == results.read[:, 0].tolist()
    assert [[0, 1, 0, 1], [0] * 4] == results.read_written[:, 0].tolist()


@BOTH
def test_fill_replaces_what_was_there(kind: type[Device]) -> None:
    """A filling write leaves nothing of the past in the burst."""
    device = written(kind(DEVICE), *[bits(1, 2, 3, 4)] * 2)
    script = Script(DEVICE).add(Op.ACT).add(Op.WR, lanes=0b0100, fill=True)

    results = run(device, script.add(Op.RD), *[bits(9, 9, 9, 9)] * 2)

    assert [bits(0, 0, 9, 0).tolist()] * 2 == results.read[:, 0].tolist()
    assert results.read_written.all()


@BOTH
def test_the_later_write_wins(kind: type[Device]) -> None:
    """Whatever the masks: lane by lane, in stream order, reads between see between."""
    device = kind(DEVICE)
    script = Script(DEVICE).add(Op.ACT).add(Op.WR, banks=1).add(Op.RD, banks=1)
    script.add(Op.WR, banks=1, lanes=0b0011).add(Op.WR, banks=1, lanes=0b0110)
    script.add(Op.RD, banks=1).add(Op.WR, banks=1, lanes=0b1, fill=True)
    script.add(Op.WR, banks=1, lanes=0b1000).add(Op.RD, banks=1)

    results = run(device, script, *[bits(n, n, n, n) for n in range(1, 6)])

    assert [
        bits(1, 1, 1, 1).tolist(),
        bits(2, 3, 3, 1).tolist(),
        bits(4, 0, 0, 5).tolist(),
    ] == results.read[:, 0].tolist()


@BOTH
def test_copies_carry_data_and_written_bits(kind: type[Device]) -> None:
    """Bank 0 to bank 1, to another burst: what was unwritten stays so, and taints."""
    config = small_device(channels=1, copy_column="free")
    device = kind(config)
    script = Script(config).add(Op.ACT)
    script.add(Op.WR, banks=1, burst=0).add(Op.WR, banks=1, burst=1, lanes=0b0111)
    script.add(Op.WR, bank=1, banks=1, burst=2, count=2).add(
        Op.RDCP, count=2, reference=1
    )
    script.add(Op.WRCP, bank=1, burst=2, count=2, reference=1)
    script.add(Op.RD, bank=1, banks=1, burst=2, count=2)
    script.add(Op.WRBIAS).add(Op.MACAB, burst=2).add(Op.RDMAC)

    results = run(device, script, *[bits(1, 2, 3, 4)] * 4)

    assert [bits(1, 2, 3, 4).tolist(), bits(1, 2, 3, 0).tolist()] == (
        results.read[:, 0].tolist()
    )
    assert [[1, 1, 1, 1], [1, 1, 1, 0]] == results.read_written[:, 0].tolist()
    # Bank 1 holds 1 2 3 4 in burst 2, the Global Buffer 1 2 3 and an unwritten lane.
    assert bits(0, 14).tolist() == results.mac[0, 0].tolist()
    assert not results.mac_written.any()


@BOTH
def test_read_back_writes_what_was_read(kind: type[Device]) -> None:
    """Chosen lanes of the burst with this ordinal, with their written bits."""
    device = kind(DEVICE)
    script = Script(DEVICE).add(Op.ACT).add(Op.WR, banks=1, count=2, lanes=0b0111)
    run(device, script, bits(1, 2, 3, 4), bits(5, 6, 7, 8))
    copy = Script(DEVICE).add(Op.ACT).add(Op.RD, banks=1, count=2)
    copy.add(Op.ACT, row=3).add(
        Op.WR, row=3, bank=1, banks=1, lanes=0b1110, reference=1
    )
    copy.add(Op.WR, row=3, burst=2, bank=1, banks=1, lanes=1, fill=True, reference=0)
    copy.add(Op.RD, row=3, bank=1, banks=1, count=3)

    results = run(device, copy, source="read-back")

    assert [bits(0, 6, 7, 0).tolist(), [0] * 4, bits(1, 0, 0, 0).tolist()] == (
        results.read[2:, 0].tolist()
    )
    assert [[0, 1, 1, 0], [0] * 4, [1] * 4] == results.read_written[2:, 0].tolist()


@BOTH
def test_host_bits_are_stored_as_they_are(kind: type[Device]) -> None:
    """Any pattern, signalling NaNs too, comes back unchanged."""
    pattern = np.array([0x7F81, 0xFFA5, 0x8000, 1], np.uint16)
    device = written(kind(DEVICE), pattern, pattern)

    results = run(device, Script(DEVICE).add(Op.ACT).add(Op.RD))

    assert [pattern.tolist()] * 2 == results.read[:, 0].tolist()
