"""A run that is checked finds a device which is wrong in a single bit."""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np
import pytest

from patton.commands import CommandStream, Phase
from patton.config import device_preset, model_preset
from patton.device import ReferenceDevice
from patton.engine.session import RunSettings, Session
from patton.engine.synthetic import default_scenario
from patton.errors import MismatchError
from patton.executor import Executor, Payload, Results
from patton.layout import Layout


@attrs.define
class Flipping:
    """A device that flips the lowest bit of the first value of some streams."""

    device: Executor
    phase: Phase

    def run(
        self,
        stream: CommandStream,
        payload: Payload,
        *,
        layer: int = 0,
        stop: int | None = None,
    ) -> Results:
        results = self.device.run(stream, payload, layer=layer, stop=stop)
        if stream.phase == self.phase:
            reads = stream.phase in {Phase.READ_KEY, Phase.READ_VALUE}
            (results.read if reads else results.mac).flat[0] ^= 1
        return results


def session_with(phase: Phase, **options: Any) -> Session:
    """The default run on a device that is wrong."""
    scenario = default_scenario()
    layout = Layout.of(device_preset("tiny"), model_preset("tiny"))
    settings = RunSettings(
        scenario.workload, layout, scenario.loop, 60, layers=1, **options
    )
    session = Session.of(settings)
    assert session.data is not None
    session.data.executor = Flipping(ReferenceDevice(layout.device), phase)
    return session


@pytest.mark.parametrize("phase", [Phase.SV, Phase.PARTIAL])
def test_a_wrong_output_is_named(phase: Phase) -> None:
    """By element, head and request; what was found beside what is due."""
    session = session_with(phase)
    with pytest.raises(MismatchError, match="element 0 of head 0") as refusal:
        session.run()

    assert "query head" in refusal.value.what
    assert 0 == refusal.value.layer
    found, due = (np.float32(x) for x in (refusal.value.found, refusal.value.expected))
    assert found != due
    assert found == pytest.approx(due, rel=0.1, abs=1e-2)


@pytest.mark.parametrize(
    ("phase", "name"), [(Phase.READ_KEY, "Key"), (Phase.READ_VALUE, "Value")]
)
def test_a_wrong_read_back_is_named(phase: Phase, name: str) -> None:
    """By element and position, in bits."""
    session = session_with(phase)
    with pytest.raises(MismatchError, match=f"{name} element 0 of head 0") as refusal:
        session.run()

    assert "at position" in refusal.value.what
    assert 1 == int(refusal.value.found) ^ int(refusal.value.expected)
