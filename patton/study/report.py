"""The report of a study: figures beside the paper's, why they differ, and pictures.

One page of HTML without anything from elsewhere, and the same as Markdown.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path
from shlex import quote
from typing import Any, Final

import attrs

from patton.errors import WorkloadError
from patton.study.experiments import EXPERIMENTS
from patton.study.experiments.experiment import Experiment
from patton.study.plots import Plot
from patton.study.results import FILE, Figure, Results, shown, write_whole
from patton.systems import SYSTEMS, differences, system, table1

TITLE: Final = "PATTON: the evaluation, rebuilt"
COLUMNS: Final = ("model", "system", "quantity", "unit", "ours", "paper", "ratio")
TABLE_TITLE: Final = "Table 1, derived"
TABLE_ABOUT: Final = (
    "Allocation, sharing and writes are measured on an empty memory of each system; "
    "where the mapping comes from and what the processing unit needs is declared."
)
TABLE_COLUMNS: Final = {
    "dynamic": "dynamic allocation",
    "paged": "paged attention",
    "mapping": "explicit mapping",
    "writes": "single-token writes",
    "modified": "modified unit",
}
UNEXPLAINED: Final = "not explained yet"
EVIDENCE: Final = {
    "code": "read in the public code",
    "paper": "stated in the system's own paper",
    "summary": "from a third party's summary",
    "patton": "stated by the PATTON paper",
    "inference": "inferred",
}
INTRODUCTION: Final = (
    "Every number was measured by the command beside it; the paper's stands next to "
    "it, and where they differ by more than 10 % the reason follows. Latency and "
    "energy come from a sample of steps, each timed exactly, and all that can be "
    "counted from every step. `ratio` is ours by the paper's."
)


@attrs.frozen
class Section:
    """One experiment in the report.

    command: what makes its figures; compared: those that the paper has, too; reasons:
    (quantity, why it differs); conclusions: paragraphs; others: all other figures.
    """

    experiment: Experiment
    command: str
    compared: Sequence[Figure]
    reasons: Sequence[tuple[str, str]]
    conclusions: Sequence[str]
    others: Sequence[Figure]
    plots: Sequence[Plot]


def write_report(results: Results, folder: Path) -> list[Path]:
    """Write `report.html`, `report.md` and the latter's pictures; their paths.

    Raises WorkloadError for figures that are not those of whole experiments.
    """
    try:
        sections = sections_of(results)
        pages = {"report.html": html_page(results, sections)}
        pages["report.md"] = markdown_page(results, sections)
    except KeyError as missing:
        problem = f"{missing} is missing"
        accepted = "results that `patton study --out` has written"
        raise WorkloadError(str(folder / FILE), 0, problem, accepted) from missing
    for section in sections:
        for name, plot in _picture_names(section):
            pages[name] = plot.svg
    for name, content in pages.items():
        write_whole(folder / name, content)
    return [folder / "report.html", folder / "report.md"]


def sections_of(results: Results) -> list[Section]:
    """A section for every experiment that has figures."""
    return [
        _section(experiment, figures, command_of(name, results.settings))
        for name, experiment in EXPERIMENTS.items()
        if (figures := results.of(name))
    ]


def _section(
    experiment: Experiment, figures: Sequence[Figure], command: str
) -> Section:
    compared = [figure for figure in figures if figure.paper is not None]
    deviating = dict.fromkeys(f.quantity for f in compared if f.deviates)
    explanations = experiment.explain(figures)
    return Section(
        experiment=experiment,
        command=command,
        compared=compared,
        reasons=[(name, explanations.get(name, UNEXPLAINED)) for name in deviating],
        conclusions=experiment.conclude(figures),
        others=[figure for figure in figures if figure.paper is None],
        plots=experiment.plots(figures),
    )


def command_of(name: str, settings: dict[str, Any]) -> str:
    """The command line that measures an experiment again."""
    source = settings["source"]
    workload = f"--seed {source['seed']} "
    if source["digest"]:
        workload = f"--workload {quote(source['name'])} "
    names = ("preset", "steps", "block_steps", "every", "variant", "host")
    options = {name.replace("_", "-"): settings[name] for name in names}
    options["models"] = ",".join(settings["models"])
    words = " ".join(f"--{key} {value}" for key, value in options.items())
    return f"patton study {name} {workload}{words}"


def _picture_names(section: Section) -> list[tuple[str, Plot]]:
    name = section.experiment.name
    return [(f"{name}-{i}.svg", plot) for i, plot in enumerate(section.plots, 1)]


def _cells(figure: Figure) -> tuple[str, ...]:
    numbers = (figure.value, figure.paper, figure.ratio)
    names = (figure.model, figure.system, figure.quantity, figure.unit)
    return (*names, *map(shown, numbers))


def _assumptions() -> list[tuple[str, list[tuple[str, str]]]]:
    """By system, its variants together: (evidence, claim)."""
    declared = dict.fromkeys(system(name).declaration for name in SYSTEMS)
    return [
        (
            f"{declaration.title} ({declaration.year})",
            [(EVIDENCE[c.evidence], c.text) for c in declaration.claims],
        )
        for declaration in declared
        if declaration.claims
    ]


def _table1() -> tuple[list[tuple[str, ...]], list[str]]:
    """The paper's Table 1 as it follows from the systems; where it differs, and why."""
    rows = table1()
    lines = [(title, *(_word(value) for value in row)) for title, row in rows.items()]
    notes = [
        f"{d.title}, {TABLE_COLUMNS[d.column]}: {_word(d.here)} here, "
        f"{_word(d.paper)} in the paper: {d.reason or UNEXPLAINED}"
        for d in differences(rows)
    ]
    return lines, notes


