"""Identity of tokens, and of the prefix blocks made of them.

A workload has lengths, not text, so a token is known by where it stands. One number of
64 bits says which token it is, and two tokens have the same number if and only if they
are the same token after the same prefix:

    private   0 | owner 38 bits | position 24 bits   a conversation's own text
    prefix    1 | prefix 38     | position 24        a system prompt of many
    block     2 | pass 18 | block id 32 | offset 12  block-id files, with chained ids

Because of "after the same prefix", a block is identified by its last token: equal keys,
equal tokens and equal prefix. Generated tokens go on in the positions of their
conversation, so that the next turn finds them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import attrs
import numpy as np
from numpy.typing import NDArray

POSITION_BITS = 24
OFFSET_BITS = 12
BLOCK_ID_BITS = 32
TURN_BITS = 14
PREFIX_KIND = 1 << 62
BLOCK_KIND = 2 << 62
PASS_SHIFT = OFFSET_BITS + BLOCK_ID_BITS

POSITIONS = 1 << POSITION_BITS  # tokens of one conversation, at most
BLOCK_IDS = 1 << BLOCK_ID_BITS
OFFSETS = 1 << OFFSET_BITS  # tokens of one block of a block-id file, at most

Positions = NDArray[np.int64]
Identities = NDArray[np.uint64]


def private_base(conversation: int, turn: int = 0) -> int:
    """Identity of position 0 of a conversation, or of one turn's own tokens."""
    assert 0 <= turn < 1 << TURN_BITS
    assert 0 <= conversation < 1 << 38 - TURN_BITS
    return (conversation << TURN_BITS | turn) << POSITION_BITS


def prefix_base(prefix: int) -> int:
    """Identity of position 0 of a shared prefix."""
    assert 0 <= prefix < 1 << 38
    return PREFIX_KIND | prefix << POSITION_BITS


class TokenSource(Protocol):
    """Who the tokens of a request are."""

    def token_identity(self, positions: Positions) -> Identities:
        """Identities of the tokens at `positions`: uint64 of the same shape."""

    def block_keys(self, block_tokens: int, count: int) -> Sequence[int]:
        """Keys of the first `count` full blocks of `block_tokens` tokens."""


@attrs.frozen
class ConversationTokens:
    """Tokens known by (conversation, position), after a prefix that others may share.

    base: identity of position 0 of the conversation (`private_base`); prefix: that of
    the shared prefix (`prefix_base`), which covers the first `prefix_tokens` positions.
    """

    base: int
    prefix: int = PREFIX_KIND
    prefix_tokens: int = 0

    def token_identity(self, positions: Positions) -> Identities:
        """See `TokenSource`."""
        own = positions.astype(np.uint64) + np.uint64(self.base)
        if not self.prefix_tokens:
            return own
        shared = positions.astype(np.uint64) + np.uint64(self.prefix)
        return np.where(positions < self.prefix_tokens, shared, own)

    def block_keys(self, block_tokens: int, count: int) -> Sequence[int]:
        """See `TokenSource`; without a prefix a range, which takes no memory."""
        shared = min(self.prefix_tokens // block_tokens, count)
        last = block_tokens - 1
        own = range(
            self.base + shared * block_tokens + last,
            self.base + count * block_tokens + last,
            block_tokens,
        )
        if not shared:
            return own
        end = self.prefix + shared * block_tokens + last
        return [*range(self.prefix + last, end, block_tokens), *own]


@attrs.frozen(eq=False)
class BlockIds:
    """Chained block ids of a prompt, as block-id files give them.

    ids [n]: equal id, equal tokens and equal prefix; block_tokens: tokens of one of
    them; covered_tokens: positions [0, n) that they identify. What follows is private.
    """

    ids: NDArray[np.int64]
    block_tokens: int
    covered_tokens: int


@attrs.frozen(eq=False)
class BlockIdTokens:
    """Tokens known by (block id, offset), and a private tail.

    base: identity of position 0 of the tail's owner (`private_base`); reading: number
    of the pass over the file, so that a file read again holds new tokens.
    """

    block_ids: BlockIds
    base: int
    reading: int = 0

    def token_identity(self, positions: Positions) -> Identities:
        """See `TokenSource`."""
        known = self.block_ids
        own = positions.astype(np.uint64) + np.uint64(self.base)
        covered = positions < known.covered_tokens
        if not covered.any():
            return own
        index, offset = np.divmod(np.where(covered, positions, 0), known.block_tokens)
        ids = known.ids[index].astype(np.uint64) << np.uint64(OFFSET_BITS)
        kind = np.uint64(BLOCK_KIND | self.reading << PASS_SHIFT)
        return np.where(covered, kind | ids | offset.astype(np.uint64), own)

    def block_keys(self, block_tokens: int, count: int) -> Sequence[int]:
        """See `TokenSource`."""
        last = np.arange(count, dtype=np.int64) * block_tokens + (block_tokens - 1)
        keys: list[int] = self.token_identity(last).tolist()
        return keys
