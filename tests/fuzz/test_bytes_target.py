"""The byte-level target: damaged files, and coverage as a guide where there is one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from fuzz import bytes_target
from fuzz.world import FailureError
from spec.clauses import ROOT

RUNS = 300


def test_readers_read_the_good_files(tmp_path: Path) -> None:
    for kind, data in bytes_target.seeds():
        bytes_target.READERS[kind](data, tmp_path / "good")


def test_damaged_files_are_read_or_refused() -> None:
    tried, failure = bytes_target.mutate(1, 0.5)

    assert tried > 50
    assert failure is None


def test_a_reader_that_stumbles_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stumble(_data: bytes, _path: Path) -> None:
        raise KeyError("a field")

    monkeypatch.setitem(bytes_target.READERS, "trace", stumble)
    with pytest.raises(FailureError, match="trace reader: KeyError"):
        bytes_target.check("trace", b"", tmp_path / "any")


def test_coverage_guides_it() -> None:
    """From the good files on, which are counted first; a crash would exit with 77."""
    pytest.importorskip("atheris", reason="the extra `fuzz` is not installed")
    command = [sys.executable, "-m", "fuzz.bytes_target", f"-runs={RUNS}", "-seed=1"]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)

    assert run.returncode == 0, run.stderr[-2000:]
    assert f"Done {RUNS} runs" in run.stderr
    assert "INITED cov:" in run.stderr
