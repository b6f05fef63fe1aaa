from __future__ import annotations

import copy
import pickle

import attrs
import pytest

from patton import errors
from patton.errors import LayoutError, PattonError

ERRORS: list[type[PattonError]] = [
    found
    for _, found in sorted(vars(errors).items())
    if isinstance(found, type) and issubclass(found, PattonError)
]


def example(kind: type[PattonError]) -> PattonError:
    return kind(*range(len(attrs.fields(kind))))


def same(left: PattonError, right: PattonError) -> bool:
    return type(left) is type(right) and attrs.astuple(left) == attrs.astuple(right)


@pytest.mark.parametrize("kind", ERRORS)
def test_every_error_survives_pickle_and_copy(kind: type[PattonError]) -> None:
    """Errors cross process borders with their fields."""
    error = example(kind)

    assert same(error, pickle.loads(pickle.dumps(error)))  # noqa: S301
    assert same(error, copy.copy(error))
    assert attrs.astuple(error) == error.args


@pytest.mark.parametrize("kind", ERRORS)
def test_every_error_says_itself_how_to_rebuild_it(kind: type[PattonError]) -> None:
    """Networks take an inherited recipe where an error has none of its own.

    They would rebuild the error without its constructor, and so without its fields.
    """
    error = example(kind)
    recipe, values = error.__reduce__()

    assert kind.__reduce__ is not BaseException.__reduce__
    assert same(error, recipe(*values))


@pytest.mark.parametrize("kind", ERRORS)
def test_every_error_fills_its_template(kind: type[PattonError]) -> None:
    """Every name in a template is a field, so an error never fails to be printed."""
    assert str(example(kind)) == kind.template.format_map(attrs.asdict(example(kind)))


def test_braces_in_values_are_kept() -> None:
    """Values are not templates."""
    error = LayoutError("{a}", "{b}", "{c}", "{d}", None)

    assert "{a}: {b} is '{c}'; accepted: {d}" == str(error)
