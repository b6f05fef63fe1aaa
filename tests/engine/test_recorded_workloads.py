"""The readers on the recorded workloads: their README's figures, counted again.

Needs the data folder (PATTON_DATA, or `../shared/data` beside the checkout).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from patton.engine.conversations import Conversation
from patton.engine.workloads import open_workload


def opened(data_dir: Path, name: str, **options: Any) -> list[Conversation]:
    return list(open_workload(data_dir / name, **options).conversations())


@pytest.mark.parametrize(
    ("name", "conversations", "turns"),
    [
        ("sharegpt_turns.jsonl.gz", 9_435, 61_237),
        ("sharegpt_records_turns.jsonl.gz", 17_391, 61_237),
        ("sharegpt_blocks16_qwen.jsonl.gz", 9_435, 61_237),
        ("mooncake_conversation_512.jsonl.gz", 12_031, 12_031),
        ("lmcache_agents_blocks16_qwen.jsonl.gz", 69, 1_619),
        ("azure2023_conv.csv.gz", 19_366, 19_366),
    ],
)
def test_every_recorded_file_is_read_whole(
    data_dir: Path, name: str, conversations: int, turns: int
) -> None:
    """As many conversations and turns as the data's own description counts."""
    found = opened(data_dir, name)

    assert conversations == len(found)
    assert turns == sum(len(conversation.turns) for conversation in found)


def test_chatml_lengths_are_those_of_the_block_file(data_dir: Path) -> None:
    """Both were made from the same text, one with and one without the template."""
    counted = opened(
        data_dir, "sharegpt_turns.jsonl.gz", tokenizer="qwen", template=True
    )
    chained = opened(data_dir, "sharegpt_blocks16_qwen.jsonl.gz")
    same = sum(
        [(turn.prompt_tokens, turn.output_tokens) for turn in one.turns]
        == [(turn.prompt_tokens, turn.output_tokens) for turn in other.turns]
        for one, other in zip(counted, chained, strict=True)
    )

    # Empty messages count as one token here; two texts joined may merge a token.
    assert same / len(counted) > 0.97


@pytest.mark.parametrize(
    ("name", "ideal"),
    [
        ("mooncake_conversation_512.jsonl.gz", 0.366),
        ("lmcache_agents_blocks16_qwen.jsonl.gz", 0.900),
    ],
)
def test_ideal_hits_are_those_described(
    data_dir: Path, name: str, ideal: float
) -> None:
    """Blocks already seen, of all blocks of prompts, in file order, never evicted."""
    seen: set[int] = set()
    total = 0
    for conversation in opened(data_dir, name):
        for turn in conversation.turns:
            assert turn.block_ids is not None
            ids = turn.block_ids.ids.tolist()
            total += len(ids)
            seen.update(ids)

    assert ideal == pytest.approx(1 - len(seen) / total, abs=0.001)
