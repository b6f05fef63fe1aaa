"""What a user may set: `kv_connector_extra_config` of vLLM's KV transfer config."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, get_args

import attrs

from patton.config import DeviceConfig, ElementType, device_preset
from patton.errors import ConfigError
from patton.pairs import CHOICES, Choice

SOURCE = "kv_connector_extra_config"

Element = Literal["bf16", "fp16"]
ELEMENTS: tuple[Element, ...] = get_args(Element)
# Not by the queue: vLLM's is not known to its cache.
Eviction = Literal["pairs", "lru"]
EVICTIONS: tuple[Eviction, ...] = get_args(Eviction)
Check = Literal["data", "placement"]
CHECKS: tuple[Check, ...] = get_args(Check)
Unwritten = Literal["error", "withdraw"]
UNWRITTEN: tuple[Unwritten, ...] = get_args(Unwritten)


def _one_of(choices: tuple[str, ...]) -> Any:
    def check(_: object, field: attrs.Attribute[str], value: str) -> None:
        if value not in choices:
            raise ConfigError(SOURCE, field.name, value, " or ".join(choices))

    return check


def _boolean(_: object, field: attrs.Attribute[bool], value: bool) -> None:
    if type(value) is not bool:
        raise ConfigError(SOURCE, field.name, value, "true or false")


def _size(_: object, field: attrs.Attribute[float], value: object) -> None:
    if value is not None and type(value) not in (int, float):
        raise ConfigError(SOURCE, field.name, value, "a number of GiB")


@attrs.frozen(kw_only=True)
class Options:
    """Options of the connector; all have defaults. Raises ConfigError.

    device: name of a preset; capacity_gib: its size, else the preset's; element: what
    Keys and Values are there. pair_blocks, slots: see `Layout.of`. choice, adoption,
    commit_zone: see `Runtime.of`. eviction: see `PlacementGate`. check: "data" executes
    every stream on the reference device, "placement" only generates them. unwritten:
    whether a block that was cached but never written is withdrawn from the cache as
    soon as that is known, or an error once it is hit.
    """

    device: str = "aim-gddr6"
    capacity_gib: float | None = attrs.field(default=None, validator=_size)
    element: Element = attrs.field(default="bf16", validator=_one_of(ELEMENTS))
    pair_blocks: int | None = None
    slots: int | None = None
    choice: Choice = attrs.field(default="spread", validator=_one_of(CHOICES))
    adoption: bool = attrs.field(default=True, validator=_boolean)
    commit_zone: bool = attrs.field(default=True, validator=_boolean)
    eviction: Eviction = attrs.field(default="pairs", validator=_one_of(EVICTIONS))
    check: Check = attrs.field(default="placement", validator=_one_of(CHECKS))
    unwritten: Unwritten = attrs.field(default="error", validator=_one_of(UNWRITTEN))

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> Options:
        """The options that a user gave. Raises ConfigError for names that are none."""
        known = [field.name for field in attrs.fields(cls)]
        for name, value in settings.items():
            if name not in known:
                raise ConfigError(SOURCE, name, value, "one of " + ", ".join(known))
        return cls(**settings)

    def device_config(self) -> DeviceConfig:
        """The device. Raises DeviceConfigError."""
        element = ElementType[self.element.upper()]
        device = attrs.evolve(device_preset(self.device), element=element)
        return device if self.capacity_gib is None else device.scaled(self.capacity_gib)
