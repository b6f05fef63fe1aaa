"""The public ShareGPT JSON: whole, cut off anywhere, malformed. The texts are ours."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from patton.engine import sharegpt
from patton.engine.formats import Reading, estimate_tokens
from patton.engine.workloads import Workload, open_workload
from patton.errors import WorkloadError


def record(*messages: tuple[str, str]) -> dict[str, Any]:
    listed = [{"from": sender, "value": text} for sender, text in messages]
    return {"id": "x_0", "conversations": listed}


RECORDS = [
    record(("human", "a b c"), ("gpt", "d e"), ("human", "f"), ("gpt", 'g "h" \\ i')),
    record(("gpt", "an answer first"), ("user", "q"), ("bard", "r s"), ("human", "t")),
    record(("system", "be kind"), ("human", "u"), ("human", "v w"), ("bing", "x")),
    record(("human", "nobody answers")),
    record(("human", "smile \U0001f600\n"), ("chatgpt", "é è"), ("gpt", "again")),
]
LENGTHS = [[(3, 2), (6, 4)], [(1, 2)], [(3, 1)], [(2, 3)]]


def words(text: str) -> int:
    return len(text.split())


def read(path: Path) -> tuple[list[list[tuple[int, int]]], Workload]:
    workload = open_workload(path, count_tokens=words)
    lengths = [
        [(turn.prompt_tokens, turn.output_tokens) for turn in conversation.turns]
        for conversation in workload.conversations()
    ]
    return lengths, workload


def store(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "sharegpt.json"


@pytest.mark.parametrize("indent", [None, 1])
@pytest.mark.parametrize("chunk", [1, 7, 1 << 20])
def test_roles_are_joined_and_unanswered_messages_dropped(
    file: Path, monkeypatch: pytest.MonkeyPatch, chunk: int, indent: int | None
) -> None:
    """Whatever the size of the pieces in which the text arrives."""
    monkeypatch.setattr(sharegpt, "CHUNK_CHARACTERS", chunk)
    store(file, json.dumps(RECORDS, indent=indent, ensure_ascii=indent is None))
    lengths, workload = read(file)

    assert LENGTHS == lengths
    assert ("sharegpt-json", 5, False) == (
        workload.format,
        workload.reading.records,
        workload.reading.truncated,
    )


def test_a_file_cut_off_anywhere_gives_all_complete_records(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Inside a string, an escape, a surrogate pair, between records: never an error."""
    monkeypatch.setattr(sharegpt, "CHUNK_CHARACTERS", 64)
    text = json.dumps(RECORDS)
    ends = [len(json.dumps(RECORDS[:count])) - 1 for count in range(1, 6)]
    for cut in range(1, len(text), 3):
        lengths, workload = read(store(file, text[:cut]))

        complete = sum(end <= cut for end in ends)
        assert complete == workload.reading.records
        assert workload.reading.truncated
        assert LENGTHS[: len(lengths)] == lengths


def test_a_cut_gzip_file_gives_what_can_be_unpacked(file: Path) -> None:
    """The stream's own end is missing, and part of the text."""
    texts = [f"{number**9:x} {number**11:x}" for number in range(3000)]
    rows = [record(("human", text), ("gpt", "fine")) for text in texts]
    file.write_bytes(gzip.compress(json.dumps(rows).encode())[:-9000])
    lengths, workload = read(file)

    assert workload.reading.truncated
    assert 100 < len(lengths) < 3000


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        ('[\n{"id": 1,\n"x" 2}' + " " * 99 + "]", 3, "no JSON"),
        ('[\n\n{"id": 1}]', 3, "a record without conversations"),
        ("[3]", 1, "a record without conversations"),
        ('[\n{"conversations": [3]}]', 2, "a message that is 3"),
        ('[{"conversations": [{"from": "human"}]}]', 1, "a message without text"),
        ('[{"conversations": [{"from": "owl", "value": ""}]}]', 1, "human"),
        ('[{"conversations": [{"from": [], "value": ""}]}]', 1, "human"),
        ("[\n" + "[" * 100_000, 2, "no JSON"),
        ('[{"id": ' + "9" * 5000 + "}]", 1, "no JSON"),
    ],
)
def test_what_is_malformed_is_named(
    file: Path, text: str, line: int, problem: str
) -> None:
    """With the line, and what would be accepted; and no text of the file."""
    with pytest.raises(WorkloadError, match=problem) as caught:
        read(store(file, text))

    assert line == caught.value.line


def test_what_is_no_array_is_no_such_file(file: Path) -> None:
    """Whoever reads without asking for the format is told."""
    with pytest.raises(WorkloadError, match="no array"):
        list(sharegpt.read_sharegpt(store(file, '{"conversations": []}'), Reading()))


def test_the_default_count_is_a_quarter_of_the_bytes() -> None:
    """Rounded up; scripts with more bytes a letter have more tokens."""
    assert [0, 1, 1, 2, 3] == [
        estimate_tokens(text) for text in ("", "a", "abcd", "abcde", "日本語")
    ]
