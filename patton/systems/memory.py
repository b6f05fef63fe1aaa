"""What the memories of all systems but PATTON have in common: requests and steps."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import NoReturn

import attrs

from patton.config import DeviceConfig, ModelConfig
from patton.device import ReferenceDevice
from patton.errors import BlockStateError, PlacementError, RequestError
from patton.executor import Executor
from patton.steps import Ints, Request, Step, columns
from patton.systems.maps import Holdings, KeyMap
from patton.systems.outer import OuterUnit
from patton.systems.placed import InnerStep, MappedStep
from patton.systems.system import Usage
from patton.systems.work import Reads
from patton.systems.writes import Segments


@attrs.define(eq=False)
class Running:
    """A running request. blocks: ids in its table; written: positions [0, n)."""

    blocks: list[int] = attrs.field(factory=list)
    written: int = 0


@attrs.define(eq=False, kw_only=True)
class MappedMemory(ABC):
    """A memory whose steps are `MappedStep`s; see `patton.systems.system.Memory`.

    How blocks are held is said by its subclasses. requests: the running ones; steps:
    carried out, which numbers them.
    """

    name: str
    device: DeviceConfig
    model: ModelConfig
    map: KeyMap
    blocks: int
    longest: int
    block_tokens: int = 16
    pair_blocks: int = 1
    caches: bool = False
    steps: int = 0
    requests: dict[Request, Running] = attrs.field(factory=dict)
    step_type: type[MappedStep] = InnerStep

    # --- what a subclass says -----------------------------------------------------

    @abstractmethod
    def bind(self, request: Request, block: int) -> None:
        """See `Memory`."""

    def share(self, request: Request, block: int) -> None:  # noqa: ARG002
        """Refused where nothing outlives its request."""
        raise self._no_cache("share", block)

    def evict(self, block: int) -> None:
        """Refused where nothing outlives its request."""
        raise self._no_cache("evict", block)

    @abstractmethod
    def finish(self, request: Request) -> None:
        """See `Memory`. Raises RequestError."""

    @abstractmethod
    def bindable(self, request: Request, shares: Sequence[int] = ()) -> int:
        """See `Memory`."""

    @abstractmethod
    def admit(self, request: Request, blocks: int) -> bool:
        """See `Memory`."""

    @abstractmethod
    def usage(self) -> Usage:
        """See `Memory`."""

    @abstractmethod
    def holdings(self, requests: Sequence[Request]) -> Holdings:
        """What these requests hold, as arrays."""

    def check_blocks(self, levels: Mapping[Request, int]) -> None:  # noqa: B027
        """Whether blocks will hold what is expected of them; levels: after the step."""

    def write(self, request: Request, end: int) -> None:
        """Positions up to `end` of a request are written."""
        running = self.requests[request]
        running.written = max(running.written, end)

    # --- the same for all ---------------------------------------------------------

    def eviction_candidates(self) -> Iterator[int]:
        """None: the engine's own order serves."""
        return iter(())

    def blocks_of_pair(self, pair: int) -> Sequence[int]:
        """None: see `eviction_candidates`."""
        raise BlockStateError("eviction", pair, "no pair", "a block, one by one")

    @property
    def evictable_pairs(self) -> int:
        """None: see `eviction_candidates`."""
        return 0

    @property
    def unit(self) -> OuterUnit | None:
        """None: the device's own serves."""
        return None

    def executor(self) -> Executor:
        """See `Memory`."""
        return ReferenceDevice(self.device)

    def publish(self, placed: MappedStep) -> None:  # noqa: B027
        """Nothing is copied, so that nothing moves."""

    def apply(self, step: Step) -> MappedStep:
        """See `Memory`. Of events only finishes, evictions and grants are known.

        Raises PlacementError for what is written or read where nothing is bound or
        written; the memory then is as it was.
        """
        self._check_known(step)
        events = step.finishes or step.evicts or step.grants
        before = copy.deepcopy(self) if events else self
        try:
            self._follow(step)
            self._check_levels(step)
        except PlacementError:
            for field in attrs.fields(type(self)):
                setattr(self, field.name, getattr(before, field.name))
            raise
        for request, start, count in step.writes:
            self.write(request, start + count)
        self.steps += 1
        return self._placed(step)

    def _placed(self, step: Step) -> MappedStep:
        index: dict[Request, int] = {}

        def table(rows: Sequence[tuple[Request, int, int]]) -> Sequence[Ints]:
            numbered = [(index.setdefault(r, len(index)), a, b) for r, a, b in rows]
            return list(columns(numbered, 3))

        writes, reads = Segments(*table(step.writes)), Reads(*table(step.reads))
        request, start, end = table(step.readbacks)
        requests = tuple(index)
        return self.step_type(
            device=self.device,
            model=self.model,
            map=self.map,
            step=self.steps - 1,
            requests=requests,
            held=self.holdings(requests),
            writes=writes,
            reads=reads,
            backs=Segments(request, start, end - start),
        )

    def _check_known(self, step: Step) -> None:
        for event, found in (
            ("release", [request for request, _ in step.releases]),
            ("confirm", [request for request, _ in step.confirms]),
            ("draft", list(step.drafts)),
        ):
            if found:
                self._refuse(event, found[0], f"told to {self.name}", "no such event")

    def _follow(self, step: Step) -> None:
        for request in step.finishes:
            self.finish(request)
        for block in step.evicts:
            self.evict(block)
        for request, shared, bound in step.grants:
            if request not in self.requests and not shared:
                self.admit(request, len(bound))
            for block in shared:
                self.share(request, block)
            for block in bound:
                self.bind(request, block)

    def _check_levels(self, step: Step) -> None:
        """Writes follow what is written, in what is bound; reads are of what is."""
        levels = {name: running.written for name, running in self.requests.items()}
        for request, start, count in step.writes:
            known = levels.get(request, 0)
            running = self.requests.get(request)
            bound = len(running.blocks) * self.block_tokens if running else 0
            end = start + count
            if not 0 <= start <= known or not start < end <= bound:
                accepted = f"from {known} or before, to {bound} at most"
                self._refuse("write", request, f"positions {start} to {end}", accepted)
            levels[request] = max(known, end)
        for request, start, end in (*step.reads, *step.readbacks):
            known = levels.get(request, 0)
            if not 0 <= start < end <= known:
                accepted = f"a range of the {known} positions written"
                self._refuse("read", request, f"positions {start} to {end}", accepted)
        self.check_blocks(levels)

    @staticmethod
    def _refuse(event: str, request: Request, value: str, accepted: str) -> NoReturn:
        raise RequestError(event, request, value, accepted)

    def _no_cache(self, event: str, block: int) -> BlockStateError:
        accepted = f"no such event: {self.name} keeps and shares nothing"
        return BlockStateError(event, block, "its request's own", accepted)
