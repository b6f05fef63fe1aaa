"""The file of survivors says for each what it changes and why that cannot matter."""

from __future__ import annotations

import pytest

from tests.mutation.survivors import ARGUED, Survivor, argued, draft, missing

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
    assert [FIRST] == missing([FIRST, FIRST], [FIRST])
    assert [] == missing([FIRST], [FIRST, FIRST])


def test_the_file_argues_every_block() -> None:
    assert argued(ARGUED.read_text())
