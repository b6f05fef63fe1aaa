"""The texts that say what is proved, what is tested and what is neither."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from proofs import assurance
from proofs.assurance import (
    BEGIN,
    END,
    HEADING,
    README,
    RECORD,
    WHOLE,
    Record,
    differences,
    files,
    main,
    placed,
    short,
    statements,
    whole,
)
from proofs.check import Result, Verdict
from proofs.theorems import THEOREMS
from spec.clauses import ROOT


def easy(number: int = 0, status: Verdict = "proved") -> Result:
    """As if a theorem had been proved with ease."""
    theorem = THEOREMS[number]
    bugs = len(theorem.planted)
    return Result(theorem.name, status, 0.0, 0, 1, 10, bugs, ())


EASY = Record.of(map(easy, range(len(THEOREMS))))


def committed() -> Record:
    """What the run found that is committed."""
    return Record.parse((ROOT / RECORD).read_text(encoding="utf-8"))


# What is committed.

in_a_checkout = pytest.mark.skipif(
    not (ROOT / README).exists(), reason="the texts are not where the tests are"
)


@in_a_checkout
def test_the_record_is_of_the_theorems_there_are() -> None:
    """None is missing, none is gone, and every planted bug was refuted."""
    record = committed()

    assert [theorem.name for theorem in THEOREMS] == [*record.bugs]
    assert {t.name: len(t.planted) for t in THEOREMS} == record.bugs
    assert all(record.obligations.values())


@in_a_checkout
def test_committed_texts_are_what_the_record_says() -> None:
    """The README's section and the whole text, word by word."""
    assert [] == differences(ROOT, committed())


@in_a_checkout
def test_an_edited_text_is_noticed(tmp_path: Path) -> None:
    """Another number in the README, another word in the whole text, no record."""
    record = committed()
    for path, text in files(ROOT, record):
        copied = tmp_path / path.relative_to(ROOT)
        copied.parent.mkdir(exist_ok=True)
        copied.write_text(text, encoding="utf-8")
    assert [] == differences(tmp_path, record)

    readme = tmp_path / README
    count = f"{len(THEOREMS)} theorems"
    old = readme.read_text(encoding="utf-8")
    assert 1 == old.count(count)
    readme.write_text(old.replace(count, "999 theorems"), encoding="utf-8")
    assert [README] == differences(tmp_path, record)

    (tmp_path / RECORD).unlink()
    assert [RECORD, README] == differences(tmp_path, record)
    assert [RECORD, WHOLE, README] == differences(tmp_path, EASY)


# What is written.


def test_every_clause_is_in_one_of_the_three_parts() -> None:
    section = whole(EASY)

    assert section.startswith(f"## {HEADING}")
    for row in statements():
        assert 1 == section.count(f"| {row.clause.id} |"), row.clause.id
    assert f"{len(THEOREMS)} theorems ({10 * len(THEOREMS)} obligations" in section


def test_what_is_about_the_runtime_alone_is_not_called_proved() -> None:
    proved, _, rest = whole(EASY).partition("### Tested, not proved")

    assert "| INV-OWNER |" in proved
    assert "| CMD-WRITE |" in proved
    assert "| LIFE-NEXT |" in rest
    assert "| DEV-BITS |" in rest


def test_the_short_form_counts_every_clause_once() -> None:
    rows = [line.split(" | ") for line in short(EASY).splitlines()[6:12]]

    assert ["| INV", "| LIFE", "| STEP", "| MAP", "| CMD", "| DEV"] == [
        row[0].partition(":")[0] for row in rows
    ]
    counts = [sum(int(row[part]) for row in rows) for part in (1, 2, 3)]
    parts = ("proved", "tested only", "neither")
    assert counts == [sum(one.part == part for one in statements()) for part in parts]
    assert len(statements()) == sum(counts)


def test_a_record_is_read_as_it_was_written() -> None:
    assert EASY == Record.parse(str(EASY))
    names = [theorem["name"] for theorem in json.loads(str(EASY))["theorems"]]
    assert names == [theorem.name for theorem in THEOREMS]


def test_the_section_replaces_the_one_before() -> None:
    once = placed("# Title\n\nText.\n", "old")
    again = placed(once + "\nMore.\n", "new")

    assert "old" in once
    assert "old" not in again
    assert again.startswith("# Title\n\nText.\n")
    assert again.endswith("\nMore.\n")
    assert again.count(BEGIN) == again.count(END) == 1


# The command. A full run takes a minute; here its theorems are checked in no time.


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Every theorem is proved with ease."""
    monkeypatch.setattr(assurance, "_checked", easy)
    return monkeypatch


@pytest.mark.usefixtures("at_once")
def test_a_fresh_run_agrees_with_what_it_wrote(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = ["--jobs", "1", "--root", str(tmp_path)]
    assert 1 == main([*root, "--check"])
    assert not list(tmp_path.iterdir())

    assert 0 == main(root)
    assert 0 == main([*root, "--check"])
    (tmp_path / WHOLE).write_text("Nothing.", encoding="utf-8")
    capsys.readouterr()
    assert 1 == main([*root, "--check"])
    assert f"{WHOLE} is not what this run says" in capsys.readouterr().err


def test_nothing_is_written_if_anything_is_not_proved(
    tmp_path: Path, at_once: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    at_once.setattr(assurance, "_checked", lambda n: easy(n, "proved" if n else "deaf"))

    assert 1 == main(["--jobs", "1", "--root", str(tmp_path)])
    assert f"not proved: {THEOREMS[0].name}\n" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
