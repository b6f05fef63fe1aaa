"""Readers of the workload formats that come as JSON Lines or CSV.

Each reader yields conversations lazily, in file order. Formats without sessions give
one-turn conversations. What a format leaves unknown (who the generated tokens are, or
any tokens at all) is private, so that a hit is never invented.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import attrs
import numpy as np
from numpy.typing import NDArray

from patton.engine.conversations import PLAIN, ChatTemplate, Conversation, Turn, chat
from patton.engine.text import MOST_TOKENS, Row, csv_rows, json_rows
from patton.engine.tokens import TURN_BITS, BlockIds

MOONCAKE_BLOCK_TOKENS = 512
FINE_BLOCK_TOKENS = 16  # of Bailian, and of all files that hash blocks finely
MOST_TURNS = 1 << TURN_BITS


def estimate_tokens(text: str) -> int:
    """About how many tokens a text has: one per four bytes of UTF-8, rounded up.

    The usual rule of thumb; other scripts than Latin have more bytes a letter, and more
    tokens. On ShareGPT it gives 0.98 of GPT-2's count, 1.12 of Qwen's and 1.14 of
    Llama-3's: good for a workload's shape, not for exact counts.
    """
    return -(-len(text.encode("utf-8", "surrogatepass")) // 4)


@attrs.define
class Reading:
    """How to read a file, and how one pass over it went.

    tokenizer: whose counts to take where a file has several; template: chat format to
    add to plain text; count_tokens: of a text. records: conversations or requests read
    so far; truncated: the file ended inside a record, which was dropped.
    """

    tokenizer: str = "llama3"
    template: ChatTemplate = PLAIN
    count_tokens: Callable[[str], int] = estimate_tokens
    records: int = 0
    truncated: bool = False


Ids = NDArray[np.int64]
Reader = Callable[[Path, Reading], Iterator[Conversation]]


def read_turns(path: Path, reading: Reading) -> Iterator[Conversation]:
    """`sharegpt_turns` and `sharegpt_records_turns`: [user, assistant] per turn."""
    for row in json_rows(path):
        reading.records += 1
        messages = row.pairs(reading.tokenizer)
        if sum(map(sum, messages)) > MOST_TOKENS:
            row.refuse("too many tokens in all", f"at most {MOST_TOKENS}")
        if messages:
            yield chat(messages, reading.template)


def read_blocks16(path: Path, reading: Reading) -> Iterator[Conversation]:
    """`sharegpt_blocks16`: turns with whole prompts, ids of the whole conversation.

    Prompts hold their history, so the generated tokens have ids as well.
    """
    for row in json_rows(path):
        reading.records += 1
        ids = row.id_runs("blocks")
        known = BlockIds(ids, FINE_BLOCK_TOKENS, len(ids) * FINE_BLOCK_TOKENS)
        turns = []
        history = 0
        for prompt, output in row.pairs("turns", least=1):
            if prompt <= history:
                row.refuse(f"a prompt of {prompt} tokens", f"more than {history}")
            history = prompt + output
            turns.append(Turn(prompt, output, known))
        if turns:
            yield _session(row, turns)


def read_mooncake_runs(path: Path, reading: Reading) -> Iterator[Conversation]:
    """`mooncake_conversation_512`: hashes of 512 tokens, run-length coded."""
    for row in json_rows(path):
        reading.records += 1
        yield Conversation((_mooncake_turn(row, "in", "out", row.id_runs("b")),))


def read_mooncake(path: Path, reading: Reading) -> Iterator[Conversation]:
    """Mooncake's published JSON Lines: `hash_ids` of 512 tokens each."""
    chains = Chains()
    for row in json_rows(path):
        reading.records += 1
        ids = chains.chained(row.ids("hash_ids"))
        yield Conversation((_mooncake_turn(row, "input_length", "output_length", ids),))


