"""Faults planted in streams of runs that go right: each is caught, in the right words.

The validator has seen everything before. What a fault may be called is part of the
plant: an off-by-one may meet a foreign block or an unwritten lane, a dropped block is
always a missing term. Some cases never get so far, because the device's protocol
already forbids them. Clause CMD-BUFFER, and those of `test_validator`.
"""

from __future__ import annotations

from collections import Counter
from functools import cache

import attrs
import numpy as np
import pytest

from patton.commands import CommandStream, Phase
from patton.errors import (
    FrameError,
    PattonError,
    ProtocolError,
    StepOrderError,
    ValidationError,
)
from tests.device.provenance import cell_plants, vector_plants
from tests.device.provenance.edits import PLANTS
from tests.device.provenance.runs import Moment, fork, moments

CASES = 12  # of each plant


@cache
def all_moments() -> list[Moment]:
    """Streams of every kind, and more of the commits, which are rare."""
    found = [moment for seed in range(20) for moment in moments(seed, 8)]
    more = [moment for seed in range(20, 42, 3) for moment in moments(seed, 12)]
    return found + [m for m in more if m.stream.phase == Phase.COMMIT]


def verdict(moment: Moment, stream: CommandStream) -> PattonError | None:
    try:
        fork(moment.validator).check(moment.placed, stream)
    except (ValidationError, ProtocolError) as error:
        return error
    return None


@pytest.mark.parametrize("name", PLANTS)
def test_planted_fault_is_caught(name: str) -> None:
    """Whatever the layout, and by what it is."""
    planted, refused = PLANTS[name], 0
    rng = np.random.default_rng(len(name))
    fitting = [m for m in all_moments() if m.stream.phase in planted.phases]
    met: Counter[Phase] = Counter()
    for index in rng.permutation(len(fitting)).tolist():
        moment = fitting[index]
        if met[moment.stream.phase] * len(planted.phases) >= CASES:
            continue
        stream = planted.change(rng, moment)
        if stream is None:
            continue
        error = verdict(moment, stream)
        assert error is not None, (name, index)
        if isinstance(error, ValidationError):
            assert error.fault in planted.faults, str(error)
            met[moment.stream.phase] += 1
        else:
            assert planted.protocol, str(error)
            refused += 1

    assert met.keys() == planted.phases
    assert met.total() >= CASES / 2
    assert planted.protocol or not refused


def test_there_are_enough_plants() -> None:
    assert len(PLANTS) >= 40
    assert {vector_plants.__name__, cell_plants.__name__} == {
        planted.change.__module__ for planted in PLANTS.values()
    }


def test_a_stream_of_another_step_or_device_is_refused() -> None:
    moment = next(m for m in all_moments() if m.placed.step > 2)
    stream = moment.stream
    frame = attrs.evolve(stream.frame, rows_per_plane=stream.frame.rows_per_plane + 1)

    for other, kind in (
        (attrs.evolve(stream, step=stream.step + 1), StepOrderError),
        (attrs.evolve(stream, step=stream.step - 1), (StepOrderError, ProtocolError)),
        (attrs.evolve(stream, frame=frame), FrameError),
    ):
        with pytest.raises(kind):
            fork(moment.validator).check(moment.placed, other)
