"""Arguments of public calls: what is of a wrong kind is refused in our own words."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from patton.errors import ArgumentError

PATH = (str, Path)


def expect(call: str, argument: str, value: object, *kinds: type) -> None:
    """Raise ArgumentError unless an argument is of a kind; True is no number."""
    truth = isinstance(value, bool) and not {bool, object} & {*kinds}
    if truth or not isinstance(value, kinds):
        names = [kind.__name__.replace("NoneType", "None") for kind in kinds]
        raise ArgumentError(call, argument, value, " or ".join(names))


def expect_fields(call: str, value: Any, **kinds: type | tuple[type, ...]) -> None:
    """The same of fields of an argument."""
    for name, kind in kinds.items():
        expect(
            call,
            name,
            getattr(value, name),
            *(kind if type(kind) is tuple else (kind,)),
        )


def expect_call(call: str, argument: str, value: object, method: str = "") -> None:
    """Raise ArgumentError unless an argument, or a method of it, can be called."""
    if not callable(getattr(value, method, None) if method else value):
        accepted = f"something with {method}()" if method else "something to call"
        raise ArgumentError(call, argument, value, accepted)


def is_count(value: object, most: float = float("inf")) -> bool:
    """Whether a parameter is a whole number from 1 to `most`."""
    whole = isinstance(value, int) and not isinstance(value, bool)
    return whole and 1 <= value <= most  # type: ignore[operator]


def is_one_of(value: object, names: Iterable[str]) -> bool:
    """Whether a parameter is one of some names."""
    return isinstance(value, str) and value in names
