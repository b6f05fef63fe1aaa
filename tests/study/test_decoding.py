"""One decode step of requests of given lengths."""

from __future__ import annotations

import attrs
import numpy as np
import pytest

from patton.config import aim_gddr6, device_preset, model_preset
from patton.errors import ConfigError
from patton.layout import Layout
from patton.study.decoding import DecodeTask, decode_step, roomy_layout

LLAMA = "llama3-8b"


def attention(task: DecodeTask, cost: str = "cycles") -> float:
    by_phase = task.execute()[cost]
    return float(sum(by_phase.get(phase, 0) for phase in ("qk", "sv", "partial")))


def test_the_step_adds_a_token_to_each_request_and_reads_all() -> None:
    """Requests of 5, 300 and 16 tokens: blocks 1, 19 and 2 after the step."""
    layout = Layout.of(aim_gddr6(), model_preset(LLAMA))
    step = decode_step(layout, (5, 300, 16))

    assert [1, 1, 1] == step.write_count.tolist()
    assert [5, 300 % 16, 0] == step.write_start.tolist()
    assert [6, 301, 17] == step.read_end.tolist()
    assert [1, 19, 2] == np.diff(step.tables.ptr).tolist()


def test_a_token_that_fills_its_block_commits_it() -> None:
    """15 tokens and one more."""
    layout = Layout.of(aim_gddr6(), model_preset(LLAMA))

    assert 1 == len(decode_step(layout, (15, 14)).commit_granule)


def test_twice_the_context_takes_about_twice_the_attention() -> None:
    """4,096 and 8,192 tokens of one request."""
    short, long = (DecodeTask(LLAMA, (tokens,), "best") for tokens in (4096, 8192))

    assert attention(long) == pytest.approx(2 * attention(short), rel=0.05)


def test_more_registers_and_the_best_order_take_less() -> None:
    """Each alone, and both together."""
    plain = DecodeTask(LLAMA, (700,) * 8, host="line-per-cycle")
    best = attrs.evolve(plain, schedule="best")
    cycles = [
        attention(task) for task in (plain, best, attrs.evolve(best, registers=8))
    ]

    assert sorted(cycles, reverse=True) == cycles
    assert len(set(cycles)) == 3


def test_modules_share_the_heads() -> None:
    """Four modules: each head has four times the channels, Keys as many as it wants."""
    one = DecodeTask(LLAMA, (2048,) * 4, "best")
    four = attrs.evolve(one, modules=4)

    assert 3 < attention(one) / attention(four) <= 4.2


def test_heads_that_cannot_be_split_evenly_are_refused() -> None:
    """Eight heads on three modules."""
    with pytest.raises(ConfigError, match="modules is 3; accepted: a divisor of 8"):
        DecodeTask(LLAMA, (16,), modules=3).execute()


def test_rows_are_added_until_everything_fits() -> None:
    """200,000 tokens do not fit 16 GiB; nothing but the rows changes."""
    device, model = aim_gddr6(), model_preset(LLAMA)
    layout = roomy_layout(device, model, 200_000)

    assert layout.tokens >= 200_000 > Layout.of(device, model).tokens
    assert device == attrs.evolve(layout.device, rows=device.rows)


def test_the_number_of_rows_changes_no_cost() -> None:
    """The same short step on devices of 16 and 64 GiB."""
    task = DecodeTask(LLAMA, (100, 200))
    model = model_preset(LLAMA)
    small, large = (roomy_layout(aim_gddr6(), model, n) for n in (300, 250_000))
    one, two = (decode_step(layout, (100, 200)) for layout in (small, large))

    assert large.device.rows > small.device.rows
    assert one.write_start.tolist() == two.write_start.tolist()
    assert task.execute() == task.execute()


@pytest.mark.parametrize("name", ["hbm2", "lpddr5", "ddr4", "ddr5"])
def test_devices_of_unknown_timing_are_counted(name: str) -> None:
    """Activations and commands, no cycles."""
    found = DecodeTask(LLAMA, (500,), device=name, timed=False).execute()

    assert {} == found["cycles"]
    assert found["activations"]["qk"] > 0
    assert found["commands"]["sv"]["MACAB"] > 0
    assert found["tokens_of_device"] > device_preset(name).rows
