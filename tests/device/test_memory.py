from __future__ import annotations

import numpy as np
import pytest

from patton.config import aim_gddr6
from patton.device import BankMemory
from tests.device.scripts import small_device


def full(memory: BankMemory) -> np.unsignedinteger:
    return memory.full_mask


def test_untouched_memory_is_zero_and_unwritten() -> None:
    """A read needs no row to be there."""
    memory = BankMemory(small_device())

    bits, written = memory.read(3, 1, 15, 3)

    assert ([0, 0, 0, 0], 0) == (bits.tolist(), int(written))
    assert 0 == memory.rows_written


def test_last_address_of_16_gib_is_there() -> None:
    """All of the representative device can be addressed; a row takes one slab."""
    device = aim_gddr6()
    memory = BankMemory(device)
    bits = np.arange(16, dtype=np.uint16)
    place = device.channels - 1, device.banks - 1, device.rows - 1, 63

    memory.write(place, bits, full(memory), full(memory))

    stored, written = memory.read(*place)
    assert 2**34 == device.capacity_bytes
    assert bits.tolist() == stored.tolist()
    assert full(memory) == written
    assert 1 == memory.rows_written


def test_memory_grows_with_the_rows_written() -> None:
    """Not with the rows of the device; what was stored before stays."""
    device = aim_gddr6()
    memory = BankMemory(device)
    rows = [int(row) for row in np.random.default_rng(0).permutation(16384)[:100]]
    for row in rows:
        bits = np.full(16, row, np.uint16)
        memory.write(
            (row % 32, row % 16, row, row % 64), bits, full(memory), full(memory)
        )

    assert 100 == memory.rows_written
    # Doubling leaves at most as much again unused.
    assert memory.bursts.nbytes <= 2 * 101 * 16 * 64 * 32
    for row in rows:
        bits, _written = memory.read(row % 32, row % 16, row, row % 64)
        assert [row] * 16 == bits.tolist()


@pytest.mark.parametrize("lanes", [1, 3, 8, 9, 16, 17, 32, 33, 64])
def test_lanes_are_written_one_by_one(lanes: int) -> None:
    """A masked write changes its lanes and their written bits only."""
    device = small_device(row_bytes=4 * lanes, burst_bytes=2 * lanes)
    memory = BankMemory(device)
    mask = full(memory).dtype.type
    first = np.arange(1, lanes + 1, dtype=np.uint16)
    memory.write((0, 0, 0, 1), first, mask(1), mask(1))
    high = mask(1 << (lanes - 1))
    memory.write((0, 0, 0, 1), first + np.uint16(100), high, high)

    bits, written = memory.read(0, 0, 0, 1)

    expected = [1] + [0] * (lanes - 1)
    expected[-1] = 100 + lanes
    assert expected == bits.tolist()
    assert {0, lanes - 1} == set(np.flatnonzero(memory.flags(written)).tolist())


def test_unwritten_bits_can_be_written() -> None:
    """A copy of an unwritten lane is unwritten too."""
    memory = BankMemory(small_device())
    mask = full(memory).dtype.type
    bits = np.arange(4, dtype=np.uint16)
    memory.write((0, 0, 0, 0), bits, full(memory), full(memory))
    memory.write((0, 0, 0, 0), bits, mask(0b0110), mask(0b0100))

    assert 0b1101 == memory.read(0, 0, 0, 0)[1]


def test_the_image_shows_rows_that_hold_something() -> None:
    """Two memories are equal when their images are."""
    memory, other = BankMemory(small_device()), BankMemory(small_device())
    bits = np.arange(4, dtype=np.uint16)
    memory.write((1, 0, 7, 2), bits, full(memory), full(memory))
    other.provide(np.array([2, 1]), np.array([5, 7]))
    assert [] == list(other.image())

    other.write((1, 0, 7, 2), bits, full(memory), full(memory))

    assert [(1, 7)] == [row[:2] for row in memory.image()]
    assert list(memory.image()) == list(other.image())
