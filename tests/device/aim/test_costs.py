"""What streams cost: closed forms, sums over requests, the Commit Zone's figures."""

from __future__ import annotations

import numpy as np
import pytest

from patton.commands import CommandStream, Op, Phase
from patton.device.aim import check, energy_pj
from patton.device.aim.convert import convert
from patton.device.aim.costs import (
    NO_REQUEST,
    Target,
    energy_by_request,
    entry_requests,
    run_lines,
    run_stream,
    stream_cost,
)
from patton.device.aim.simulation import HOSTS
from patton.generate import commit_stream
from patton.operands import bursts_of
from patton.steps import PlacedStep
from tests.device.aim.aim_layouts import random_placed, streams_of_step
from tests.device.aim.test_convert import llama_streams, of_phase
from tests.device.aim.value_writes import written

VARIANTS = ("head", "pin")


def full_key_row() -> CommandStream:
    """QK of 32 blocks: one row of 8 blocks in each of four channels, 4 query heads."""
    return of_phase(llama_streams(32 * 16 - 1), Phase.QK)


@pytest.mark.parametrize("variant", VARIANTS)
def test_scores_of_a_full_row(variant: str) -> None:
    """Per query head a load of 64, then per block 86 cycles; closed forms by hand."""
    cost = stream_cost(full_key_row(), Target(variant))

    # A fragment takes 86 cycles (design notes of the simulator, section 5). The first
    # block of each channel waits for its row to open besides, the load for a read-out.
    assert 4 * 32 * 8 == cost.macs
    assert 4 * (128 + 32 * 86) <= cost.cycles <= 4 * (128 + 32 * 86 + 8) + 4 * 160
    assert cost.spent["macs"] == 2 * 4 * 64
    assert cost.cycles == sum(cost.spent.values())


@pytest.mark.parametrize(
    ("model", "requests", "variant"),
    [("opt-6.7b", 8, "head"), ("opt-6.7b", 8, "pin"), ("llama3-8b", 32, "head")],
)
def test_value_writes_with_and_without_a_commit_zone(
    model: str, requests: int, variant: str
) -> None:
    """12.8 times fewer activations, commits included; pin gains far more than head."""
    direct = written(model, requests, variant, commit_zone=False)
    staged = written(model, requests, variant, commit_zone=True)

    assert 12.8 == direct.activations / staged.activations
    gain = direct.cycles / staged.cycles
    assert {"pin": 7, "head": 2.4}[variant] < gain < {"pin": 8, "head": 3}[variant]


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("seed", range(6))
def test_every_write_is_issued(seed: int, variant: str, host: str) -> None:
    """Also where the simulator would lose the last one; reads are all answered."""
    for stream in streams_of_step(random_placed(seed)):
        lines = convert(stream).instructions
        wanted = sum(x.mask.bit_count() for x in lines if x.opcode.name == "WR_SBK")

        target = Target(variant, host)
        assert wanted == run_stream(stream, target).total("WR")
        if not wanted:
            cycles = stream_cost(stream, target).cycles
            assert run_lines(lines, target).cycles == cycles


# --- requests -----------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
def test_energy_of_requests_adds_up(seed: int) -> None:
    """Over all requests, and what none caused, it is that of the stream."""
    for stream in streams_of_step(random_placed(seed)):
        parts = energy_by_request(stream, Target())
        whole = energy_pj(run_stream(stream, Target()))

        for component, energy in whole.items():
            total = sum(part.get(component, 0.0) for part in parts.values())
            assert energy == pytest.approx(total)


@pytest.mark.parametrize("seed", range(6))
def test_entries_belong_to_the_requests_of_the_step(seed: int) -> None:
    """Every burst of a write or read, every load and result, by the stream's tables."""
    placed = random_placed(seed)
    for stream in streams_of_step(placed):
        owners = entry_requests(stream)

        assert (owners[stream.op == Op.ACT] == NO_REQUEST).all()
        if stream.source != "copy":
            assert (owners[stream.op != Op.ACT] >= 0).all()
        for op in (Op.RD, Op.WR):
            if stream.tokens is not None and (stream.op == op).any():
                _check_bursts(stream, owners, op)


def _check_bursts(stream: CommandStream, owners: np.ndarray, op: Op) -> None:
    assert stream.tokens is not None
    assert stream.axes is not None
    if op is Op.WR and stream.source == "read-back":
        return
    bursts = bursts_of(stream, op)
    at = np.flatnonzero(stream.op == op)
    sizes = stream.channels[at].astype(int) * stream.banks[at] * stream.count[at]
    entries = at.repeat(sizes)
    for lane in range(stream.frame.lanes):
        carried = bursts.lanes >> np.uint64(lane) & np.uint64(1) == 1
        token = bursts.token[carried] + lane * stream.axes.token.lane
        found = stream.tokens.request[token]
        assert (owners[entries[carried]] == found).all()


def test_commits_belong_to_the_same_requests_in_every_way() -> None:
    """Read back or from the host, a WR has the request of its block."""
    placed: PlacedStep = next(
        placed
        for placed in map(random_placed, range(40))
        if len(set(placed.commit_request.tolist())) > 1
    )
    writes = []
    for way in ("host", "read-back"):
        stream = commit_stream(placed, way)
        assert stream is not None
        writes.append(entry_requests(stream)[stream.op == Op.WR].tolist())

    assert writes[0] == writes[1]
    assert set(placed.commit_request.tolist()) == set(writes[0])


@pytest.mark.parametrize("variant", ["head", "pin", "physical"])
@pytest.mark.parametrize("seed", range(2))
def test_streams_keep_the_protocol(seed: int, variant: str) -> None:
    """The checker, which shares no code with the scheduler, finds nothing."""
    for stream in streams_of_step(random_placed(seed)):
        result = run_stream(stream, Target(variant), timed=True)

        assert result.timed is not None
        assert [] == list(check(result.timed, variant=variant))
