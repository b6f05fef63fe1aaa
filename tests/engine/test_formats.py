"""Every format from a few lines of it, and what is said of lines that are none."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from patton.engine import formats
from patton.engine.conversations import CHAT_TEMPLATES, Conversation, chat
from patton.engine.formats import Chains
from patton.engine.workloads import FORMATS, open_workload
from patton.errors import ConfigError, WorkloadError

TURNS = {
    "c": 0,
    "gpt2": [[30, 200]],
    "qwen": [[34, 244], [36, 320]],
    "llama3": [[1, 2]],
}
RECORDS = {"g": 4, "at": 2, "gpt2": [[1, 2]], "qwen": [[3, 4]], "llama3": [[5, 0]]}
BLOCKS = {"c": 0, "turns": [[42, 245], [332, 20]], "blocks": [[0, 20], [30, 2]]}
AGENT = {"fam": "a", "s": 0, "i": 0, "t": 0.0, "in": 40, "out": 5, "b": [[3, 2]]}
MOONCAKE = {"t": 0, "in": 1030, "out": 7, "b": [[0, 1], [8, 2]]}
PUBLIC_MOONCAKE = {
    "timestamp": 0,
    "input_length": 1030,
    "output_length": 7,
    "hash_ids": [0, 8, 9],
}
BAILIAN = {
    "chat_id": 159,
    "parent_chat_id": -1,
    "timestamp": 61.1,
    "input_length": 40,
    "output_length": 5,
    "type": "text",
    "turn": 1,
    "hash_ids": [11, 12, 13],
}
AZURE = "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.6805900,374,44\n"
AZURE_SHORT = "t_s,in,out\n0.0000,374,44\n4.3146,396,109\n"
BURST = (
    "Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,"
    "Total tokens,Log Type\n"
    '5,1,1.2,ChatGPT,472,18,490,"Conversation log"\n'
    "45,1,0.1,GPT-4,1087,0,1087,API log\n"
)


def write(path: Path, *rows: dict[str, Any], packed: bool = False) -> Path:
    text = "".join(json.dumps(row) + "\n" for row in rows)
    return write_text(path, text, packed=packed)


def write_text(path: Path, text: str, *, packed: bool = False) -> Path:
    data = text.encode()
    path.write_bytes(gzip.compress(data) if packed else data)
    return path


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "trace"


def read(path: Path, **options: Any) -> list[Conversation]:
    return list(open_workload(path, **options).conversations())


def shape(conversations: list[Conversation]) -> list[list[tuple[int, int]]]:
    return [
        [(turn.prompt_tokens, turn.output_tokens) for turn in conversation.turns]
        for conversation in conversations
    ]


@pytest.mark.parametrize("packed", [False, True])
def test_each_prompt_has_the_whole_history(file: Path, packed: bool) -> None:
    """34 + 244, then 36 more; plain and gzip are told by content, not by name."""
    write(file, TURNS, packed=packed)

    assert [[(34, 244), (314, 320)]] == shape(read(file, tokenizer="qwen"))
    assert [[(30, 200)]] == shape(read(file, tokenizer="gpt2"))


def test_the_chat_format_of_a_tokenizer_can_be_added(file: Path) -> None:
    """ChatML: 8 a prompt, 1 an answer, 1 between; so the block file counts, too."""
    write(file, TURNS)

    expected = [[(42, 245), (332, 321)]]
    assert expected == shape(read(file, tokenizer="qwen", template=True))


def test_chat_formats_of_the_other_tokenizers() -> None:
    """Llama-3: 1 once, 9 a prompt, 1 an answer. OPT: 1 once."""
    llama = chat([(10, 20), (30, 40)], CHAT_TEMPLATES["llama3"])
    opt = chat([(10, 20), (30, 40)], CHAT_TEMPLATES["gpt2"])

    assert [[(20, 21), (80, 41)]] == shape([llama])
    assert [[(11, 20), (61, 40)]] == shape([opt])


def test_records_are_conversations_and_empty_messages_count_one(file: Path) -> None:
    """A record as released; 0 tokens would be no request."""
    write(file, RECORDS)

    assert [[(5, 1)]] == shape(read(file))


def test_block_file_identifies_generated_tokens_too(file: Path) -> None:
    """22 ids cover all 352 tokens but none of the private tail; turns share them."""
    write(file, BLOCKS)
    [conversation] = read(file)
    first, second = (conversation.token_source(i, 0, 0) for i in range(2))

    assert [[(42, 245), (332, 20)]] == shape([conversation])
    keys = list(second.block_keys(16, 22))
    assert list(first.block_keys(16, 17)) == keys[:17]
    ids = [*range(20), 30, 31]
    assert ids == [(key >> 12) % (1 << 32) for key in keys]


def test_a_conversation_without_turns_is_passed_over(file: Path) -> None:
    """It is a record, and nothing to serve."""
    workload = open_workload(write(file, TURNS | {"llama3": []}, TURNS))
    assert 1 == len(list(workload.conversations()))
    assert 2 == workload.reading.records
    write(file, BLOCKS | {"turns": []}, BLOCKS)

    assert 1 == len(read(file))


def test_each_turn_of_a_session_needs_a_number_of_its_own(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More turns than numbers are refused; there are 16,384."""
    assert 16_384 == formats.MOST_TURNS
    monkeypatch.setattr(formats, "MOST_TURNS", 1)
    write(file, AGENT, AGENT | {"i": 1})
    with pytest.raises(WorkloadError, match="a conversation of 2 turns"):
        read(file)


