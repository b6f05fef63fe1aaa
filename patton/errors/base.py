"""What all errors have in common."""

from __future__ import annotations

from typing import ClassVar

import attrs


@attrs.define
class PattonError(Exception):
    """Base of all errors of the library; a refused operation has changed nothing."""

    template: ClassVar[str] = "refused"

    def __str__(self) -> str:
        names = [field.name for field in attrs.fields(type(self))]
        return self.template.format_map({name: getattr(self, name) for name in names})
