"""Pseudo-random elements: they follow from who a token is, and differ otherwise."""

from __future__ import annotations

import numpy as np
import pytest

from patton.config import ElementType
from patton.elements import decode
from patton.engine.data import keys, queries, values

BF16, FP16 = ElementType.BF16, ElementType.FP16
TOKENS = np.array([0, 1, 1 << 24, (1 << 62) + 5, (1 << 64) - 1], np.uint64)


def test_a_token_has_the_same_data_wherever_it_comes() -> None:
    """Order, company and number of tokens do not matter."""
    many = np.arange(50_000, dtype=np.uint64)
    expected = keys(many, 3, 2, 80, BF16)
    some = np.array([49_999, 7, 7, 20_000], np.uint64)

    assert np.array_equal(expected[some.astype(int)], keys(some, 3, 2, 80, BF16))


def test_every_coordinate_matters() -> None:
    """Token, layer, role, head and component each change the elements."""
    base = keys(TOKENS, 0, 4, 64, BF16)
    others = [
        keys(TOKENS + np.uint64(1), 0, 4, 64, BF16),
        keys(TOKENS, 1, 4, 64, BF16),
        values(TOKENS, 0, 4, 64, BF16),
        queries(TOKENS, 0, (2, 2), 64, BF16).reshape(base.shape),
        np.roll(base, 1, axis=0),
        np.roll(base, 1, axis=1),
        np.roll(base, 1, axis=2),
    ]

    for other in others:
        assert np.mean(base == other) < 0.02


def test_vectors_have_the_asked_shape() -> None:
    """Keys [n, heads, D] and queries [n, heads, G, D], no tokens included."""
    assert keys(TOKENS, 0, 3, 7, BF16).shape == (5, 3, 7)
    assert queries(TOKENS, 0, (3, 2), 7, BF16).shape == (5, 3, 2, 7)
    assert values(TOKENS[:0], 0, 3, 7, BF16).shape == (0, 3, 7)


@pytest.mark.parametrize("element", [BF16, FP16])
def test_elements_are_uniform_from_minus_one_to_one(element: ElementType) -> None:
    """Mean, spread and range are those of a uniform distribution; all are finite."""
    numbers = decode(keys(np.arange(4000, dtype=np.uint64), 0, 2, 64, element), element)

    assert abs(numbers.mean()) < 0.005
    assert abs(numbers.std() - np.sqrt(1 / 3)) < 0.005
    assert numbers.min() == -1
    assert 0.99 < numbers.max() <= 1
    correlation = np.corrcoef(numbers.reshape(4000, -1)[:, :16], rowvar=False)
    assert np.abs(correlation - np.eye(16)).max() < 0.08


def mix(word: int) -> int:
    """The finaliser of SplitMix64, on Python's integers."""
    word = (word ^ word >> 30) * 0xBF58476D1CE4E5B9 % 2**64
    word = (word ^ word >> 27) * 0x94D049BB133111EB % 2**64
    return word ^ word >> 31


def test_elements_are_the_documented_function() -> None:
    """Recorded runs mean the same data in every version and on every machine."""
    found = decode(values(TOKENS, 5, 2, 6, FP16), FP16)

    for index, number in np.ndenumerate(found):
        token, head, component = index
        stream = (5 * 3 + 1 + 1) * 0x9E3779B97F4A7C15
        seed = mix((mix(int(TOKENS[token])) + stream) % 2**64)
        word = mix(seed ^ mix(head * 2 + component // 4))
        random = word >> 16 * (component % 4) & 0xFFFF
        assert np.float16(random / 2**15 - 1) == number
