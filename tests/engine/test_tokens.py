from __future__ import annotations

import itertools

import numpy as np
import pytest

from patton.engine.tokens import (
    BLOCK_IDS,
    OFFSETS,
    POSITIONS,
    BlockIds,
    BlockIdTokens,
    ConversationTokens,
    TokenSource,
    prefix_base,
    private_base,
)


def conversation(number: int, prefix: int = 0, prefix_tokens: int = 0) -> TokenSource:
    return ConversationTokens(private_base(number), prefix_base(prefix), prefix_tokens)


def block_file(
    ids: list[int], block_tokens: int, covered: int, owner: int = 0, reading: int = 0
) -> TokenSource:
    known = BlockIds(np.array(ids, np.int64), block_tokens, covered)
    return BlockIdTokens(known, private_base(owner), reading)


# One run: each conversation, or owner of a private tail, has one text.
CONVERSATIONS = [
    conversation(0),
    conversation(1, 0, 20),
    conversation(2, 0, 48),
    conversation(3, 1, 48),
    conversation(4, 1, 33),
]
BLOCK_FILES = [
    block_file([0, 1, 2], 16, 48, owner=0),
    block_file([0, 1, 3], 16, 48, owner=1),
    block_file([0, 1], 16, 32, owner=2),
    block_file([0, 4, 5], 16, 48, owner=3),
    block_file([0, 1, 2], 16, 48, owner=4, reading=1),
]
PAIRS = [
    pair for run in (CONVERSATIONS, BLOCK_FILES) for pair in itertools.product(run, run)
]


@pytest.mark.parametrize("block_tokens", [16, 32, 48])
@pytest.mark.parametrize(("one", "other"), PAIRS)
def test_equal_key_means_equal_tokens_and_prefix(
    one: TokenSource, other: TokenSource, block_tokens: int
) -> None:
    """Two blocks have one key exactly if all tokens up to their end are the same."""
    count = 96 // block_tokens
    keys = [list(source.block_keys(block_tokens, count)) for source in (one, other)]
    positions = np.arange(96)
    same = one.token_identity(positions) == other.token_identity(positions)
    for index in range(count):
        expected = bool(same[: (index + 1) * block_tokens].all())

        assert expected == (keys[0][index] == keys[1][index])


@pytest.mark.parametrize("block_tokens", [16, 48])
@pytest.mark.parametrize("source", CONVERSATIONS + BLOCK_FILES)
def test_keys_within_a_source_differ(source: TokenSource, block_tokens: int) -> None:
    """No block of a conversation has the key of another."""
    keys = list(source.block_keys(block_tokens, 10))

    assert 10 == len(set(keys))


def test_identity_keeps_the_shape_and_is_unsigned() -> None:
    """Positions of any shape give uint64 of that shape."""
    positions = np.arange(12).reshape(3, 4)

    for source in (conversation(1), block_file([7], 16, 16)):
        identity = source.token_identity(positions)

        assert (3, 4) == identity.shape
        assert np.dtype(np.uint64) == identity.dtype


def test_fields_of_an_identity_do_not_touch() -> None:
    """The largest values of all fields still give different identities."""
    last = np.array([POSITIONS - 1])
    kinds = [
        conversation((1 << 24) - 1),
        conversation(0, (1 << 38) - 1, POSITIONS),
        block_file([BLOCK_IDS - 1], OFFSETS, OFFSETS, reading=(1 << 18) - 1),
        block_file([BLOCK_IDS - 1], OFFSETS, OFFSETS, reading=(1 << 18) - 2),
    ]
    places = [last, last, np.array([OFFSETS - 1]), np.array([OFFSETS - 1])]
    identities = [
        int(kind.token_identity(place)[0])
        for kind, place in zip(kinds, places, strict=True)
    ]

    assert [0, 1, 2, 2] == [identity >> 62 for identity in identities]
    assert 4 == len(set(identities))


def test_generated_tokens_continue_the_conversation() -> None:
    """The next turn's prompt has the tokens that the turn before generated."""
    turn = conversation(3).block_keys(16, 4)
    later = conversation(3).block_keys(16, 9)

    assert list(turn) == list(later)[:4]


def test_system_prompt_is_shared_up_to_its_last_full_block() -> None:
    """A block that holds a first private token is nobody else's."""
    one = conversation(1, prefix=5, prefix_tokens=40).block_keys(16, 4)
    two = conversation(2, prefix=5, prefix_tokens=40).block_keys(16, 4)

    assert [True, True, False, False] == [a == b for a, b in zip(one, two, strict=True)]


def test_coarse_ids_are_split_into_fine_blocks() -> None:
    """A 512-token id gives 32 blocks of 16 tokens, the partial tail is private."""
    one = block_file([7, 8], 512, 512 + 64, owner=1).block_keys(16, 37)
    two = block_file([7, 8], 512, 512 + 64, owner=2).block_keys(16, 37)
    equal = [a == b for a, b in zip(one, two, strict=True)]

    assert [True] * 36 + [False] == equal


def test_a_file_read_again_holds_new_tokens() -> None:
    """A second pass over a block-id file hits nothing of the first."""
    first = block_file([7, 8], 16, 32).block_keys(16, 2)
    again = block_file([7, 8], 16, 32, reading=1).block_keys(16, 2)

    assert set(first).isdisjoint(again)


def test_a_conversation_without_a_prefix_has_its_keys_for_free() -> None:
    """A range, so that a request of any length costs nothing."""
    assert range(15, 15 + 16 * 1000, 16) == conversation(0).block_keys(16, 1000)


@pytest.mark.parametrize("turn", [-1, 1 << 14])
def test_a_turn_has_its_bits(turn: int) -> None:
    """A turn beyond its field would be another conversation's."""
    with pytest.raises(AssertionError):
        private_base(0, turn)
