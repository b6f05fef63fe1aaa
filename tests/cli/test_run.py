"""`patton run` and `patton replay`: what they print, check, record and refuse."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from patton.cli.main import main
from patton.device.reference import attention
from patton.engine.session import RunSettings, Session
from patton.runtime import Runtime

# The keys that machines rely on.
KEYS = {
    "steps",
    "requests",
    "turns",
    "prefill_tokens",
    "decode_tokens",
    "prefix_hit_rate",
    "prefix_hit_rate_block_cache",
    "blocks_bound",
    "blocks_committed",
    "pairs_adopted",
    "preemptions",
    "evictions",
    "chunked_prefills",
    "same_step_shares",
    "outputs_checked",
    "bit_exact",
    "max_rel_error",
    "value_write_activations",
    "sv_runs",
    "blocks_per_sv_run",
    "effective_capacity",
    "seconds",
}


def patton(*arguments: str) -> Result:
    """Run the command in this process."""
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def results(*arguments: str) -> dict[str, Any]:
    """The JSON of a run that succeeds."""
    done = patton("run", "--json", *arguments)
    assert done.exit_code == 0, done.output
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_the_default_run_checks_every_output() -> None:
    found = results("--steps", "12")

    assert found.keys() >= KEYS
    assert found["steps"] == 12
    assert found["bit_exact"] is True
    assert found["outputs_checked"] > 100
    assert 0 < found["max_rel_error"] < 1e-2


def test_a_placement_run_measures_without_data() -> None:
    found = results("--steps", "40", "--check", "placement", "--effective-capacity")

    assert found["outputs_checked"] == 0
    assert found["bit_exact"] is None
    assert found["value_write_activations"]["ratio"] > 5
    assert 0 < found["effective_capacity"] <= 1


def test_equal_runs_give_equal_results() -> None:
    first, second = (results("--steps", "30", "--check", "placement") for _ in range(2))
    del first["seconds"], second["seconds"]

    assert first == second


def test_another_seed_is_another_workload() -> None:
    runs = [
        results("--steps", "30", "--check", "lifecycle", "--seed", seed)
        for seed in ("0", "1")
    ]
    assert runs[0]["prefill_tokens"] != runs[1]["prefill_tokens"]


def test_without_a_commit_zone_nothing_is_saved() -> None:
    found = results("--steps", "30", "--check", "placement", "--no-commit-zone")

    assert found["value_write_activations"]["ratio"] == 1
    assert found["blocks_committed"] == 0


def test_the_ablations_run() -> None:
    whole = results("--steps", "30", "--check", "placement", "--no-o2")
    alone = results("--steps", "60", "--check", "lifecycle", "--no-adoption")

    assert whole["blocks_per_sv_run"] > 0
    assert alone["pairs_adopted"] == 0


def test_a_workload_file_is_served(tmp_path: Path) -> None:
    path = tmp_path / "turns.jsonl"
    rows = [{"c": n, "gpt2": [[20, 30], [5, 9]]} for n in range(9)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    arguments = ("--workload", str(path), "--model", "opt-6.7b", "--capacity-gib", "2")
    found = results(*arguments, "--steps", "80", "--concurrency", "4", "--pool", "8")

    assert found["turns"] > 8


def test_a_recorded_run_replays(tmp_path: Path) -> None:
    log = tmp_path / "events.jsonl"
    results("--steps", "25", "--check", "lifecycle", "--record", str(log))
    again = patton("replay", "--json", str(log))
    found = json.loads(again.stdout)

    assert again.exit_code == 0
    assert found["steps"] == 25
    assert found["digest_matches"] is True
    assert "as recorded" in patton("replay", str(log)).output


def test_a_log_does_not_overwrite_its_workload(tmp_path: Path) -> None:
    file = tmp_path / "chats.jsonl"
    file.write_text('{"c": 0, "llama3": [[20, 3]]}\n')
    done = patton("run", "--workload", str(file), "--record", str(file))

    assert done.exit_code == 2
    assert "--record" in done.output
    assert "llama3" in file.read_text()


def test_a_replay_checks_the_state_after_the_last_event(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which need not be a step."""
    log = tmp_path / "events.jsonl"
    assert not patton("run", "--steps", "2", "--record", str(log)).exit_code
    header = log.read_text().splitlines()[0]
    log.write_text(header + '\n["bind", 1, 0]\n')
    checked: list[Runtime] = []

    def note(runtime: Runtime) -> None:
        checked.append(runtime)

    monkeypatch.setattr(Runtime, "check", note)

    assert not patton("replay", str(log)).exit_code
    assert 1 == len(checked)


def test_a_wrong_output_ends_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    def off_by_one_bit(*arguments: Any) -> Any:
        expected = attention(*arguments)
        expected.view("u4")[0, 0, 0, 3] ^= 1
        return expected

    monkeypatch.setattr("patton.engine.checking.attention", off_by_one_bit)
    done = patton("run", "--steps", "5")

    assert done.exit_code != 0
    assert "element 3 of head 0, query head 0" in done.output


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--model", "gpt-9"], "gpt-9"),
        (["--device", "hbm9"], "hbm9"),
        (["--steps", "0"], "steps"),
        (["--layers", "3"], "layers"),
        (["--concurrency", "0"], "concurrency"),
        (["--pool", "-1"], "pool"),
        (["--max-context", "0"], "max_context"),
        (["--workload", "missing.jsonl"], "missing.jsonl"),
        (["--model", "llama3-8b", "--device", "tiny"], "llama3-8b on tiny"),
        (["--no-o2", "--pair-blocks", "4"], "--no-o2"),
        (["--check", "hope"], "hope"),
        (["--record", "missing/events.jsonl"], "missing"),
        (["--nonsense"], "--nonsense"),
    ],
)
def test_bad_input_is_refused_in_one_line(arguments: list[str], said: str) -> None:
    done = patton("run", *arguments)

    assert done.exit_code == 2
    assert said in done.output
    assert "Traceback" not in done.output


@pytest.mark.parametrize("text", ["", "nonsense\n", '{"format": 1}\n', '["bind"]\n'])
def test_what_is_no_log_is_refused(tmp_path: Path, text: str) -> None:
    log = tmp_path / "events.jsonl"
    log.write_text(text)
    done = patton("replay", str(log))

    assert done.exit_code == 2
    assert "line 1" in done.output


def test_a_session_is_stepped_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[RunSettings] = []
    monkeypatch.setattr(Session, "run", lambda self, _: seen.append(self.settings))
    patton("run", "--eviction", "lru", "--choice", "packed", "--token-budget", "99")

    assert seen[0].loop.eviction == "lru"
    assert seen[0].loop.token_budget == 99
    assert seen[0].choice == "packed"
