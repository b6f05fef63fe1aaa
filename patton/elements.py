"""Bit patterns of 16-bit floating-point elements, and the numbers they stand for.

Memory, buses and command streams carry elements as uint16 bit patterns; arithmetic is
done on float32, which holds every BF16 and FP16 number exactly.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from patton.config import ElementType
from patton.errors import ConfigError

Bits = NDArray[np.uint16]
Floats = NDArray[np.float32]

# Which payload an operation on several NaNs keeps depends on the processor, and on how
# an array was split into vectors. One pattern for all keeps results reproducible.
QUIET_NAN = {ElementType.BF16: np.uint16(0x7FC0), ElementType.FP16: np.uint16(0x7E00)}

# BF16 is the upper half of an FP32 word.
_UPPER_HALF = np.uint32(16)


def decode(bits: Bits, element: ElementType) -> Floats:
    """The numbers that these bit patterns stand for, exactly.

    Raises ConfigError for an element type without arithmetic.
    """
    if element is ElementType.BF16:
        words = bits.astype(np.uint32)
        words <<= _UPPER_HALF
        return words.view(np.float32)
    _check_fp16(element)
    return bits.view(np.float16).astype(np.float32)


def encode(values: Floats, element: ElementType) -> Bits:
    """The nearest elements, ties to even, as bit patterns.

    Beyond the largest finite element lies infinity; every NaN becomes QUIET_NAN.
    Raises ConfigError for an element type without arithmetic.
    """
    if element is ElementType.BF16:
        bits = _nearest_bf16(values)
    else:
        _check_fp16(element)
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            bits = values.astype(np.float16).view(np.uint16)
    return np.where(np.isnan(values), QUIET_NAN[element], bits)


def _nearest_bf16(values: Floats) -> Bits:
    # Adding just under half of what is cut off, or exactly half above an odd number,
    # carries into the upper half where rounding to even goes up; from the largest
    # finite number it carries into infinity.
    word = np.asarray(values, np.float32).view(np.uint32)
    upper = word >> _UPPER_HALF
    half = np.uint32(0x7FFF) + (upper & np.uint32(1))
    return ((word + half) >> _UPPER_HALF).astype(np.uint16)


def _check_fp16(element: ElementType) -> None:
    if element is not ElementType.FP16:
        accepted = "one of " + ", ".join(str(item) for item in QUIET_NAN)
        raise ConfigError("arithmetic", "element", element, accepted)
