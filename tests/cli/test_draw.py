from __future__ import annotations

import io
import json
import re
import struct
from collections.abc import Callable
from pathlib import Path

import attrs
import pytest
from click.testing import Result

from patton.cli.draw import SCENARIO_STEP, replayed, served
from patton.cli.picture.memory_map import memory_map
from patton.cli.picture.occupancy import Occupancy
from patton.cli.picture.png import SCALE
from patton.config import MODEL_PRESETS, tiny_device
from patton.engine.serving import ServingLoop
from patton.engine.synthetic import default_scenario
from patton.events import Recorder
from patton.layout import Layout
from patton.runtime import Runtime
from patton.steps import Step
from tests.cli.hand_made import parsed
from tests.sources import ROOT

Patton = Callable[..., Result]

TINY = Layout.of(tiny_device(), MODEL_PRESETS["tiny"])
STEPS = 40


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recorded run of the embedded scenario."""
    path = tmp_path_factory.mktemp("log") / "events.jsonl"
    scenario = default_scenario()
    runtime = Runtime.of(TINY)
    out = io.StringIO()
    recorder = Recorder.attach(runtime, out)
    loop = ServingLoop.of(
        scenario.workload,
        scenario.loop,
        TINY.granules,
        placement=runtime,
        pair_blocks=16,
    )
    for _ in range(STEPS):
        record = loop.step()
        writes = [(item.id, start, count) for item, start, count, _ in record.scheduled]
        runtime.publish(runtime.apply_step(Step(writes=writes)))
        loop.completed(record)
    recorder.close()
    path.write_text(out.getvalue())
    return path


@pytest.mark.parametrize("ending", ["svg", "html", "png", "SVG"])
def test_equal_calls_write_equal_files(
    patton: Patton, tmp_path: Path, ending: str
) -> None:
    """Nothing in a file depends on when or where it was made."""
    paths = [tmp_path / f"{name}.{ending}" for name in ("one", "two")]
    results = [patton("draw", "--at", 9, path) for path in paths]

    assert [(0, "")] * 2 == [(result.exit_code, result.output) for result in results]
    assert paths[0].read_bytes() == paths[1].read_bytes()


def test_svg(patton: Patton, tmp_path: Path) -> None:
    """Well-formed, with a title, tips, and nothing from elsewhere."""
    path = tmp_path / "map.svg"
    patton("draw", "--at", 9, path)
    root = parsed(path.read_text())
    namespace = {"svg": "http://www.w3.org/2000/svg"}

    title = root.findtext("svg:title", namespaces=namespace)
    assert "PATTON memory map after 9 engine steps" == title
    assert len(root.findall("svg:path/svg:title", namespace)) > 40
    assert 1 == path.read_text().count("http")  # the namespace itself


def test_html(patton: Patton, tmp_path: Path) -> None:
    """The page holds the whole picture, and asks for no other file."""
    page, drawing = tmp_path / "map.html", tmp_path / "map.svg"
    for path in (page, drawing):
        patton("draw", "--at", 9, path)
    text = page.read_text()
    svg = text[text.index("<svg") : text.index("</svg>") + len("</svg>")]

    assert text.startswith("<!DOCTYPE html>")
    assert 1 == text.count("http")
    assert not [x for x in ("<link", "src=", "@import", "fetch(") if x in text]
    assert {"data-of"} == {
        name
        for path in parsed(svg).iter()
        for name in path.attrib
        if name.startswith("data-")
    }
    assert drawing.read_text() == re.sub(r' data-of="[^"]*"', "", svg) + "\n"


def test_png(patton: Patton, tmp_path: Path) -> None:
    """The file has PNG's signature and the picture's size, twofold."""
    path = tmp_path / "map.png"
    patton("draw", "--at", 9, path)
    data = path.read_bytes()
    picture = memory_map(Occupancy.of(served(TINY, 9)))
    size = (round(picture.width * SCALE), round(picture.height * SCALE))

    assert b"\x89PNG\r\n\x1a\n" == data[:8]
    assert size == struct.unpack(">II", data[16:24])


def test_scenario_shows_every_kind_of_cell() -> None:
    """The step that is drawn by default has something of everything."""
    occupancy = Occupancy.of(served(TINY, SCENARIO_STEP))
    held = occupancy.held.values()
    sharers = [len(item.requests) for item in held]
    owned = [owner is not None for owner in occupancy.owner]

    assert {0, 1} <= set(sharers)
    assert max(sharers) > 1
    assert any(item.placement.slot is not None for item in held)
    assert 0 < sum(owned) < len(occupancy.used_pairs) < TINY.pairs
    assert SCENARIO_STEP == occupancy.steps


@pytest.mark.parametrize("step", [1, 17, STEPS])
def test_a_log_shows_what_was_served(log: Path, step: int) -> None:
    """Replayed or served, a step has the same picture."""
    pictures = [
        memory_map(Occupancy.of(runtime), layer=1)
        for runtime in (served(TINY, step), replayed(log, step))
    ]

    assert pictures[0] == pictures[1]


def test_a_whole_log(patton: Patton, tmp_path: Path, log: Path) -> None:
    """Without a step the log's end is drawn, when the last requests have ended."""
    result = patton("draw", "--events", log, tmp_path / "map.svg")
    runtime = replayed(log, None)

    assert 0 == result.exit_code
    assert STEPS == runtime.step
    assert f"after {STEPS} engine steps" in (tmp_path / "map.svg").read_text()


