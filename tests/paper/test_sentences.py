"""Every rule of the paper has a test that ends with its reference, and no other is."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from spec.clauses import SPEC, clauses
from tests.paper.sentences import NO_RULES, numbered

HERE = Path(__file__).parent
FILES = sorted(HERE.glob("test_section_*.py"))

# "Ours: LIFE-NEXT." where a design decision overrides what the paper says, and then,
# as the last line of all, "Reference: section 4.4, sentences 5.2, 5.3."
REFERENCE = re.compile(r"\nReference: section ([\d.]+), sentences? ([\d., ]+)\.\Z")
OURS = re.compile(r"\nOurs: ([A-Z, \n-]+)\.\n")


def docstrings(source: str) -> Iterator[tuple[str, str]]:
    """The tests of a file and what they say."""
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            yield node.name, ast.get_docstring(node) or ""


def told() -> dict[str, str]:
    """What each test of the paper says, by name."""
    return {
        name: words
        for path in FILES
        for name, words in docstrings(path.read_text(encoding="utf-8"))
    }


def references(words: str) -> list[str]:
    """The sentences that a test ends with, none if it does not."""
    found = REFERENCE.search(words)
    if found is None:
        return []
    section, sentences = found.groups()
    return [f"{section} {sentence}" for sentence in sentences.split(", ")]


def test_every_test_ends_with_its_reference() -> None:
    missing = [name for name, words in told().items() if not references(words)]

    assert [] == missing


def test_every_sentence_is_a_rule_with_a_test_or_none() -> None:
    """Nothing is left out, nothing is both, and nothing is not in the paper."""
    tested = {name for words in told().values() for name in references(words)}

    assert set() == numbered() - tested - NO_RULES.keys()
    assert set() == tested & NO_RULES.keys()
    assert set() == (tested | NO_RULES.keys()) - numbered()


def test_the_clauses_that_override_are_in_the_specification() -> None:
    known = {clause.id for clause in clauses(SPEC.read_text(encoding="utf-8"))}
    named = {
        clause
        for words in told().values()
        for found in OURS.finditer(words)
        for clause in re.split(r",\s+", found[1])
    }

    assert named
    assert set() == named - known


def test_a_reference_is_read_as_it_is_written() -> None:
    words = "A rule.\n\nOurs: LIFE-NEXT.\nReference: section 4.4, sentences 5.2, 5.3."

    assert ["4.4 5.2", "4.4 5.3"] == references(words)
    assert [] == references(words + " More.")
    assert [] == references("A rule without any.")
