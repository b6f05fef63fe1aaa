"""`patton aim`: cycles of traces, export of logs, pictures, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from patton.commands import CommandStream
from patton.device.aim import read_trace, simulate
from patton.device.aim.energy import energy_pj
from patton.device.aim.recover import streams_of
from patton.events import replay
from patton.generate import generate_step
from tests.device.aim.fake_simulator import install, statistics
from tests.device.aim.golden import (
    FOLDER,
    golden_cases,
    needs_golden,
    random_cases,
)

Command = Callable[..., Result]
VARIANTS = ("head", "pin")
END = "AiM EOC\n"


def objects(done: Result) -> list[dict[str, Any]]:
    assert done.exit_code == 0, done.output
    return [json.loads(line) for line in done.stdout.splitlines()]


def same(expected: dict[str, Any], found: dict[str, Any]) -> bool:
    """Every number that the simulator printed for a trace."""
    if any(expected[name] != found[name] for name in ("cycles", "commands")):
        return False
    return all(
        number == found[name][channel]
        for name in ("active_cycles", "precharged_cycles")
        for channel, number in expected[name].items()
    )


def microbenchmark(folder: Path, fragments: int) -> Path:
    """A row of 64 bursts in so many pieces."""
    piece = f"AiM WR_BIAS 0 1\nAiM MAC_ABK {64 // fragments} 1 7\nAiM RD_MAC 0 1\n"
    path = folder / f"{fragments}.trace"
    path.write_text("AiM WR_GB 64 0 1\n" + piece * fragments + END)
    return path


# --- cycles -----------------------------------------------------------------------


@needs_golden
@pytest.mark.parametrize("variant", VARIANTS)
def test_golden_traces(patton: Command, variant: str) -> None:
    """All numbers, in the order of the traces."""
    cases = golden_cases()
    paths = [FOLDER / "aim" / f"{name}.trace" for name in cases]
    paths = [path for path in paths if path.is_file()]

    found = objects(patton("aim", "cycles", *paths, "--variant", variant, "--json"))

    assert [str(path) for path in paths] == [item["trace"] for item in found]
    for path, item in zip(paths, found, strict=True):
        assert same(cases[path.stem][variant], item), path


@needs_golden
@pytest.mark.parametrize("variant", VARIANTS)
def test_random_traces(patton: Command, tmp_path: Path, variant: str) -> None:
    """All numbers of the traces handed over, in one call."""
    cases = list(random_cases())
    paths = []
    for number, case in enumerate(cases):
        paths.append(tmp_path / f"{number}.trace")
        paths[-1].write_text(case["trace"])

    found = objects(patton("aim", "cycles", *paths, "--variant", variant, "--json"))

    wrong = [
        path
        for path, case, item in zip(paths, cases, found, strict=True)
        if not same(case[variant], item)
    ]
    assert [] == wrong


def test_the_paper_s_microbenchmark(patton: Command, tmp_path: Path) -> None:
    """414 and 904 cycles, 2.18 times; 1.34 times the energy of the channel."""
    paths = [microbenchmark(tmp_path, n) for n in (1, 8)]

    one, eight = objects(patton("aim", "cycles", *paths, "--json"))

    assert (414, 904) == (one["cycles"], eight["cycles"])
    assert {"31": {"WRGB": 64, "WRMAC16": 8, "MAC16": 64, "RDMAC16": 8, "ACT16": 1,
                   "TMOD": 17}} == eight["commands"]  # fmt: skip
    assert 904 - 711 == eight["precharged_cycles"]["31"]
    results = [simulate(path) for path in paths]
    assert energy_pj(results[0]) == one["energy_pj"]


def test_in_words(patton: Command, tmp_path: Path) -> None:
    done = patton("aim", "cycles", microbenchmark(tmp_path, 1))

    assert 0 == done.exit_code
    assert "414 cycles (0.21 us)" in done.stdout
    assert "MAC16 64" in done.stdout


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("AiM FOO\n" + END, "line 1: 'FOO' after AiM"),
        ("AiM MAC_ABK 8 1\n" + END, "2 operands instead of 3"),
        ("AiM WR_GB 8 0 1\n", "without EOC"),
        ("AiM EOC", "newline"),
        ("", "without EOC"),
        ("\x00\xff" + END, "line 1"),
    ],
)
def test_bad_traces(patton: Command, tmp_path: Path, text: str, words: str) -> None:
    """One line that says where and what, and exit status 2."""
    path = tmp_path / "bad.trace"
    path.write_text(text, encoding="latin-1")
    for words_of in (["cycles", path], ["timeline", path, tmp_path / "t.json"]):
        done = patton("aim", *words_of)

        assert 2 == done.exit_code
        assert words in done.stderr
        assert 1 == len(done.stderr.splitlines())


def test_no_such_trace(patton: Command, tmp_path: Path) -> None:
    for path in (tmp_path / "none.trace", tmp_path):
        done = patton("aim", "cycles", path)

        assert 2 == done.exit_code
        assert 1 == len(done.stderr.splitlines())


def test_the_real_simulator(patton: Command, tmp_path: Path) -> None:
    """Status 0 where it agrees; 1 and every difference where it does not."""
    trace = microbenchmark(tmp_path, 8)
    program = install(tmp_path / "real", statistics(simulate(trace)))
    agrees = patton("aim", "cycles", trace, "--simulator", program)
    other = patton("aim", "cycles", microbenchmark(tmp_path, 1), "--json",
                   "--simulator", program)  # fmt: skip

    assert (0, 1) == (agrees.exit_code, other.exit_code)
    assert "no difference" in agrees.stdout
    found = json.loads(other.stdout)["simulator"]
    assert 904 == found["cycles"]
    assert "cycles: simulator 904, here 414" == found["differences"][0]


@pytest.mark.parametrize(
    "words", [["--variant", "physical"], ["--host", "port-per-channel"]]
)
def test_what_the_real_simulator_cannot_be(
    patton: Command, tmp_path: Path, words: list[str]
) -> None:
    trace = microbenchmark(tmp_path, 1)

    assert 2 == patton("aim", "cycles", trace, "--simulator", "x", *words).exit_code
    done = patton("aim", "cycles", trace, "--simulator", tmp_path / "none")
    assert 2 == done.exit_code
    assert 1 == len(done.stderr.splitlines())


@pytest.mark.parametrize("by", ["command", "phase", "request"])
def test_energy_by(patton: Command, tmp_path: Path, log: Path, by: str) -> None:
    """The parts are those of the whole; by command without standby."""
    out = tmp_path / "steps.trace"
    assert 0 == patton("aim", "export", log, out, "--first", 5).exit_code

    (found,) = objects(patton("aim", "cycles", out, "--by", by, "--json"))
    words = patton("aim", "cycles", out, "--by", by).stdout

    parts = found[f"energy_pj_by_{by}"]
    names = {"command": {"MAC16", "WR"}, "phase": {"qk", "sv", "rest"},
             "request": {"step 5 request 0", "rest"}}[by]  # fmt: skip
    assert names <= parts.keys()
    assert all(f"  {name}: " in words for name in names)
    for component, energy in found["energy_pj"].items():
        if by != "command" or not component.endswith(("STBY", "STT")):
            total = sum(part.get(component, 0.0) for part in parts.values())
            assert energy == pytest.approx(total)


# --- export and timeline ----------------------------------------------------------


@pytest.fixture
def log(patton: Command, tmp_path: Path) -> Path:
    """Some steps of the embedded workload."""
    path = tmp_path / "events.jsonl"
    words = ("--steps", 8, "--check", "placement", "--record", path)
    assert 0 == patton("run", *words).exit_code
    return path


def test_an_export_holds_all_streams(
    patton: Command, tmp_path: Path, log: Path
) -> None:
    """In their order, for the layer asked for, without a change."""
    out = tmp_path / "steps.trace"
    assert 0 == patton("aim", "export", log, out, "--layer", 1).exit_code

    streams: list[CommandStream] = []
    for event in replay(log):
        if event.plan is not None:
            streams += generate_step(event.plan.place()).present()
    found = streams_of(read_trace(out))

    assert {1} == {item.layer for item in found}
    assert [s.to_text() for s in streams] == [x.stream.to_text() for x in found]


def test_an_export_of_some_steps_and_phases(
    patton: Command, tmp_path: Path, log: Path
) -> None:
    out, bare = tmp_path / "some.trace", tmp_path / "bare.trace"
    words = ("--first", 5, "--last", 7, "--phase", "qk", "--phase", "sv")
    assert 0 == patton("aim", "export", log, out, *words).exit_code
    assert 0 == patton("aim", "export", log, bare, *words, "--no-notes").exit_code

    kinds = {(x.stream.step, x.stream.phase.value) for x in streams_of(read_trace(out))}
    assert kinds <= {(step, phase) for step in (5, 6, 7) for phase in ("qk", "sv")}
    assert len(kinds) >= 4
    assert "#" not in bare.read_text()
    assert simulate(out) == simulate(bare)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--layer", 2), "layer is 2; accepted: 0 to 1"),
        (("--layer", -1), "layer is -1; accepted: 0 to 1"),
        (("--first", 900), "nothing is chosen; accepted: steps up to "),
    ],
)
def test_an_export_of_nothing_is_refused(
    patton: Command, tmp_path: Path, log: Path, words: tuple[Any, ...], said: str
) -> None:
    out = tmp_path / "none.trace"
    done = patton("aim", "export", log, out, *words)

    assert 2 == done.exit_code
    assert said in done.stderr
    assert not out.exists()


def test_split_operands_take_longer(patton: Command, tmp_path: Path) -> None:
    """With several heads, every head's own loads and writes are lines."""
    log = tmp_path / "events.jsonl"
    words = ("--model", "llama3-8b", "--concurrency", 1, "--pool", 1, "--steps", 2)
    assert 0 == patton("run", *words, "--record", log).exit_code
    cycles = []
    for way in ("shared", "split"):
        out = tmp_path / f"{way}.trace"
        assert 0 == patton("aim", "export", log, out, "--operands", way).exit_code
        cycles.append(simulate(out).cycles)

    assert cycles[0] < cycles[1]