def test_another_model_and_seed(patton: Patton, tmp_path: Path) -> None:
    """The scenario can be served on any device, and drawn anew."""
    path = tmp_path / "map.svg"
    words = ("--model", "llama3-8b", "--device", "hbm2", "--layer", 31, "--seed", 5)
    result = patton("draw", "--at", 5, *words, path)

    assert 0 == result.exit_code
    assert "Model llama3-8b on device hbm2, layer 31" in path.read_text()


def test_blocks_of_another_size() -> None:
    """The engine's blocks are those of the layout."""
    device = attrs.evolve(tiny_device(), rows=128)
    layout = Layout.of(device, MODEL_PRESETS["tiny"], block_tokens=32)
    runtime = served(layout, 20)

    runtime.check()
    assert 32 == runtime.layout.block_tokens


@pytest.mark.parametrize("name", ["map.gif", "map", "svg", ".svg"])
def test_a_name_that_is_no_picture(patton: Patton, tmp_path: Path, name: str) -> None:
    """The ending must be known; nothing is served or written before."""
    result = patton("draw", tmp_path / name)

    assert 2 == result.exit_code
    assert f"{name}'; accepted: a name that ends in .svg, .html, .png" in result.output
    assert [] == list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--at", "0"], "--at"),
        (["--layer", "2"], "layer is 2; accepted: 0 to 1"),
        (["--head", "1"], "head is 1; accepted: 0 to 0"),
        (["--model", "llama3-8b"], "rows is 64; accepted: at least 704"),
        (["--events", "absent.jsonl"], "absent.jsonl: No such file or directory"),
        (["--events", "absent.jsonl", "--model", "tiny"], "--model has no effect"),
        (["--events", "absent.jsonl", "--block-tokens", "16"], "--block-tokens has no"),
    ],
)
def test_refusals(patton: Patton, tmp_path: Path, words: list[str], said: str) -> None:
    """What cannot be drawn is refused, and no file is written."""
    out = tmp_path / "map.svg"
    result = patton("draw", *words, out)

    assert 2 == result.exit_code
    assert said in result.output
    assert not out.exists()


def test_folders_that_are_not_there(patton: Patton, tmp_path: Path) -> None:
    """Where the file cannot be written, the system's reason is told."""
    out = tmp_path / "absent" / "map.svg"
    result = patton("draw", "--at", 1, out)

    assert (2, f"Error: {out}: No such file or directory\n") == (
        result.exit_code,
        result.output,
    )


def test_a_step_that_a_log_does_not_have(
    patton: Patton, tmp_path: Path, log: Path
) -> None:
    """The refusal says how many steps there are."""
    out = tmp_path / "map.svg"
    result = patton("draw", "--events", log, "--at", STEPS + 1, out)

    assert 2 == result.exit_code
    assert f"at is {STEPS + 1}; accepted: 1 to {STEPS}, the steps of the log" in (
        result.output
    )


BROKEN = {
    "empty": (b"", "an empty file"),
    "binary": (b"\x89PNG\xff\xfe", "not JSON ('utf-8' codec"),
    "no log": (b"[1]\n", "no header"),
    "no JSON": (b"{", "not JSON"),
    "another format": (b'{"format": "x"}', "format 'x'"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_what_is_no_log(patton: Patton, tmp_path: Path, case: str) -> None:
    """Files that are no event logs are refused in one line."""
    data, said = BROKEN[case]
    path = tmp_path / "events.jsonl"
    path.write_bytes(data)
    result = patton("draw", "--events", path, tmp_path / "map.svg")

    assert 2 == result.exit_code
    assert said in result.output
    assert 1 == len(result.output.splitlines())


def test_a_log_cut_short(patton: Patton, tmp_path: Path, log: Path) -> None:
    """A header alone has nothing to draw; half a line is named with its number."""
    lines = log.read_text().splitlines()
    path = tmp_path / "events.jsonl"
    path.write_text(lines[0] + "\n")
    result = patton("draw", "--events", path, tmp_path / "map.svg")
    assert (2, True) == (result.exit_code, "nothing after the header" in result.output)

    assert len(json.loads(lines[1])) > 1
    path.write_text("\n".join([*lines[:5], lines[5][:-1]]))
    result = patton("draw", "--events", path, tmp_path / "map.svg")
    assert (2, True) == (result.exit_code, "line 6: not JSON" in result.output)


def test_the_picture_of_the_readme_is_current(patton: Patton, tmp_path: Path) -> None:
    """`patton draw docs/memory-map.svg` made it; run it again when this fails."""
    kept = ROOT / "docs" / "memory-map.svg"
    if not kept.exists():
        pytest.skip("no docs here: not a checkout")
    path = tmp_path / kept.name
    patton("draw", path)

    assert kept.read_bytes() == path.read_bytes()
    assert len(kept.read_bytes()) < 200_000
