"""What a placement system is: a declaration, and a memory for one model on one device.

A memory is driven by a serving engine as the runtime is: it has the engine's placement
protocol for blocks that come and go, and takes a `Step` for what is written and read.
What it makes of a step is a `PlacedStep`: streams, and their counts without them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, Protocol

import attrs

from patton.commands import Phase
from patton.config import DeviceConfig, ModelConfig
from patton.engine.placement_gate import Placement
from patton.errors import ConfigError
from patton.executor import Executor
from patton.generate import StepStreams
from patton.steps import Request, Step
from patton.systems.outer import OuterUnit

# Where a claim comes from: public code; the system's own paper; a third party's summary
# of that; what the PATTON paper says of it; inference.
Evidence = Literal["code", "paper", "summary", "patton", "inference"]
Owner = Literal["request", "block", "model"]


@attrs.frozen
class Claim:
    """One thing that is taken for granted of a system, and where that comes from."""

    evidence: Evidence
    text: str


@attrs.frozen(kw_only=True)
class Declaration:
    """What is said of a system; what can be measured is not declared.

    mapping: where the full address of an element comes from (Paper Table 1, "explicit
    mapping"); owner: of what is allocated; unit: of allocation, in words; modified:
    whether it needs another processing unit than AiM's; claims: all assumptions.
    """

    title: str
    year: int
    owner: Owner
    unit: str
    mapping: Evidence
    modified: bool = False
    claims: tuple[Claim, ...] = ()


@attrs.frozen
class Counts:
    """What a phase of a step does in one layer, over all channels of the device.

    activations: all-bank equivalents (sixteen single-bank ones of sixteen count 1);
    macs: MACABs, or MACSVs of a modified unit, one for each channel; bytes: over the
    pins, each burst of WRGB, WRBIAS, RDMAC, RD and WR and channel.
    """

    activations: float = 0.0
    macs: int = 0
    bytes: int = 0


@attrs.frozen
class Usage:
    """What a memory holds. units: rows or granules, of which `used` are taken.

    tokens_held: written and not freed, over all requests and cached blocks;
    tokens_reserved: for which room is taken.
    """

    units: int
    used: int
    tokens_held: int
    tokens_reserved: int


class PlacedStep(Protocol):
    """A step whose places are known.

    requests: names, which streams number. spread: see `patton.systems.maps`.
    """

    @property
    def requests(self) -> tuple[Request, ...]:
        """The names that requests of the step's streams are indices into."""

    def streams(self) -> StepStreams:
        """The streams of the step, for every layer."""

    def counts(self) -> dict[Phase, Counts]:
        """What `streams` does, by phase, without making them where that is possible."""


class Memory(Placement, Protocol):
    """One model's KV cache on one device under one system, empty at first.

    To the engine it is a placement like any other; `bind` raises PlacementError where
    nothing fits.
    """

    @property
    def device(self) -> DeviceConfig:
        """The device."""

    @property
    def model(self) -> ModelConfig:
        """The model."""

    @property
    def block_tokens(self) -> int:
        """Tokens of an engine block."""

    @property
    def blocks(self) -> int:
        """Ids of the engine's pool of blocks."""

    @property
    def pair_blocks(self) -> int:
        """Blocks that evicting a pair makes bindable; 1 where there are no pairs."""

    @property
    def caches(self) -> bool:
        """Whether a block outlives its request and may be shared."""

    @property
    def longest(self) -> int:
        """Tokens of the longest request that it can hold."""

    def admit(self, request: Any, blocks: int) -> bool:
        """Choose a place for a new request that first needs so many blocks.

        False, with nothing changed, where there is no room now. A request that is not
        admitted is when it binds its first block.
        """

    def apply(self, step: Step) -> PlacedStep:
        """Carry out a step, all or nothing. Raises PlacementError."""

    @property
    def unit(self) -> OuterUnit | None:
        """The modified processing unit that it needs; None for the device's own."""

    def executor(self) -> Executor:
        """A device, empty, that can execute the streams."""

    def publish(self, placed: Any) -> None:
        """The step has run in all layers: what was copied is read where it is now."""

    def usage(self) -> Usage:
        """What is allocated now."""


@attrs.frozen
class System:
    """A system with its options chosen.

    options: all of them by name, with their values; make: a memory of it.
    """

    name: str
    declaration: Declaration
    options: Mapping[str, object]
    make: Callable[[DeviceConfig, ModelConfig], Memory]

    def on(self, device: DeviceConfig, model: ModelConfig) -> Memory:
        """An empty memory. Raises LayoutError, DeviceConfigError, ConfigError."""
        return self.make(device, model)


def choice(system: str, option: str, value: str, accepted: Sequence[str]) -> None:
    """Raises ConfigError for a value of an option that is none of those accepted."""
    if value not in accepted:
        raise ConfigError(system, option, value, " or ".join(accepted))


def positive(system: str, option: str, value: int) -> None:
    """Raises ConfigError for an option that is no whole number from 1."""
    if type(value) is not int or value < 1:
        raise ConfigError(system, option, value, "a whole number from 1")