def test_a_refused_log_leaves_no_trace(
    patton: Command, tmp_path: Path, log: Path
) -> None:
    """Nor does one that traces cannot address, or none at all."""
    out = tmp_path / "steps.trace"
    log.write_text(log.read_text() + "[]\n")

    for words in ([log, out], [log, out, "--layer", -1], [tmp_path / "none", out]):
        done = patton("aim", "export", *words)

        assert 2 == done.exit_code
        assert 1 == len(done.stderr.splitlines())
        assert [log] == sorted(tmp_path.glob("*.*"))


def test_a_timeline_of_a_trace(patton: Command, tmp_path: Path) -> None:
    trace, out = microbenchmark(tmp_path, 8), tmp_path / "t.json"
    assert 0 == patton("aim", "timeline", trace, out).exit_code

    names = {event["name"] for event in json.loads(out.read_text())["traceEvents"]}
    assert {"MAC16", "WRGB", "TMOD", "8.trace"} < names


def test_a_device_without_known_timing_is_not_exported(
    patton: Command, tmp_path: Path
) -> None:
    log, out = tmp_path / "events.jsonl", tmp_path / "steps.trace"
    options = ("--device", "ddr4", "--block-tokens", "32", "--check", "lifecycle")
    patton("run", *options, "--steps", "2", "--record", log)
    done = patton("aim", "export", log, out)

    assert done.exit_code == 2
    assert "ddr4" in done.output
    assert not out.exists()
