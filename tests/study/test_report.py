"""The report: one page with everything in it, whatever the figures say."""

from __future__ import annotations

import re
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import attrs
import pytest

pytest.importorskip("matplotlib", reason="the extra `study` is not installed")

from patton.errors import WorkloadError
from patton.study.experiments import EXPERIMENTS
from patton.study.experiments.fragmentation import EXPERIMENT
from patton.study.report import UNEXPLAINED, command_of, sections_of, write_report
from patton.study.results import Figure, Results
from patton.study.settings import Settings
from patton.study.study import run_study
from patton.study.tasks import Source
from patton.study.work import Workers
from patton.systems import SYSTEMS, differences, system, table1

SETTINGS = Settings("quick", Source("/somewhere/chats.jsonl", "abc"), steps=200)


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """The quickest experiment, and a figure that is off the paper's."""
    folder = tmp_path_factory.mktemp("study")
    found = run_study(["fragmentation"], SETTINGS, folder, Workers())
    wrong = [
        attrs.evolve(figure, value=2 * figure.value)
        if figure.quantity == "energy ratio" and figure.paper
        else figure
        for figure in found.figures
    ]
    return Results(found.settings, tuple(wrong))


class Page(HTMLParser):
    """What a page refers to, and the text of its cells."""

    def __init__(self) -> None:
        super().__init__()
        self.references: list[str] = []
        self.open: list[str] = []
        self.cells: list[str] = []

    def handle_starttag(self, tag: str, values: list[tuple[str, Any]]) -> None:
        names = {"src", "href", "xlink:href", "data"}
        self.references += [value for name, value in values if name in names]
        if tag not in {"meta", "path", "use", "rect"}:
            self.open.append(tag)
        if tag == "td":
            self.cells.append("")

    def handle_endtag(self, tag: str) -> None:
        if tag in self.open:
            while self.open.pop() != tag:
                pass

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "td":
            self.cells[-1] += data


def test_the_page_is_one_file_that_asks_for_nothing(
    results: Results, tmp_path: Path
) -> None:
    """Every reference is to a place in the page; no style or script from elsewhere."""
    text = write_report(results, tmp_path)[0].read_text()
    page = Page()
    page.feed(text)

    assert page.references
    assert all(reference.startswith("#") for reference in page.references)
    assert not re.search(r"<script|@import|url\((?!#)", text)
    assert not page.open
    assert text.count("<svg") == 1


def test_each_figure_stands_beside_the_papers_with_ratio_and_command(
    results: Results, tmp_path: Path
) -> None:
    """2.184 by 2.18, and the words that measure it again."""
    for path in write_report(results, tmp_path):
        text = path.read_text()
        assert command_of("fragmentation", results.settings) in text
    page = Page()
    page.feed((tmp_path / "report.html").read_text())
    row = page.cells.index("latency ratio")

    assert ["latency ratio", "x", "2.184", "2.18", "1.002"] == page.cells[row : row + 5]
    table = "| any | 8 pieces | latency ratio | x | 2.184 | 2.18 | 1.002 |"
    assert table in (tmp_path / "report.md").read_text()


def test_a_command_names_all_that_was_chosen() -> None:
    """The workload by its file's name, and the options that differ by preset."""
    assert (
        "patton study capacity --workload chats.jsonl --preset quick --steps 200 "
        "--block-steps 10000 --every 100 --variant pin --host port-per-channel "
        "--models llama3-8b,qwen3-8b,opt-6.7b,qwen1.5-7b"
    ) == command_of("capacity", SETTINGS.as_json())


def test_a_command_names_the_generators_seed_and_quotes_a_file() -> None:
    """So that a shell does the same again."""
    seeded = attrs.evolve(SETTINGS, source=Source(seed=5))
    spaced = attrs.evolve(SETTINGS, source=Source("/a/my chats.jsonl", "abc"))

    assert " --seed 5 " in command_of("capacity", seeded.as_json())
    assert " --workload 'my chats.jsonl' " in command_of("capacity", spaced.as_json())


