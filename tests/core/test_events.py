"""Event logs: recorded runs replay to the same state, damaged ones are refused."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from patton.errors import EventError
from patton.events import Recorder, decode_step, digest, encode_step, replay
from patton.runtime import Runtime
from patton.steps import Step
from tests.core.driver import RandomEngine
from tests.core.llama import llama
from tests.core.strategies import random_layout


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """The log of a random run of 40 steps."""
    rng = np.random.default_rng(5)
    engine = RandomEngine(Runtime.of(random_layout(rng)), rng)
    path = tmp_path / "events.jsonl"
    with path.open("w") as out:
        recorder = Recorder.attach(engine.runtime, out)
        for _ in range(40):
            engine.step()
        recorder.close()
    return path


def test_a_recorded_run_replays_to_the_same_state(log: Path) -> None:
    last = None
    for last in replay(log):
        last.runtime.check()

    assert last is not None
    assert last.event == "digest"
    assert json.loads(log.read_text().splitlines()[-1]) == [
        "digest",
        digest(last.runtime),
    ]


def test_numpy_names_of_a_running_request_are_recorded(tmp_path: Path) -> None:
    """They equal its id; the log must not break after the event was carried out."""
    runtime = llama()
    with (tmp_path / "log").open("w") as out:
        recorder = Recorder.attach(runtime, out)
        runtime.bind(7, 0)
        runtime.finish(np.int64(7))  # type: ignore[arg-type]
        recorder.close()

    assert [event.event for event in replay(tmp_path / "log")][-1] == "digest"


def test_a_step_survives_its_plain_form() -> None:
    step = Step(
        finishes=["a", 2],
        releases=[(1, 2)],
        evicts=[7],
        confirms=[(1, 9)],
        grants=[(3, [1, 2], [5])],
        writes=[(3, 0, 4)],
        drafts={3: 1},
        reads=[(3, 0, 4)],
        readbacks=[(3, 0, 2)],
    )
    plain = json.loads(json.dumps(encode_step(step)))

    assert step == decode_step(plain)
    assert {} == encode_step(Step())


@pytest.mark.parametrize(
    "line",
    [
        "{",
        '["bind", 1]',
        '["unknown", 1]',
        '["step", {"wishes": []}]',
        '["step", {"writes": [[1, 2]]}]',
        '["step", {"writes": 5}]',
        '["bind", "x", 1e99]',
        '["bind", [], 0]',
        '["bind", null, 0]',
        '["bind", 1.5, 0]',
        '["bind", 1, true]',
        '["finish", "nobody"]',
        '["digest", "0"]',
        "[]",
        "7",
        "[" * 100_000,
    ],
)
def test_a_bad_line_is_refused_with_its_number(log: Path, line: str) -> None:
    head = log.read_text().splitlines()[0]
    log.write_text(f"{head}\n{line}\n")
    with pytest.raises(EventError) as refusal:
        list(replay(log))

    assert refusal.value.line == 2


@pytest.mark.parametrize("bad", [1.5, True, None])
def test_a_step_has_integers_and_names_only(bad: object) -> None:
    """Streams would cut a fraction to an integer."""
    for part in ({"reads": [[1, 0, bad]]}, {"drafts": [["a", bad]]}):
        with pytest.raises(TypeError, match="neither"):
            decode_step(part)


def test_bytes_that_are_no_text_are_refused(log: Path) -> None:
    log.write_bytes(b'{"format": "\xff"}\n')
    with pytest.raises(EventError) as refusal:
        list(replay(log))

    assert refusal.value.line == 1


@pytest.mark.parametrize(
    "text", ["", "[]\n", "{}\n", '{"format": "patton-events-1"}\n']
)
def test_a_bad_header_is_refused(log: Path, text: str) -> None:
    log.write_text(text)
    with pytest.raises(EventError) as refusal:
        list(replay(log))

    assert refusal.value.line == 1


def test_a_truncated_log_is_refused_or_a_shorter_run(log: Path) -> None:
    text = log.read_text()
    for cut in range(0, len(text), 997):
        log.write_text(text[:cut])
        whole = text[:cut].endswith("\n")
        try:
            names = [event.event for event in replay(log)]
        except EventError as refusal:
            line = refusal.line
        else:
            line = 0
            assert "digest" not in names
        assert whole or line == max(1, text[:cut].count("\n") + 1)
