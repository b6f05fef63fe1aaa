"""Shapes and options that cannot be used."""

from __future__ import annotations

from typing import ClassVar

import attrs

from patton.errors.base import PattonError


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
