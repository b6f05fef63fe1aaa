"""Validating the streams of a served run, term by term (`patton.device.provenance`)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import attrs

from patton.device.provenance import StreamValidator
from patton.engine.checking import identities_of
from patton.engine.requests import Request
from patton.generate import StepStreams
from patton.layout import Layout
from patton.steps import PlacedStep


@attrs.define(eq=False)
class StreamCheck:
    """Proves every stream of a run, against the tokens that the engine means."""

    validator: StreamValidator

    @classmethod
    def of(cls, layout: Layout) -> StreamCheck:
        """A check of a run on an empty device."""
        return cls(StreamValidator.of(layout))

    def run(
        self,
        placed: PlacedStep,
        streams: StepStreams,
        requests: Mapping[int, Request],
    ) -> None:
        """Check one step's streams. Raises ValidationError, ExecutionError."""
        rows = [requests[int(name)] for name in placed.requests]
        identify = partial(identities_of, rows)
        self.validator.check_step(placed, streams.present(), identify)