def test_mooncake_ids_cover_whole_small_blocks_only(file: Path) -> None:
    """1,030 tokens under three ids: 64 blocks of 16, and 6 private tokens."""
    write(file, MOONCAKE)
    [runs] = read(file)
    write(file, PUBLIC_MOONCAKE)
    [public] = read(file)

    assert [[(1030, 7)]] == shape([runs]) == shape([public])
    for conversation in (runs, public):
        one, two = (conversation.token_source(0, number, 0) for number in range(2))
        same = one.token_identity(np.arange(1037)) == two.token_identity(
            np.arange(1037)
        )

        assert [True] * 1024 + [False] * 13 == same.tolist()


def test_an_agents_session_is_one_conversation(file: Path) -> None:
    """Calls in order; what a call generates is its own."""
    other = AGENT | {"s": 1, "b": [[3, 1]]}
    write(file, AGENT, AGENT | {"i": 1, "in": 50, "b": [[3, 3]]}, other)
    sessions = read(file)

    assert [[(40, 5), (50, 5)], [(40, 5)]] == shape(sessions)
    first, second = (sessions[0].token_source(turn, 0, 0) for turn in range(2))
    same = first.token_identity(np.arange(45)) == second.token_identity(np.arange(45))
    assert [True] * 32 + [False] * 13 == same.tolist()


def test_bailian_chats_are_joined_by_their_root(file: Path) -> None:
    """Interleaved chats come out whole; a parent outside the trace counts as none."""
    reply = BAILIAN | {"chat_id": 170, "parent_chat_id": 159, "input_length": 60}
    later = BAILIAN | {"chat_id": 180, "parent_chat_id": 170, "input_length": 99}
    other = BAILIAN | {"chat_id": 160, "parent_chat_id": 7, "input_length": 48}
    write(file, BAILIAN, other, reply, later)

    expected = [[(40, 5), (60, 5), (99, 5)], [(48, 5)]]
    assert expected == shape(read(file))


def test_bailian_ids_say_nothing_of_what_comes_before(file: Path) -> None:
    """Equal blocks after different ones are different: the reader chains the ids."""
    swapped = BAILIAN | {"chat_id": 1, "hash_ids": [12, 12, 13]}
    write(file, BAILIAN, swapped, BAILIAN | {"chat_id": 2})
    keys = [
        list(conversation.token_source(0, 0, 0).block_keys(16, 2))
        for conversation in read(file)
    ]

    assert set(keys[0]).isdisjoint(keys[1])
    assert keys[0] == keys[2]
    assert 2 == len(set(keys[1]))


