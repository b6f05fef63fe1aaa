"""Every public call with every argument wrong in every way: refused in our words.

Either the call takes the value after all, or it raises a typed error that says what
would be accepted, and leaves everything as it was (LIFE-ATOMIC). Never a TypeError,
KeyError or IndexError of Python's own.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

import patton
from patton.errors import ArgumentError, PattonError
from patton.steps import Step
from tests.fuzz.entries import ENTRIES, WRONG, frozen, served


def refusal(
    call: Callable[..., object], arguments: dict[str, Any]
) -> PattonError | None:
    """The typed error that a call raises, if it raises one; no other may come."""
    try:
        call(**arguments)
    except PattonError as error:
        return error
    return None


@pytest.mark.parametrize("name", ENTRIES)
def test_a_wrong_argument_is_refused_or_taken(name: str) -> None:
    for argument in ENTRIES[name]().arguments:
        for wrong in WRONG:
            entry = ENTRIES[name]()
            given_call = callable(entry.arguments[argument]) and callable(wrong)
            if given_call:  # what it does when it is called is the caller's affair
                continue
            before = entry.state()
            arguments = entry.arguments | {argument: wrong}
            error = refusal(entry.call, arguments)
            if error is not None:
                assert "accepted" in str(error), (argument, wrong)
                assert entry.state() == before, (argument, wrong)


@pytest.mark.parametrize("name", ENTRIES)
def test_the_right_arguments_are_taken(name: str) -> None:
    """Else nothing would be said about them: only what is nowhere is refused."""
    entry = ENTRIES[name]()
    error = refusal(entry.call, entry.arguments)

    assert error is None or "nowhere" in str(error)


@pytest.mark.parametrize("name", ENTRIES)
def test_some_values_are_refused_everywhere(name: str) -> None:
    """A call that took everything would pass the first test."""
    for argument in ENTRIES[name]().arguments:
        refused = 0
        for wrong in (object(), 1.5, {3}, b"x", -7):
            entry = ENTRIES[name]()
            arguments = entry.arguments | {argument: wrong}
            refused += refusal(entry.call, arguments) is not None
        assert refused >= 3, argument


def test_every_public_call_has_an_entry() -> None:
    """Of `patton.__all__`: all that can be called and is no plain record or error."""
    tried: set[Any] = {make().call for make in ENTRIES.values()}
    tried |= {getattr(call, "__self__", None) for call in tried}
    tried |= {getattr(call, "__func__", None) for call in tried}
    for name in patton.__all__:
        thing = getattr(patton, name)
        if inspect.isfunction(thing) and name != "replay":
            assert thing in tried, name
    records = {"Command", "CommandStream", "LayerResult", "PlacedStep", "Placement"}
    records |= {"Step", "StepPlan", "StepStreams", "ElementType"}
    classes = {n for n in patton.__all__ if inspect.isclass(getattr(patton, n))}
    errors = {n for n in classes if issubclass(getattr(patton, n), Exception)}
    assert {getattr(patton, n) for n in classes - records - errors} <= tried | {
        type(thing) for thing in tried
    }


# --- steps of any form ----------------------------------------------------------------

ATOMS = st.one_of(
    *(st.none(), st.booleans(), st.integers(-3, 9), st.floats(), st.text(max_size=2)),
    *(st.binary(max_size=2), st.just(2**70)),
)
JUNK = st.recursive(
    ATOMS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.lists(inner, max_size=4).map(tuple),
        st.dictionaries(st.integers(0, 3) | st.text(max_size=1), inner, max_size=2),
    ),
    max_leaves=8,
)
PARTS = st.fixed_dictionaries({}, optional=dict.fromkeys(attrs.fields_dict(Step), JUNK))


@given(parts=PARTS)
def test_a_step_of_any_form_is_refused_or_taken(parts: dict[str, Any]) -> None:
    runtime = served()
    before = frozen(runtime)
    if refusal(lambda **form: runtime.apply_step(Step(**form)), parts) is not None:
        assert frozen(runtime) == before
    runtime.check()


@pytest.mark.parametrize("value", [None, 5, {1: 2}, "step", Step])
def test_what_is_no_step_is_named(value: Any) -> None:
    runtime = served()
    with pytest.raises(ArgumentError, match=r"step is .*accepted: Step"):
        runtime.apply_step(value)


def test_a_defect_is_not_taken_for_a_wrong_step(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A step of the right form that Python stumbles over is a defect of ours."""

    def stumble(*_: object) -> None:
        raise TypeError("a defect")

    runtime = served()
    before = frozen(runtime)
    monkeypatch.setattr("patton.runtime.check_reads", stumble)
    with pytest.raises(TypeError, match="a defect"):
        runtime.apply_step(Step(writes=[(1, 6, 1)]))
    assert frozen(runtime) == before
