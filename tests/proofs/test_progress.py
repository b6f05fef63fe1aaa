"""How far a command is: told on standard error, and nowhere else."""

from __future__ import annotations

import sys

import pytest

from proofs.progress import watched


def test_items_come_through_unchanged(capsys: pytest.CaptureFixture[str]) -> None:
    assert list("abc") == list(watched("abc", 3, "letters"))
    assert "" == capsys.readouterr().out


def test_away_from_a_terminal_there_are_ten_lines(
    capsys: pytest.CaptureFixture[str],
) -> None:
    list(watched(range(200), 200, "things"))

    lines = capsys.readouterr().err.splitlines()
    assert 10 == len(lines)
    assert "20 of 200 things" == lines[0]
    assert "200 of 200 things" == lines[-1]


def test_on_a_terminal_one_line_overwrites_the_last(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is gone while the caller prints, and at the end."""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    seen = [capsys.readouterr().err for _ in watched(range(3), 3, "things")]

    assert "\r\x1b[K" == seen[0]
    assert "1 of 3 things\r\x1b[K" == seen[1]
    assert capsys.readouterr().err.endswith("3 of 3 things\r\x1b[K")


def test_nothing_to_do_is_nothing_to_tell(capsys: pytest.CaptureFixture[str]) -> None:
    assert [] == list(watched([], 0, "things"))
    assert "" == capsys.readouterr().err
