"""Pseudo-random Key, Value and Query elements that depend on who a token is.

A checked run needs numbers, not a model: the same token must get the same Key and Value
in every request and every turn, so that prefix sharing is real, and different tokens
different ones, so that a wrong place shows. Each element is a function of (token
identity, layer, head, component) and of nothing else: no state and no order of
generation, as with counter-based generators.

Elements are uniform in [-1, 1], rounded to the element type, hence finite.
"""

from __future__ import annotations

from enum import IntEnum
from functools import cache

import numpy as np
from numpy.typing import NDArray

from patton.config import ElementType
from patton.elements import encode

Bits = NDArray[np.uint16]
Identities = NDArray[np.uint64]
Words = NDArray[np.uint64]

# The finaliser of SplitMix64 (Steele, Lea, Flood: OOPSLA 2014) and its increment.
_STEPS = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB))
_LAST_SHIFT = 31
_INCREMENT = 0x9E3779B97F4A7C15
_WORD_MAX = (1 << 64) - 1

_ELEMENTS_PER_WORD = 4  # 16 random bits each
_WORDS_AT_A_TIME = 1 << 14  # stays in the cache over the passes of the mix


class Role(IntEnum):
    """What a vector is to its token."""

    KEY = 0
    VALUE = 1
    QUERY = 2


def keys(
    tokens: Identities, layer: int, heads: int, head_dim: int, element: ElementType
) -> Bits:
    """Keys of tokens [n] in one layer: element bit patterns [n, heads, head_dim]."""
    return _vectors(Role.KEY, tokens, layer, (heads, head_dim), element)


def values(
    tokens: Identities, layer: int, heads: int, head_dim: int, element: ElementType
) -> Bits:
    """Values of tokens [n] in one layer: element bit patterns [n, heads, head_dim]."""
    return _vectors(Role.VALUE, tokens, layer, (heads, head_dim), element)


def queries(
    tokens: Identities,
    layer: int,
    heads: tuple[int, int],
    head_dim: int,
    element: ElementType,
) -> Bits:
    """Queries of tokens [n]: element bit patterns [n, KV heads, query heads, D].

    heads: (KV heads, query heads per KV head).
    """
    return _vectors(Role.QUERY, tokens, layer, (*heads, head_dim), element)


def _vectors(
    role: Role,
    tokens: Identities,
    layer: int,
    shape: tuple[int, ...],
    element: ElementType,
) -> Bits:
    """Elements [n, *shape]; a word never serves two vectors (the last axis)."""
    vectors = int(np.prod(shape[:-1]))
    words = -(-shape[-1] // _ELEMENTS_PER_WORD)
    stream = (layer * len(Role) + role + 1) * _INCREMENT & _WORD_MAX
    seeds = _mix(_mix(tokens) + np.uint64(stream))
    places = _mix(np.arange(vectors * words, dtype=np.uint64))
    patterns = _patterns(element)
    bits = np.empty((len(tokens), vectors, words * _ELEMENTS_PER_WORD), np.uint16)
    rows = max(1, _WORDS_AT_A_TIME // len(places))
    for start in range(0, len(tokens), rows):
        mixed = _mix(seeds[start : start + rows, None] ^ places)
        halves = mixed.astype("<u8", copy=False).view("<u2")
        # "wrap" changes nothing, as every index is in range; it skips their check.
        chunk = bits[start : start + rows].reshape(halves.shape)
        np.take(patterns, halves, out=chunk, mode="wrap")
    return bits[..., : shape[-1]].reshape(len(tokens), *shape)


def _mix(words: Words) -> Words:
    """Scramble each word, a bijection; the argument stays as it is."""
    mixed = words.copy()
    spare = np.empty_like(mixed)
    for shift, factor in _STEPS:
        np.right_shift(mixed, np.uint64(shift), out=spare)
        np.bitwise_xor(mixed, spare, out=mixed)
        np.multiply(mixed, np.uint64(factor), out=mixed)
    np.right_shift(mixed, np.uint64(_LAST_SHIFT), out=spare)
    np.bitwise_xor(mixed, spare, out=mixed)
    return mixed


@cache
def _patterns(element: ElementType) -> Bits:
    """The element for each of 65,536 random numbers: number / 32,768 - 1, rounded."""
    numbers = np.arange(1 << 16, dtype=np.float32) / np.float32(1 << 15) - np.float32(1)
    return encode(numbers, element)
