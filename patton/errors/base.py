"""What all errors have in common."""

from __future__ import annotations

from typing import Any, ClassVar

import attrs


@attrs.define
class PattonError(Exception):
    """Base of all errors of the library; a refused operation has changed nothing."""

    template: ClassVar[str] = "refused"

    def __str__(self) -> str:
        names = [field.name for field in attrs.fields(type(self))]
        return self.template.format_map({name: getattr(self, name) for name in names})

    def __reduce__(self) -> tuple[type[PattonError], tuple[Any, ...]]:
        """By its fields, for tools that do not expect an exception to have any."""
        return type(self), self.args


@attrs.define
class ArgumentError(PattonError):
    """An argument of a kind that a call does not take; nothing was done."""

    template: ClassVar[str] = "{call}: {argument} is {value!r}; accepted: {accepted}"

    call: str
    argument: str
    value: object
    accepted: str
