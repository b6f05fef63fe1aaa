"""`patton study` and `patton study report`: words in, files and refusals out."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

pytest.importorskip("matplotlib", reason="the extra `study` is not installed")

Patton = Callable[..., Result]


def test_an_experiment_is_done_and_reported(patton: Patton, tmp_path: Path) -> None:
    """Figures beside the paper's, then one page that has them."""
    done = patton("study", "fragmentation", "--out", tmp_path)
    assert 0 == done.exit_code, done.output
    assert "2.184" in done.output
    figures = json.loads((tmp_path / "results.json").read_text())["figures"]
    assert {"fragmentation"} == {figure["study"] for figure in figures}

    reported = patton("study", "report", tmp_path)
    assert 0 == reported.exit_code, reported.output
    pages = reported.output.split()
    assert [str(tmp_path / name) for name in ("report.html", "report.md")] == pages
    assert "patton study fragmentation" in Path(pages[0]).read_text()


def test_run_may_be_left_out(patton: Patton, tmp_path: Path) -> None:
    """Both words do the same, and the second finds what the first has done."""
    words = ("fragmentation", "--out", tmp_path)
    first, second = patton("study", *words), patton("study", "run", *words)

    assert first.output == second.output
    assert patton("study", "run", "--help").exit_code == 0


def test_another_experiment_joins_the_results(patton: Patton, tmp_path: Path) -> None:
    """Same settings, same folder; other settings are refused, and nothing is lost."""
    small = ("--models", "opt-6.7b", "--out", tmp_path)
    patton("study", "fragmentation", *small)
    patton("study", "schedules", *small)

    def studies() -> set[str]:
        figures = json.loads((tmp_path / "results.json").read_text())["figures"]
        return {figure["study"] for figure in figures}

    assert {"fragmentation", "schedules"} == studies()
    other = patton("study", "fragmentation", *small, "--variant", "head")
    assert 2 == other.exit_code
    assert "whose results have another variant" in " ".join(other.output.split())
    assert {"fragmentation", "schedules"} == studies()


def test_a_file_of_the_same_name_is_left_alone(patton: Patton, tmp_path: Path) -> None:
    """What is no result of a study is somebody's."""
    (tmp_path / "results.json").write_text("mine")
    result = patton("study", "fragmentation", "--out", tmp_path)

    assert 2 == result.exit_code
    assert "results.json" in result.output
    assert "mine" == (tmp_path / "results.json").read_text()


def test_an_experiment_named_twice_is_done_once(patton: Patton, tmp_path: Path) -> None:
    """As often as it is named, its figures are there once."""
    patton("study", "fragmentation", "fragmentation", "--out", tmp_path)
    figures = json.loads((tmp_path / "results.json").read_text())["figures"]
    assert len(figures) == len({json.dumps(figure) for figure in figures})


def test_steps_that_say_nothing_are_refused(patton: Patton, tmp_path: Path) -> None:
    """In one step nothing is generated, so that nothing can be compared."""
    words = ("--models", "opt-6.7b", "--steps", 1, "--out", tmp_path)
    result = patton("study", "comparison", *words)

    assert 2 == result.exit_code
    assert "steps is 1; accepted: more steps" in " ".join(result.output.split())


def test_a_cluster_that_is_none_is_refused(patton: Patton, tmp_path: Path) -> None:
    """With the address that was tried."""
    pytest.importorskip("distributed", reason="the extra `cluster` is not installed")
    words = ("--cluster", "nowhere", "--out", tmp_path)
    result = patton("study", "fragmentation", *words)

    assert 2 == result.exit_code
    assert "cluster is 'nowhere'; accepted: the address of a Dask" in " ".join(
        result.output.split()
    )


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["flight"], "name is 'flight'; accepted: one of kv-write-share"),
        (["--models", "gpt-9"], "model is 'gpt-9'; accepted: one of llama3-8b"),
        (["--models", "opt-6.7b,opt-6.7b"], "accepted: each model once"),
        (["--steps", "0"], "steps is 0; accepted: at least 1"),
        (["--every", "5000"], "every is 5000; accepted: 1 to 3000"),
        (["--jobs", "0"], "jobs is 0; accepted: at least 1"),
        (["--preset", "huge"], "'quick', 'full'"),
        (["--workload", "none.json"], "none.json: No such file"),
        (["report", "nowhere"], "nowhere/results.json"),
        (["report"], "Missing argument 'DIR'"),
    ],
)
def test_refusals_name_what_is_accepted(
    patton: Patton,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    words: list[str],
    said: str,
) -> None:
    """One line, exit status 2, and nothing begun."""
    monkeypatch.chdir(tmp_path)
    result = patton("study", *words)

    assert 2 == result.exit_code
    assert said in " ".join(result.output.split())
    assert not list(tmp_path.iterdir())


def test_a_short_run_times_a_step(patton: Patton, tmp_path: Path) -> None:
    """The preset's own step of so many is no obstacle to fewer."""
    words = ("--steps", 100, "--out", tmp_path)
    assert 0 == patton("study", "fragmentation", *words).exit_code


def test_a_missing_library_is_named(
    patton: Patton, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A report needs an extra that figures do not."""
    patton("study", "fragmentation", "--out", tmp_path)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    result = patton("study", "report", tmp_path)

    assert 2 == result.exit_code
    assert "an installation with the extra `study`" in result.output
