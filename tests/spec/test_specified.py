"""The specification beside runtimes of other tests is no decoration."""

from __future__ import annotations

import pytest

from fuzz.bugs import catalogue
from fuzz.machine_run import RefinementError
from patton.engine.session import Session
from tests.engine.test_session import default
from tests.specified import specified

STEPS = 120


def serve() -> None:
    """The default run, without data."""
    Session.of(default(check="lifecycle", steps=STEPS)).run()


def test_every_event_of_a_run_is_seen() -> None:
    with specified() as found:
        serve()

    (refinement,) = found.refinements.values()
    assert found.events > STEPS
    assert refinement.runtime.step == STEPS


@pytest.mark.parametrize(
    "name",
    [
        "a share is not counted",
        "the Commit Zone is passed by",
        "a commit to the next granule",
        "a full block is dropped with its last reference",
    ],
)
def test_a_defect_shows_in_a_run(name: str) -> None:
    with (
        catalogue()[name].planted(),
        pytest.raises(RefinementError),
        specified(),
    ):
        serve()


def test_a_long_run_is_followed_for_its_first_events(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """All is compared when it is left alone."""
    monkeypatch.setattr("tests.specified.MOST_EVENTS", 50)
    with specified() as found:
        serve()

    assert found.events == 50


def test_nothing_is_left_behind() -> None:
    with specified() as found:
        pass
    serve()

    assert not found.refinements