def _word(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)


# --- HTML -------------------------------------------------------------------------

STYLE: Final = """
body { font: 15px/1.5 system-ui, sans-serif; color: #222; max-width: 68rem;
       margin: 2rem auto; padding: 0 1rem; }
h2 { margin-top: 3rem; border-bottom: 1px solid #ccc; }
table { border-collapse: collapse; margin: 1rem 0; font-size: 13px; }
th, td { padding: .2rem .7rem; text-align: left; border-bottom: 1px solid #eee; }
td.n { text-align: right; font-variant-numeric: tabular-nums; }
tr.off td { background: #fff4e0; }
code { background: #f3f3f3; padding: .1rem .3rem; overflow-wrap: anywhere; }
figure { margin: 1.5rem 0; } figure svg { max-width: 100%; height: auto; }
figcaption { font-size: 13px; color: #555; max-width: 46rem; }
dt { font-weight: 600; margin-top: .6rem; } dd { margin: 0 0 0 1.2rem; }
"""


def html_page(results: Results, sections: Sequence[Section]) -> str:
    """The whole report as one page."""
    links = " · ".join(
        f'<a href="#{s.experiment.name}">{escape(s.experiment.title)}</a>'
        for s in sections
    )
    body = "\n".join(_html_section(section) for section in sections)
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f"<title>{TITLE}</title><style>{STYLE}</style></head><body>\n"
        f"<h1>{TITLE}</h1>\n<p>{_html_text(INTRODUCTION)}</p>\n"
        f"<p>{escape(_provenance(results))}</p>\n<p>{links}</p>\n"
        f"{body}\n{_html_table1()}\n{_html_assumptions()}</body></html>\n"
    )


def _html_section(section: Section) -> str:
    experiment = section.experiment
    parts = [f'<h2 id="{experiment.name}">{escape(experiment.title)}</h2>']
    parts.append(f"<p>{_html_text(experiment.about)}</p>")
    parts.append(f"<p><code>{escape(section.command)}</code></p>")
    if section.compared:
        parts.append(_html_table(section.compared))
    if section.reasons:
        rows = (
            f"<dt>{escape(name)}</dt><dd>{_html_text(reason)}</dd>"
            for name, reason in section.reasons
        )
        parts.append(f"<h3>Why they differ</h3><dl>{''.join(rows)}</dl>")
    parts += [f"<p>{_html_text(text)}</p>" for text in section.conclusions]
    parts += [_html_figure(plot) for plot in section.plots]
    if section.others:
        table = _html_table(section.others)
        count = f"{len(section.others)} further figures"
        parts.append(f"<details><summary>{count}</summary>{table}</details>")
    return "\n".join(parts)


