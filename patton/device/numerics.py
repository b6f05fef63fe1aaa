"""The arithmetic of the processing units, in one fixed order.

A burst is multiplied lane by lane in FP32: products of BF16 or FP16 numbers are exact
there, unless a BF16 product falls below the smallest FP32 number. An adder tree sums
the lanes, FP32 at every node, and the sum is added to the accumulator. The result is
rounded to an element once, when it is read.

All operations are elementwise over arrays of any shape, so one burst and thousands of
bursts go through the same code and come to the same bits.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]


def lane_sum(products: Floats) -> Floats:
    """The adder tree over the lanes, which are axis 0; `products` is used up.

    The upper half of the lanes is added to the lower half until one is left. Of an odd
    number the lower part is the larger: its last lane waits for the next level.
    """
    left = len(products)
    while left > 1:
        half = (left + 1) // 2
        products[: left - half] += products[half:left]
        left = half
    total: Floats = products[0]
    return total


def burst_sum(bank: Floats, operand: Floats) -> Floats:
    """Sum of the products of two bursts, whose lanes are axis 0, in the fixed order."""
    return lane_sum(bank * operand)
