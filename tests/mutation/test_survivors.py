"""The file of survivors says for each what it changes and why that cannot matter."""

from __future__ import annotations

import pytest

from tests.mutation.survivors import ARGUED, EVERY, Judgement, Survivor, argued, draft

TEXT = """# A title

### `patton.pairs.PairPool.of`

```diff
- last_release=[0] * count,
+ last_release=[1] * count,
- a long line that is
- broken
+ another
```

Because.
"""
WAS, BECOMES = "last_release=[0] * count,", "last_release=[1] * count,"
FIRST = Survivor("patton.pairs.PairPool.of", WAS, BECOMES)


def test_changes_are_read_one_by_one() -> None:
    second = Survivor(FIRST.function, "a long line that is broken", "another")

    assert [FIRST, second] == argued(TEXT)


def test_a_draft_is_read_again_once_it_is_argued() -> None:
    lines = "--- old", "+++ new", " context", "-    x = 1", "+    x = 2"
    survivor = Survivor.of("patton.pairs.choose", lines)
    again = draft([survivor, FIRST])
    with pytest.raises(ValueError, match="no argument after"):
        argued(again)
    because = again.replace("```\n", "```\n\nBecause.\n").replace("`\n", "`\n")

    assert {survivor, FIRST} == {*argued(because)}


def test_one_argument_is_for_one_mutant() -> None:
    assert Judgement([FIRST], []) == Judgement.of([FIRST, FIRST], [FIRST])
    assert Judgement([], [FIRST]) == Judgement.of([FIRST], [FIRST, FIRST])


def test_a_rule_is_for_every_function_and_one_place() -> None:
    rule = Survivor(EVERY, ", strict=True", ", strict=None")
    was = "zip(zip(*rows, strict=True), pairs, strict=True)"
    first = Survivor("m.f", was, "zip(zip(*rows, strict=None), pairs, strict=True)")
    last = Survivor("m.g", was, "zip(zip(*rows, strict=True), pairs, strict=None)")
    both = Survivor("m.g", was, "zip(zip(*rows, strict=None), pairs, strict=None)")

    assert Judgement([both], []) == Judgement.of([first, last, both], [rule])
    assert Judgement([FIRST], [rule]) == Judgement.of([FIRST], [rule])


def test_the_file_argues_every_block() -> None:
    assert argued(ARGUED.read_text())
