from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from patton.config import ElementType
from patton.device.numerics import burst_sum, lane_sum
from patton.elements import decode
from tests.device.scripts import small_device
from tests.device.streams import random_bits


def tree(lanes: list[np.float32]) -> np.float32:
    """The adder tree, drawn from its root: two subtrees of every other lane.

    Only for a power of two, where it is the same as adding the upper half to the lower.
    """
    if len(lanes) == 1:
        return lanes[0]
    return np.float32(tree(lanes[::2]) + tree(lanes[1::2]))


@pytest.mark.parametrize("lanes", [1, 2, 4, 8, 16, 32, 64])
def test_the_tree_adds_halves(lanes: int) -> None:
    """Bit for bit, with numbers of which any other order shows."""
    rng = np.random.default_rng(lanes)
    scale = np.float32(2) ** rng.integers(-20, 20, (lanes, 50)).astype(np.float32)
    products = rng.standard_normal((lanes, 50), np.float32) * scale
    expected = [tree(list(column)) for column in products.T]

    assert expected == lane_sum(products.copy()).tolist()


@pytest.mark.parametrize(
    ("lanes", "order"),
    [
        (3, lambda p: (p[0] + p[2]) + p[1]),
        (5, lambda p: ((p[0] + p[3]) + p[2]) + (p[1] + p[4])),
        (6, lambda p: ((p[0] + p[3]) + (p[2] + p[5])) + (p[1] + p[4])),
        (7, lambda p: ((p[0] + p[4]) + (p[2] + p[6])) + ((p[1] + p[5]) + p[3])),
    ],
)
def test_the_tree_of_other_lane_counts(lanes: int, order: object) -> None:
    """The last lane of the larger lower part waits for the next level."""
    assert callable(order)
    products = np.random.default_rng(1).standard_normal((lanes, 99), np.float32)
    products *= np.float32(2) ** np.arange(lanes, dtype=np.float32)[:, None]

    assert np.array_equal(order(products), lane_sum(products.copy()))


def test_zeros_keep_their_sign() -> None:
    """No lane is padded: a sum of negative zeros is one."""
    products = np.full((5, 1), -0.0, np.float32)

    assert np.signbit(lane_sum(products)).all()


@pytest.mark.parametrize("element", [ElementType.BF16, ElementType.FP16])
@given(seed=st.integers(0, 2**32 - 1))
def test_products_are_exact(element: ElementType, seed: int) -> None:
    """FP32 holds the product of two elements, unless it is below its smallest."""
    rng = np.random.default_rng(seed)
    bits = random_bits(rng, (2, 1, 40), small_device(element=element))
    one, other = decode(bits, element)
    with np.errstate(over="ignore", invalid="ignore"):
        products = burst_sum(one, other)
    for a, b, product in zip(one[0], other[0], products, strict=True):
        if np.isfinite(product) and (product == 0 or abs(product) > 2.0**-100):
            exact = Fraction(float(a)) * Fraction(float(b))
            tiny = abs(exact) < Fraction(2) ** -149
            assert tiny or exact == Fraction(float(product))