def _mooncake_turn(row: Row, prompt: str, output: str, ids: Ids) -> Turn:
    """A request whose last id may stand for a partial block.

    Only whole 16-token blocks of the prompt keep their ids: h becomes 32 of them.
    """
    tokens = max(1, row.count(prompt))
    expected = -(-tokens // MOONCAKE_BLOCK_TOKENS)
    if len(ids) != expected:
        row.refuse(f"{len(ids)} ids for {tokens} tokens", f"{expected} ids")
    covered = tokens - tokens % FINE_BLOCK_TOKENS
    known = BlockIds(ids, MOONCAKE_BLOCK_TOKENS, covered)
    return Turn(tokens, max(1, row.count(output)), known)


def read_agents(path: Path, reading: Reading) -> Iterator[Conversation]:
    """`lmcache_agents_blocks16`: the calls of a session stand together, in order."""
    turns: list[Turn] = []
    session: object = None
    row = None
    for row in json_rows(path):
        reading.records += 1
        key = (row.get("fam"), row.get("s"))
        if key != session:
            if turns:
                yield _session(row, turns)
            turns = []
            session = key
        if row.get("i") != len(turns):
            row.refuse(f"call {row.get('i')!r} of session {key}", f"call {len(turns)}")
        turns.append(_fine_turn(row, "in", "out", row.id_runs("b")))
    if row is not None:
        yield _session(row, turns)


def read_bailian(path: Path, reading: Reading) -> Iterator[Conversation]:
    """Bailian's JSON Lines: `hash_ids` of 16 tokens each, chats linked by their parent.

    A conversation is all requests with one root, in file order. Chats are interleaved
    in the file, so it is read whole before the first one is known to be complete.
    """
    chains = Chains()
    root_of: dict[object, object] = {}
    turns_of: dict[object, list[Turn]] = {}
    row = None
    for row in json_rows(path):
        reading.records += 1
        chat_id, parent = row.get("chat_id"), row.get("parent_chat_id")
        if not all(isinstance(value, int | str) for value in (chat_id, parent)):
            row.refuse(f"chat {chat_id!r} of parent {parent!r}", "numbers or texts")
        # A parent from before the trace began is as good as none.
        root = root_of[chat_id] = root_of.get(parent, chat_id)
        ids = chains.chained(row.ids("hash_ids"))
        turn = _fine_turn(row, "input_length", "output_length", ids)
        turns_of.setdefault(root, []).append(turn)
    for turns in turns_of.values():
        assert row is not None
        yield _session(row, turns)


def _session(row: Row, turns: list[Turn]) -> Conversation:
    """A conversation that ended by `row`; each turn has a number for its own tokens."""
    if len(turns) > MOST_TURNS:
        row.refuse(f"a conversation of {len(turns)} turns", f"at most {MOST_TURNS}")
    return Conversation(tuple(turns))


def _fine_turn(row: Row, prompt: str, output: str, ids: Ids) -> Turn:
    """A request with ids of 16-token blocks; what they do not cover is private."""
    tokens = max(1, row.count(prompt))
    most = -(-tokens // FINE_BLOCK_TOKENS)
    if len(ids) > most:
        row.refuse(f"{len(ids)} ids for {tokens} tokens", f"at most {most} ids")
    full = tokens // FINE_BLOCK_TOKENS
    covered = min(len(ids), full) * FINE_BLOCK_TOKENS
    known = BlockIds(ids, FINE_BLOCK_TOKENS, covered)
    return Turn(tokens, max(1, row.count(output)), known)


def read_azure(path: Path, reading: Reading) -> Iterator[Conversation]:
    """Azure's published CSV, and ours of the same: lengths only."""
    return _read_lengths(path, reading, ("ContextTokens", "GeneratedTokens"))


def read_azure_short(path: Path, reading: Reading) -> Iterator[Conversation]:
    """`azure2023_conv`: lengths only."""
    return _read_lengths(path, reading, ("in", "out"))


def read_burstgpt(path: Path, reading: Reading) -> Iterator[Conversation]:
    """BurstGPT's CSV: lengths only; a row without an answer is a failed request."""
    names = ("Request tokens", "Response tokens")
    return _read_lengths(path, reading, names, skip_unanswered=True)


def _read_lengths(
    path: Path,
    reading: Reading,
    names: tuple[str, str],
    *,
    skip_unanswered: bool = False,
) -> Iterator[Conversation]:
    for row in csv_rows(path):
        reading.records += 1
        prompt, output = (row.count(name) for name in names)
        if output or not skip_unanswered:
            yield Conversation((Turn(max(1, prompt), max(1, output)),))


@attrs.define
class Chains:
    """Numbers for (block, all blocks before it), in order of appearance.

    Published ids need not depend on what comes before (Bailian's do not), and may be
    any whole number; after this, equal number means equal tokens and equal prefix.
    """

    _numbers: dict[tuple[int, int], int] = attrs.field(factory=dict)

    def chained(self, ids: Iterable[int]) -> Ids:
        """The number of every block of one prompt."""
        numbers = self._numbers
        previous = -1
        chain = []
        for block in ids:
            previous = numbers.setdefault((previous, block), len(numbers))
            chain.append(previous)
        return np.array(chain, np.int64)
