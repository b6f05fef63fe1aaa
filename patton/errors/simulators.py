"""Programs of others that a user names."""

from __future__ import annotations

from typing import ClassVar

import attrs

from patton.errors.base import PattonError


@attrs.define
class SimulatorError(PattonError):
    """The real simulator cannot be run, or does not say what it measured."""

    template: ClassVar[str] = "{simulator}: {problem}; accepted: {accepted}"

    simulator: str
    problem: str
    accepted: str
