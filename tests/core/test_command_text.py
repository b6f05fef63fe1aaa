"""The parser's refusals to the word, and texts at the edge of what is allowed."""

from __future__ import annotations

import attrs
import numpy as np
import pytest

from patton.commands import (
    CommandStream,
    Loads,
    Op,
    Queries,
    ResultTable,
    Tokens,
)
from patton.errors import StreamError
from tests.core.test_commands import TABLES, TEXT, assert_same, ints, stream_of

NUMBER = "a decimal number from -9223372036854775808 to 9223372036854775807"
COUNT = NUMBER.replace("-9223372036854775808", "0")


def refusal(text: str) -> tuple[object, ...]:
    with pytest.raises(StreamError) as raised:
        CommandStream.from_text(text)
    return attrs.astuple(raised.value)


@pytest.mark.parametrize(
    ("found", "replacement", "problem", "accepted"),
    [
        ("step=3", "step=3=4", "'3=4'", NUMBER),
        ("tokens rows=2", "tokens rows=-1", "'-1'", COUNT),
        ("loads rows=3", "loads rows=-1", "'-1'", COUNT),
        ("entries rows=", "entries rows=-", "'-", COUNT),
        ("ACT ", "ACT  ", "''", "a field of the stream's entries"),
        ("register=1 reference=6", "register=1=2 reference=6", "'1=2'", None),
        ("channel=0+4", "channel=0+65536", "'65536'", "a decimal number from 0 to 655"),
        ("phase=commit", "phase=commits", "phase is 'commits'", None),
    ],
)
def test_a_refusal_is_exact(
    found: str, replacement: str, problem: str, accepted: str | None
) -> None:
    text = TEXT.replace(found, replacement, 1)
    assert text != TEXT
    found_fields = refusal(text)

    assert str(found_fields[1]).startswith(problem)
    assert accepted is None or str(found_fields[2]).startswith(accepted)


def test_the_end_of_a_text_says_what_was_due() -> None:
    lines = TEXT.splitlines(keepends=True)
    without_last = "".join(lines[:-1])

    assert (len(lines), "the text ends", "an entry") == refusal(without_last)
    assert (2, "the text ends", "stream phase=... step=... source=...") == refusal(
        lines[0]
    )
    frame = "entries rows=... optional=..."
    assert (4, "the text ends", frame) == refusal("".join(lines[:3]))


def test_the_first_line_too_many_is_named() -> None:
    count = len(TEXT.splitlines())

    assert (count + 1, "one", "the end of the text") == refusal(f"{TEXT}one\ntwo\n")


def test_a_tab_is_no_space() -> None:
    text = TEXT.replace("tokens rows", "tokens\trows")

    line, problem, accepted = refusal(text)
    assert (5, "tokens\trows=2") == (line, problem)
    assert str(accepted).startswith("entries ")


def test_tables_without_rows_keep_their_types() -> None:
    none = ints()
    empty = stream_of(
        [],
        **TABLES
        | {
            "tokens": Tokens(none, none),
            "queries": Queries(none, none, none),
            "results": ResultTable(none, none, 4, 1),
            "loads": Loads(none, ints(0), none, none, none),
        },
    )

    assert_same(empty, CommandStream.from_text(empty.to_text()))


def test_a_read_of_no_lane_says_so() -> None:
    """Where the columns are there, what is zero is shown for reads and writes."""
    text = stream_of([{"op": Op.RD}, {"op": Op.WR}]).to_text()
    *_, read, write = text.splitlines()

    assert "lanes=0x0" in read
    assert "lanes=0x0 fill=0" in write


def test_numbers_as_large_as_they_come() -> None:
    tokens = Tokens(ints(-(2**63), 2**63 - 1), ints(0, 1))
    made = stream_of([], **TABLES | {"tokens": tokens})

    assert_same(made, CommandStream.from_text(made.to_text()))
    beyond = made.to_text().replace(str(2**63 - 1), str(2**63))
    assert (repr(str(2**63)), NUMBER) == refusal(beyond)[1:]


@pytest.mark.parametrize("op", [Op.ACT, Op.WRBIAS, Op.RDMAC, Op.RDAF])
def test_a_single_command_is_one_whatever_its_columns_say(op: Op) -> None:
    made = stream_of([{"op": op, "count": 5, "banks": 3}])

    assert [1] == made.command_counts().tolist()
    assert np.dtype(np.int64) == made.command_counts().dtype
