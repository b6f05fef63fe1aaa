"""A step whose tokens lie where a map says: its streams, and what they count up to."""

from __future__ import annotations

from abc import abstractmethod
from functools import partial
from typing import ClassVar

import attrs

from patton.commands import CommandStream, Frame, Op, Phase
from patton.config import DeviceConfig, ModelConfig
from patton.generate import StepStreams
from patton.steps import Request
from patton.systems.lockstep import lockstep
from patton.systems.maps import Holdings, KeyMap, Map, spread_of
from patton.systems.system import Counts
from patton.systems.work import Reads, Work, score_work, value_work
from patton.systems.writes import (
    Segments,
    burst_counts,
    burst_stream,
    key_axes,
    key_rectangles,
    value_axes,
    value_rectangles,
)


@attrs.frozen(eq=False, kw_only=True)
class MappedStep:
    """A step whose tokens lie where a map says.

    held: of `requests`, which all others are indices into; writes, backs: tokens that
    are written and read back; reads: the queries. by_request: whether requests have
    their turns one after another; else each row is opened once for all of them.
    """

    by_request: ClassVar[bool] = False

    device: DeviceConfig
    model: ModelConfig
    map: KeyMap
    step: int
    requests: tuple[Request, ...]
    held: Holdings
    writes: Segments
    reads: Reads
    backs: Segments

    def streams(self) -> StepStreams:
        """See `patton.systems.system.PlacedStep`."""
        return StepStreams(
            key_write=self._keys(self.writes, Op.WR, Phase.KEY_WRITE),
            value_write=self._values(self.writes, Op.WR, Phase.VALUE_WRITE),
            read_key=self._keys(self.backs, Op.RD, Phase.READ_KEY),
            read_value=self._values(self.backs, Op.RD, Phase.READ_VALUE),
            qk=self._products(Phase.QK, self._scores()),
            sv=self._weighted(),
            partial=None,
            commit=None,
        )

    def counts(self) -> dict[Phase, Counts]:
        """See `patton.systems.system.PlacedStep`."""
        found: dict[Phase, Counts] = {}
        size = self.device.burst_bytes
        if len(self.reads.request):
            work = self._scores()
            assert work is not None
            found[Phase.QK] = work.counts(size)
            found[Phase.SV] = self._weighted_counts()
        for segments, key_phase, value_phase in (
            (self.writes, Phase.KEY_WRITE, Phase.VALUE_WRITE),
            (self.backs, Phase.READ_KEY, Phase.READ_VALUE),
        ):
            if len(segments.request):
                keys = key_rectangles(self.map, self.held, segments)
                found[key_phase] = burst_counts(keys, self.map.key_frame, size)
                found[value_phase] = self._value_counts(segments)
        return found

    # --- what the processing unit decides ------------------------------------------

    @abstractmethod
    def _weighted(self) -> CommandStream | None:
        """SV."""

    @abstractmethod
    def _weighted_counts(self) -> Counts:
        """Of SV, where something is read."""

    @abstractmethod
    def _values(self, segments: Segments, op: Op, phase: Phase) -> CommandStream | None:
        """Values written or read back."""

    @abstractmethod
    def _value_counts(self, segments: Segments) -> Counts:
        """Of Values written or read back."""

    # --- the same for all ---------------------------------------------------------

    def _scores(self) -> Work | None:
        order = self.by_request
        return score_work(self.map, self.held, self.reads, by_request=order)

    def _keys(self, segments: Segments, op: Op, phase: Phase) -> CommandStream | None:
        if not len(segments.request):
            return None
        rectangles = key_rectangles(self.map, self.held, segments)
        frame = self.map.key_frame
        stream = self._bursts(frame, segments)
        return stream(rectangles, op, phase=phase, axes=key_axes(frame))

    def _bursts(self, frame: Frame, segments: Segments) -> partial[CommandStream]:
        tokens = segments.tokens(spread_of(frame, self.model))
        return partial(burst_stream, step=self.step, frame=frame, tokens=tokens)

    def _products(self, phase: Phase, work: Work | None) -> CommandStream | None:
        if work is None:
            return None
        columns, results = lockstep(work)
        return CommandStream(
            phase=phase,
            step=self.step,
            frame=work.frame,
            loads=work.loads,
            results=results,
            queries=self.reads.queries(spread_of(work.frame, self.model)),
            **columns,
        )


@attrs.frozen(eq=False, kw_only=True)
class InnerStep(MappedStep):
    """A step of a system that needs no other unit than AiM's."""

    map: Map

    def _weighted(self) -> CommandStream | None:
        return self._products(Phase.SV, self._sums())

    def _weighted_counts(self) -> Counts:
        work = self._sums()
        assert work is not None
        return work.counts(self.device.burst_bytes)

    def _sums(self) -> Work | None:
        order = self.by_request
        return value_work(self.map, self.held, self.reads, by_request=order)

    def _values(self, segments: Segments, op: Op, phase: Phase) -> CommandStream | None:
        if not len(segments.request):
            return None
        rectangles = value_rectangles(self.map, self.held, segments)
        frame = self.map.value_frame
        stream = self._bursts(frame, segments)
        return stream(rectangles, op, phase=phase, axes=value_axes(frame))

    def _value_counts(self, segments: Segments) -> Counts:
        rectangles = value_rectangles(self.map, self.held, segments)
        return burst_counts(rectangles, self.map.value_frame, self.device.burst_bytes)


@attrs.frozen(eq=False, kw_only=True)
class TurnsStep(InnerStep):
    """The same with requests one after another, as PATTON's are (Paper 4.4)."""

    by_request: ClassVar[bool] = True
