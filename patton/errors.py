"""Every error that PATTON raises on purpose.

A class declares its data as positional attrs fields and one `template` over them;
`str()` fills the template, so that the text names the offending value and what would
be accepted, and a program reads the same from the fields. Fields are never keyword-only
and are stored as given: that keeps every error picklable and its arguments in `args`.
"""

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


# --- configuration and layout ---------------------------------------------------


@attrs.define
class ConfigError(PattonError):
    """A parameter has a value that cannot be used.

    source: what was being configured (a preset, a file, "model on device");
    accepted: what would be accepted, in words.
    """

    template: ClassVar[str] = "{source}: {parameter} is {value!r}; accepted: {accepted}"

    source: str
    parameter: str
    value: object
    accepted: str


@attrs.define
class DeviceConfigError(ConfigError):
    """A device organisation, or the name of one, that does not exist."""


@attrs.define
class ModelConfigError(ConfigError):
    """A model shape, file or name from which no per-head K and V can be placed."""


@attrs.define
class LayoutError(ConfigError):
    """A model, device and block size that do not fit each other.

    fits: the nearest value of the parameter that fits, None if no value does.
    """

    fits: int | None = None
