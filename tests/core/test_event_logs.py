"""What a log says, word by word: its header, its lines and its digest."""

from __future__ import annotations

import hashlib
import json
from array import array
from pathlib import Path
from typing import Any

import attrs
import numpy as np
import pytest

from patton.errors import EventError
from patton.events import (
    Recorder,
    decode_step,
    digest,
    header,
    replay,
    runtime_from_header,
)
from patton.runtime import Runtime
from patton.steps import Step
from tests.core.llama import llama
from tests.core.strategies import random_layout


def options(runtime: Runtime) -> tuple[object, ...]:
    """As the runtime has them: what a header forgets is not to be asked of it."""
    state = runtime.placements
    return len(state.granule), state.pool.choice, state.adoption, state.commit_zone


@pytest.mark.parametrize("seed", range(8))
def test_a_header_gives_the_runtime_it_was_made_of(seed: int) -> None:
    """With all options and sizes, also those that are not the usual ones."""
    rng = np.random.default_rng(seed)
    runtime = Runtime.of(
        random_layout(rng),
        blocks=5 + seed,
        choice=("spread", "packed")[seed % 2],
        adoption=seed % 3 > 0,
        commit_zone=seed % 4 > 0,
    )
    plain = json.loads(json.dumps(header(runtime)))
    again = runtime_from_header(plain)

    assert runtime.layout == again.layout
    assert options(runtime) == options(again)


def test_a_digest_is_of_the_snapshot_in_its_shortest_form() -> None:
    """Names sorted, no spaces: others can compute it from a snapshot."""
    runtime = llama(gib=0.5)
    runtime.bind(1, 0)
    text = json.dumps(runtime.snapshot(), sort_keys=True, separators=(",", ":"))

    assert " " not in text
    assert hashlib.sha256(text.encode()).hexdigest() == digest(runtime)


def test_every_replayed_line_is_named(tmp_path: Path) -> None:
    runtime, path = llama(gib=0.5), tmp_path / "log"
    with path.open("w") as out:
        recorder = Recorder.attach(runtime, out)
        runtime.bind(1, 0)
        plan = runtime.apply_step(Step(writes=[(1, 0, 3)]))
        runtime.finish(1)
        recorder.close()
        runtime.bind(2, 0)  # after its end a log goes on no more
    found = [(each.line, each.event, each.plan is None) for each in replay(path)]
    plans = [each.plan for each in replay(path) if each.plan is not None]

    assert found == [
        (2, "bind", True),
        (3, "step", False),
        (4, "finish", True),
        (5, "digest", True),
    ]
    assert [plan.rows] == [again.rows for again in plans]


def test_sequences_of_any_kind_are_recorded(tmp_path: Path) -> None:
    runtime, path = llama(gib=0.5), tmp_path / "log"
    blocks: Any = array("i", [0, 1])
    writes: Any = np.array([[1, 0, 20]])
    with path.open("w") as out:
        Recorder.attach(runtime, out)
        runtime.apply_step(Step(grants=[(1, (), blocks)], writes=writes.tolist()))

    (_, line) = path.read_text().splitlines()
    assert ["step", {"grants": [[1, [], [0, 1]]], "writes": [[1, 0, 20]]}] == (
        json.loads(line)
    )


def test_an_unknown_line_is_told_what_there_is(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text(f"{json.dumps(header(llama()))}\n[1]\n")
    with pytest.raises(EventError) as refusal:
        list(replay(path))

    known = "bind, share, release, evict, finish, confirm, commit, step, digest"
    expected = (2, "[1]", f"[event, ...] with {known}")
    assert expected == attrs.astuple(refusal.value)


def test_unknown_parts_of_a_step_are_named() -> None:
    with pytest.raises(ValueError, match=r"^unknown parts \['hopes', 'wishes'\]$"):
        decode_step({"wishes": [], "writes": [], "hopes": []})


def test_a_log_that_is_not_there_is_named(tmp_path: Path) -> None:
    """Like one that is no log: by a typed error, before any event."""
    absent = tmp_path / "absent.jsonl"
    with pytest.raises(EventError, match=r"absent\.jsonl: No such file"):
        [*replay(absent)]