def test_figures_that_are_not_whole_are_refused(tmp_path: Path) -> None:
    """One of an experiment alone, or no settings."""
    alone = Figure("capacity", "llama3-8b", "16 spread", "hit rate", 0.5, "fraction")
    for results in (Results(SETTINGS.as_json(), (alone,)), Results({}, (alone,))):
        with pytest.raises(WorkloadError, match="is missing; accepted: results that"):
            write_report(results, tmp_path)
    assert not list(tmp_path.iterdir())


def test_the_version_is_that_which_measured(results: Results, tmp_path: Path) -> None:
    """Whatever version reports."""
    older = Results({**results.settings, "version": "0.0.7"}, results.figures)
    assert "patton 0.0.7;" in write_report(older, tmp_path)[1].read_text()


def test_what_deviates_is_explained_or_said_not_to_be(
    results: Results, tmp_path: Path
) -> None:
    """The energy was doubled on purpose, so the report knows no reason for it."""
    (section,) = sections_of(results)

    assert [("energy ratio", UNEXPLAINED)] == list(section.reasons)
    for path in write_report(results, tmp_path):
        assert UNEXPLAINED in path.read_text()


def test_conclusions_stand_in_both_pages(
    results: Results, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What an experiment says of its figures, with code marked."""
    spoken = attrs.evolve(EXPERIMENT, conclude=lambda _: ["All is `well` & good."])
    known = {"fragmentation": spoken}
    monkeypatch.setattr("patton.study.report.EXPERIMENTS", known)
    html, text = (path.read_text() for path in write_report(results, tmp_path))

    assert "<p>All is <code>well</code> &amp; good.</p>" in html
    assert "\n\nAll is `well` & good.\n\n" in text


def test_the_pictures_of_the_markdown_are_beside_it(
    results: Results, tmp_path: Path
) -> None:
    """Each link leads to a file."""
    page = write_report(results, tmp_path)[1].read_text()
    links = re.findall(r"!\[[^\]]*\]\(([^)]*)\)", page)

    assert ["fragmentation-1.svg"] == links
    assert all((tmp_path / link).read_text().startswith("<?xml") for link in links)


def test_assumptions_of_every_system_are_listed_with_their_evidence(
    results: Results, tmp_path: Path
) -> None:
    """Every claim of every declaration."""
    page = write_report(results, tmp_path)[1].read_text()
    for name in SYSTEMS:
        declaration = system(name).declaration
        assert 1 == page.count(f"### {declaration.title} ({declaration.year})\n")
        for claim in declaration.claims:
            assert claim.text in page


def test_table_1_is_there_with_its_differences(
    results: Results, tmp_path: Path
) -> None:
    """A row for each system, and a reason for each cell that is not the paper's."""
    pages = [path.read_text() for path in write_report(results, tmp_path)]
    rows = table1()
    assert rows
    for page in pages:
        for found in differences(rows):
            assert found.reason
            assert found.reason in unescape(page)
    for title in rows:
        assert f"| {title} |" in pages[1]


def test_text_is_escaped(tmp_path: Path) -> None:
    """A file may have any name."""
    source = attrs.evolve(SETTINGS.source, path="/x/<b>&.jsonl")
    settings = attrs.evolve(SETTINGS, source=source).as_json()
    figure = Figure("fragmentation", "<i>", "8 pieces", "cycles", 1.0, "cycles")
    write_report(Results(settings, (figure,)), tmp_path)
    text = (tmp_path / "report.html").read_text()

    assert "<i>" not in text
    assert "<b>&" not in text


def test_the_report_is_the_same_every_time(results: Results, tmp_path: Path) -> None:
    """No dates, no random names."""
    pages = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        pages.append([p.read_bytes() for p in write_report(results, tmp_path / name)])

    assert pages[0] == pages[1]


def test_experiments_are_known_by_the_names_of_their_figures() -> None:
    """The registry's keys are the studies that figures name."""
    assert EXPERIMENTS["fragmentation"] is EXPERIMENT
    assert all(name == experiment.name for name, experiment in EXPERIMENTS.items())
