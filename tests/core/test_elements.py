from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from patton.config import ElementType
from patton.elements import QUIET_NAN, Floats, decode, encode
from patton.errors import ConfigError

EVERY_PATTERN = np.arange(2**16, dtype=np.uint16)
SIGN = np.uint16(0x8000)
BOTH = pytest.mark.parametrize("element", list(QUIET_NAN))
# Bits of the mantissa, and the exponent of the smallest number.
FORM = {ElementType.BF16: (7, -133), ElementType.FP16: (10, -24)}


def patterns_of(element: ElementType) -> list[tuple[Fraction, int]]:
    """Every finite number that is not negative, with its pattern, ascending."""
    mantissa_bits, lowest = FORM[element]
    numbers = []
    for pattern in range(2**15):
        exponent, mantissa = divmod(pattern, 2**mantissa_bits)
        if exponent == 2 ** (15 - mantissa_bits) - 1:
            break
        if exponent:
            mantissa, exponent = mantissa + 2**mantissa_bits, exponent - 1
        numbers.append((mantissa * Fraction(2) ** (exponent + lowest), pattern))
    return numbers


TABLES = {element: patterns_of(element) for element in QUIET_NAN}


@BOTH
def test_patterns_stand_for_the_numbers_of_the_format(element: ElementType) -> None:
    """Each finite pattern decodes to sign, exponent and mantissa, exactly."""
    values, patterns = zip(*TABLES[element], strict=True)
    bits = np.array(patterns, np.uint16)

    assert list(values) == [Fraction(float(x)) for x in decode(bits, element)]
    assert np.array_equal(-decode(bits, element), decode(bits | SIGN, element))


@BOTH
def test_every_number_comes_back(element: ElementType) -> None:
    """Encoding undoes decoding for all patterns but NaNs, which become one."""
    values = decode(EVERY_PATTERN, element)
    number = ~np.isnan(values)

    back = encode(values, element)

    assert np.array_equal(EVERY_PATTERN[number], back[number])
    assert {QUIET_NAN[element]} == set(back[~number])
    assert np.isnan(decode(back[~number], element)).all()


def nearest(value: Fraction, element: ElementType) -> int:
    """The pattern of the nearest number, the even one of two; the value is positive."""
    table = TABLES[element]
    low, high = 0, len(table)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if table[middle][0] <= value else (low, middle)
    step = table[-1][0] - table[-2][0]
    above = table[high][0] if high < len(table) else table[-1][0] + step
    down, up = value - table[low][0], above - value
    return low if down < up or (down == up and low % 2 == 0) else low + 1


def check_nearest(values: Floats, element: ElementType) -> None:
    expected = [nearest(Fraction(float(value)), element) for value in values]
    bits = encode(values, element)

    assert expected == bits.tolist()
    assert np.array_equal(bits | SIGN, encode(-values, element))


@BOTH
def test_halves_go_to_the_even_neighbour(element: ElementType) -> None:
    """Ties, and what is just beside them, everywhere in the range."""
    table = TABLES[element]
    chosen = range(0, len(table) - 1, 97)
    exact = [(table[i][0] + table[i + 1][0]) / 2 for i in chosen]
    ties = np.array([float(x) for x in exact], np.float32)
    assert [Fraction(float(x)) for x in ties] == exact

    check_nearest(ties, element)
    check_nearest(np.nextafter(ties, np.float32(np.inf)), element)
    check_nearest(np.nextafter(ties, np.float32(0)), element)


@BOTH
@given(words=st.lists(st.integers(0, 2**31 - 1), min_size=1, max_size=20))
def test_any_number_goes_to_the_nearest(element: ElementType, words: list[int]) -> None:
    """Random FP32 numbers, most of them far outside of FP16's range."""
    values = np.array(words, np.uint32).view(np.float32)
    check_nearest(values[np.isfinite(values)], element)


@BOTH
def test_beyond_the_largest_lies_infinity(element: ElementType) -> None:
    """Half a step above the largest number is infinity; below, the largest number."""
    largest, previous = TABLES[element][-1][0], TABLES[element][-2][0]
    edge = np.float32(float(largest + (largest - previous) / 2))
    values = np.array([edge, np.nextafter(edge, np.float32(0)), np.inf], np.float32)

    assert [np.inf, float(largest), np.inf] == decode(
        encode(values, element), element
    ).tolist()


@pytest.mark.parametrize("element", [ElementType.FP8, ElementType.INT8])
def test_bytes_have_no_arithmetic(element: ElementType) -> None:
    """Elements that are only placed are refused, not misread."""
    with pytest.raises(ConfigError, match="BF16"):
        decode(EVERY_PATTERN, element)
    with pytest.raises(ConfigError, match="BF16"):
        encode(np.zeros(1, np.float32), element)


def test_numbers_of_more_precision_are_fp32_first() -> None:
    """A double just above a tie of BF16, which FP32 does not tell from the tie."""
    tie = np.array([1 + 2.0**-8, -1 - 2.0**-8])
    found = encode(tie * (1 + 2.0**-40), ElementType.BF16)  # type: ignore[arg-type]

    assert [1.0, -1.0] == decode(found, ElementType.BF16).tolist()


@pytest.mark.parametrize("element", [ElementType.BF16, ElementType.FP16])
def test_rounding_asks_nothing_of_the_user_s_settings(element: ElementType) -> None:
    """Overflow, underflow and signalling NaNs are no errors, whatever NumPy is told."""
    signal = np.array([0x7F800001, 0xFF800001], np.uint32).view(np.float32)
    values = np.array([1e38, -1e38, 1e-7, -1e-40, 0], np.float32)
    with np.errstate(all="raise"):
        found = encode(values, element)
        nans = encode(signal, element)
        again = decode(nans, element)

    assert np.float32 == again.dtype
    assert np.isnan(again).all()
    assert found.tolist() == encode(values, element).tolist()