def test_chains_number_prefixes_in_order_of_appearance() -> None:
    """Any whole number may be an id."""
    chains = Chains()

    assert [0, 1, 2] == chains.chained([5, -3, 5]).tolist()
    assert [0, 3] == chains.chained([5, 1 << 80]).tolist()


def test_csv_formats(file: Path) -> None:
    """Lengths only; a BurstGPT row without an answer is a failed request."""
    assert [[(374, 44)]] == shape(read(write_text(file, AZURE)))
    assert [[(374, 44)], [(396, 109)]] == shape(read(write_text(file, AZURE_SHORT)))
    assert [[(472, 18)]] == shape(read(write_text(file, BURST)))


def test_every_format_is_recognised(file: Path) -> None:
    """The name says how a file was read."""
    names = [
        open_workload(write(file, row)).format
        for row in (BLOCKS, RECORDS, TURNS, AGENT, MOONCAKE, BAILIAN, PUBLIC_MOONCAKE)
    ]
    names += [
        open_workload(write_text(file, text)).format
        for text in (AZURE, AZURE_SHORT, BURST)
    ]

    assert FORMATS == ("sharegpt-json", *names)


def test_reading_is_lazy_and_counted(file: Path) -> None:
    """A wrong line is met only when it is read; a new pass counts anew."""
    write_text(file, json.dumps(TURNS) + "\nnonsense\n")
    workload = open_workload(file)
    conversations = workload.conversations()
    next(conversations)

    assert 1 == workload.reading.records
    with pytest.raises(WorkloadError, match="line 2"):
        next(conversations)
    next(workload.conversations())
    assert 1 == workload.reading.records


