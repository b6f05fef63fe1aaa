"""Figures, how they compare, and the file that holds them."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import attrs
import pytest

from patton.errors import WorkloadError
from patton.study.results import (
    Figure,
    Results,
    geometric_mean,
    read_results,
    shown,
    write_whole,
)

ONE = Figure("a", "m", "s", "hit rate", 0.9, "fraction", 0.8)
TWO = Figure("b", "m", "s", "speed-up", 2.0, "x")


def test_a_figure_is_held_against_the_papers() -> None:
    """Deviations count from 10 % on, up and down; without a number there is none."""
    assert 1.125 == pytest.approx(ONE.ratio)
    assert ONE.deviates
    assert not attrs.evolve(ONE, value=0.88).deviates
    assert attrs.evolve(ONE, value=0.71).deviates
    assert TWO.ratio is None
    assert not TWO.deviates


def test_the_file_has_the_promised_fields_and_is_read_back(tmp_path: Path) -> None:
    """{study, model, system, quantity, value, unit, paper}, and the settings."""
    results = Results({"steps": 3}, (ONE, TWO))
    content = json.loads(results.write(tmp_path).read_text())

    fields = ["study", "model", "system", "quantity", "value", "unit", "paper"]
    assert [fields, fields] == [list(row) for row in content["figures"]]
    assert results == read_results(tmp_path)
    assert [ONE] == results.of("a")


def test_new_figures_replace_those_of_their_study() -> None:
    """Others stay, under the new settings."""
    newer = attrs.evolve(ONE, quantity="other")
    merged = Results({"steps": 3}, (ONE, TWO)).merged({"steps": 4}, [newer])

    assert Results({"steps": 4}, (TWO, newer)) == merged


def one_figure(**changes: object) -> str:
    """A file with one figure, of which something is changed."""
    row = {**attrs.asdict(ONE), **changes}
    return json.dumps({"settings": {}, "figures": [row]})


@pytest.mark.parametrize(
    "content",
    [
        *(None, "[]", "{}", '{"figures": [{}]}', "\xff"),
        one_figure(value="1"),
        one_figure(value=None),
        one_figure(paper=True),
        one_figure(unit=1),
    ],
)
def test_what_is_no_result_is_refused(tmp_path: Path, content: str | None) -> None:
    """A missing file, too, by its name."""
    if content is not None:
        (tmp_path / "results.json").write_bytes(content.encode("latin-1"))
    with pytest.raises(WorkloadError, match=r"results\.json: .*patton study --out"):
        read_results(tmp_path)


def test_a_file_is_replaced_whole(tmp_path: Path) -> None:
    """Nothing but the new content is left."""
    path = tmp_path / "a.txt"
    for text in ("a long first text", "short"):
        write_whole(path, text)

    assert ["short"] == [file.read_text() for file in tmp_path.iterdir()]


def test_a_file_that_cannot_be_written_leaves_the_old_one(tmp_path: Path) -> None:
    """And nothing beside it; who may read it is as with any file."""
    path, other = tmp_path / "a.txt", tmp_path / "b.txt"
    write_whole(path, "old")
    with pytest.raises(UnicodeEncodeError):
        write_whole(path, "\ud800")

    assert [path] == list(tmp_path.iterdir())
    assert "old" == path.read_text()
    other.write_text("plain")
    assert other.stat().st_mode == path.stat().st_mode


def test_writers_at_once_do_not_meet(tmp_path: Path) -> None:
    """Each writes a file of its own, and the last one to end wins."""
    path = tmp_path / "a.txt"

    def write(text: str) -> None:
        for _ in range(50):
            write_whole(path, text)
            assert path.read_text() in {"one" * 999, "two" * 999}

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(write, ("one" * 999, "two" * 999)))
    assert [path] == list(tmp_path.iterdir())


def test_numbers_for_people() -> None:
    """Four digits; thousands in full; nothing for nothing."""
    assert ["", "0.1234", "12.6", "1,235", "0"] == [
        shown(value) for value in (None, 0.12341, 12.6, 1234.6, 0)
    ]


def test_the_geometric_mean_of_speed_ups() -> None:
    """2 and 8 make 4."""
    assert 4.0 == pytest.approx(geometric_mean([2.0, 8.0]))
