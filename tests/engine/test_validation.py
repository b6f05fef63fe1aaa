"""Validated runs: what is counted, what is found, what is refused."""

from __future__ import annotations

import json
from typing import Any

import attrs
import pytest
from click.testing import CliRunner

from patton.cli.main import main
from patton.config import model_preset, tiny_device
from patton.device.provenance import Fault
from patton.engine import session as served
from patton.engine.session import RunSettings, Session
from patton.engine.synthetic import default_scenario
from patton.errors import ConfigError, ValidationError
from patton.generate import StepStreams, generate_step
from patton.layout import Layout
from patton.steps import PlacedStep


def settings(**changes: Any) -> RunSettings:
    """Some steps of the default scenario, validated and without data."""
    scenario = default_scenario()
    layout = Layout.of(tiny_device(), model_preset("tiny"))
    chosen = RunSettings(
        scenario.workload,
        layout,
        scenario.loop,
        steps=30,
        check="placement",
        validate=True,
    )
    return attrs.evolve(chosen, **changes)


def test_every_stream_of_a_run_is_counted() -> None:
    """Streams, and single commands."""
    session = Session.of(settings())
    session.run()
    report = session.report()

    assert report["streams_validated"] > 100
    assert report["commands_validated"] > 100 * report["streams_validated"]


def test_nothing_is_said_of_what_was_not_validated() -> None:
    session = Session.of(settings(validate=False, steps=2))
    session.run()

    assert session.report()["streams_validated"] is None
    assert session.report()["commands_validated"] is None


def test_a_wrong_stream_ends_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """A generator that forgets commits."""

    def forgetful(placed: PlacedStep, **options: Any) -> StepStreams:
        streams = generate_step(placed, **options)
        return attrs.evolve(streams, commit=None)

    monkeypatch.setattr(served, "generate_step", forgetful)

    with pytest.raises(ValidationError, match="commit too") as caught:
        Session.of(settings()).run()
    assert caught.value.fault == Fault.MISSING


def test_without_streams_there_is_nothing_to_validate() -> None:
    with pytest.raises(ConfigError, match="streams to validate"):
        Session.of(settings(check="lifecycle"))


def test_the_command_validates() -> None:
    arguments = ["run", "--validate", "--steps", "5"]
    done = CliRunner().invoke(main, [*arguments, "--json"])
    found = json.loads(done.stdout)
    told = CliRunner().invoke(main, arguments)

    assert found["streams_validated"] > 0
    assert found["commands_validated"] > found["streams_validated"]
    assert found["bit_exact"] is True
    assert "every stream has its terms" in told.output