def _html_table(figures: Iterable[Figure]) -> str:
    head = "".join(f"<th>{name}</th>" for name in COLUMNS)
    rows = []
    for figure in figures:
        names, numbers = _cells(figure)[:4], _cells(figure)[4:]
        cells = "".join(f"<td>{escape(name)}</td>" for name in names)
        cells += "".join(f'<td class="n">{number}</td>' for number in numbers)
        kind = ' class="off"' if figure.deviates else ""
        rows.append(f"<tr{kind}>{cells}</tr>")
    return f"<table><tr>{head}</tr>{''.join(rows)}</table>"


def _html_figure(plot: Plot) -> str:
    svg = plot.svg[plot.svg.index("<svg") :]
    caption = f"{plot.title}. {plot.caption}"
    return f"<figure>{svg}<figcaption>{_html_text(caption)}</figcaption></figure>"


def _html_text(text: str) -> str:
    """Escaped, with `code` marked."""
    pieces = escape(text).split("`")
    marked = (f"<code>{p}</code>" if i % 2 else p for i, p in enumerate(pieces))
    return "".join(marked)


def _html_table1() -> str:
    lines, notes = _table1()
    head = "".join(f"<th>{name}</th>" for name in ("system", *TABLE_COLUMNS.values()))
    rows = "".join(
        f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in line)}</tr>"
        for line in lines
    )
    items = "".join(f"<li>{escape(note)}</li>" for note in notes)
    return (
        f"<h2>{TABLE_TITLE}</h2><p>{TABLE_ABOUT}</p>"
        f"<table><tr>{head}</tr>{rows}</table><ul>{items}</ul>"
    )


def _html_assumptions() -> str:
    parts = ["<h2>What is assumed of each system</h2>"]
    for title, claims in _assumptions():
        rows = "".join(
            f"<li>{_html_text(text)} <em>({escape(evidence)})</em></li>"
            for evidence, text in claims
        )
        parts.append(f"<h3>{escape(title)}</h3><ul>{rows}</ul>")
    return "\n".join(parts)


# --- Markdown ---------------------------------------------------------------------


def markdown_page(results: Results, sections: Sequence[Section]) -> str:
    """The same as Markdown; pictures are files beside it."""
    parts = [f"# {TITLE}", INTRODUCTION, _provenance(results)]
    for section in sections:
        parts += _markdown_section(section)
    lines, notes = _table1()
    head = ("system", *TABLE_COLUMNS.values())
    table = (f"| {' | '.join(row)} |" for row in (head, ("---",) * len(head), *lines))
    parts += [f"## {TABLE_TITLE}", TABLE_ABOUT, "\n".join(table)]
    parts.append("\n".join(f"- {note}" for note in notes))
    parts.append("## What is assumed of each system")
    for title, claims in _assumptions():
        rows = (f"- {text} *({evidence})*" for evidence, text in claims)
        parts += [f"### {title}", "\n".join(rows)]
    return "\n\n".join(parts) + "\n"


def _markdown_section(section: Section) -> list[str]:
    experiment = section.experiment
    parts = [f"## {experiment.title}", experiment.about, f"`{section.command}`"]
    if section.compared:
        parts.append(_markdown_table(section.compared))
    parts += [f"**{name}**: {reason}" for name, reason in section.reasons]
    parts += section.conclusions
    for name, plot in _picture_names(section):
        parts.append(f"![{plot.title}]({name})\n\n{plot.title}. {plot.caption}")
    if section.others:
        parts += ["Further figures:", _markdown_table(section.others)]
    return parts


def _markdown_table(figures: Iterable[Figure]) -> str:
    rows = [COLUMNS, ("---",) * 4 + ("---:",) * 3, *map(_cells, figures)]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _provenance(results: Results) -> str:
    source = results.settings["source"]
    digest = f", SHA-256 {source['digest'][:16]}" if source["digest"] else ""
    version = results.settings["version"]
    return f"patton {version}; workload: {source['name']}{digest}."