@pytest.mark.parametrize(
    ("good", "bad", "problem"),
    [
        (TURNS, "{", "no JSON"),
        (TURNS, "7", "one JSON object a line"),
        (TURNS, '{"llama3": ' + "[" * 100_000, "no JSON"),
        (TURNS, '{"llama3": [[' + "9" * 5000 + ", 1]]}", "no JSON"),
        (TURNS, '{"c": 1}', "no llama3"),
        (TURNS, '{"llama3": [[1]]}', "list of pairs"),
        (TURNS, '{"llama3": [[1, -2]]}', "list of pairs"),
        (TURNS, '{"llama3": [[1, 2.5]]}', "list of pairs"),
        (TURNS, '{"llama3": [[1, true]]}', "list of pairs"),
        (TURNS, '{"llama3": 5}', "list of pairs"),
        (TURNS, '{"llama3": [[9000000, 1]]}', "list of pairs"),
        (TURNS, '{"llama3": [[8000000, 1], [8000000, 1]]}', "too many tokens"),
        (BLOCKS, '{"turns": [[9, 9], [18, 1]], "blocks": []}', "more than 18"),
        (BLOCKS, '{"turns": [[0, 9]], "blocks": []}', "list of pairs"),
        (BLOCKS, '{"turns": [[9, 9]], "blocks": [[4294967295, 2]]}', "range"),
        (BLOCKS, '{"turns": [[9, 9]], "blocks": [[0, 9000000]]}', "too many ids"),
        (BLOCKS, '{"turns": [[9, 9]], "blocks": [[0, 4294967297]]}', "list of pairs"),
        (MOONCAKE, '{"in": 1030, "out": 7, "b": [[0, 2]]}', "3 ids"),
        (MOONCAKE, '{"in": -1, "out": 7, "b": []}', "whole number"),
        (MOONCAKE, json.dumps(MOONCAKE | {"in": "9" * 5000}), "whole number"),
        (MOONCAKE, '{"in": 9999999, "out": 7, "b": []}', "whole number"),
        (AGENT, '{"fam": "a", "s": 0, "i": 2, "in": 1, "out": 1, "b": []}', "call 1"),
        (
            AGENT,
            '{"fam": "a", "s": 1, "i": 0, "in": 1, "out": 1, "b": [[0, 9]]}',
            "1 id",
        ),
        (BAILIAN, '{"chat_id": 1}', "no parent_chat_id"),
        (BAILIAN, json.dumps(BAILIAN | {"chat_id": [1]}), "numbers or texts"),
        (BAILIAN, json.dumps(BAILIAN | {"hash_ids": "x"}), "whole numbers"),
        (BAILIAN, json.dumps(BAILIAN | {"hash_ids": [True]}), "whole numbers"),
        (BAILIAN, json.dumps(BAILIAN | {"output_length": None}), "whole number"),
    ],
)
def test_a_wrong_line_is_named(
    file: Path, good: dict[str, Any], bad: str, problem: str
) -> None:
    """File, line, what is wrong, and what would be accepted."""
    write_text(file, json.dumps(good) + "\n\n" + bad + "\n")
    with pytest.raises(WorkloadError, match=problem) as caught:
        read(file)

    assert (str(file), 3) == (caught.value.file, caught.value.line)
    assert f"{file}, line 3: " in str(caught.value)


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        (AZURE_SHORT + "1,2\n", 4, "2 fields"),
        (AZURE_SHORT + "1,2,many\n", 4, "out is 'many'"),
        (AZURE_SHORT + f"1,2,{'9' * 5000}\n", 4, "out is '999"),
        (AZURE_SHORT + f"1,2,{'9' * 200_000}\n", 4, "no CSV"),
        (BURST.replace("472", "-472"), 2, "Request tokens"),
    ],
)
def test_a_wrong_row_of_csv_is_named(
    file: Path, text: str, line: int, problem: str
) -> None:
    """The same for CSV."""
    with pytest.raises(WorkloadError, match=problem) as caught:
        read(write_text(file, text))

    assert line == caught.value.line


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "an empty file"),
        ("\n \n", "an empty file"),
        ("a,b,c\n1,2,3\n", "no known format; fields 'a, b, c'"),
        ('{"x": 1}\n', "no known format; fields 'x'"),
        ("{1}\n", "no JSON"),
    ],
)
def test_an_unknown_file_is_refused_with_the_formats(
    file: Path, text: str, problem: str
) -> None:
    """The error lists what would be accepted."""
    with pytest.raises(WorkloadError, match=problem):
        open_workload(write_text(file, text))


def test_a_file_that_cannot_be_opened_is_refused_as_a_whole(tmp_path: Path) -> None:
    """Missing, or a folder: no line is named."""
    for path in (tmp_path / "missing", tmp_path):
        with pytest.raises(WorkloadError) as caught:
            open_workload(path)

        assert 0 == caught.value.line
        assert str(caught.value).startswith(f"{path}: ")


@pytest.mark.parametrize("cut", [4, 30])
def test_a_cut_gzip_file_is_refused(file: Path, cut: int) -> None:
    """At the line where it breaks off."""
    rows = [TURNS | {"c": number, "noise": f"{number**7:x}"} for number in range(400)]
    write(file, *rows, packed=True)
    file.write_bytes(file.read_bytes()[:-cut])
    with pytest.raises(WorkloadError, match="cannot be read"):
        read(file)


def test_bytes_that_are_no_text_are_refused(file: Path) -> None:
    """Neither gzip nor UTF-8."""
    file.write_bytes(b'{"c": 0, "llama3": [[1, 2]]}\n\xff\xfe\n')
    with pytest.raises(WorkloadError, match="cannot be read"):
        read(file)


def test_a_byte_order_mark_is_no_part_of_the_text(file: Path) -> None:
    """Spreadsheets write one."""
    assert [[(374, 44)]] == shape(read(write_text(file, "\ufeff" + AZURE)))


def test_an_unknown_tokenizer_is_refused(file: Path) -> None:
    """With the names of the known ones."""
    with pytest.raises(ConfigError, match="gpt2 or qwen or llama3"):
        open_workload(write(file, TURNS), tokenizer="bert")
