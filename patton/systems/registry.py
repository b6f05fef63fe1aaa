"""All systems by name, in the order of the paper's Table 1, PATTON's variants last.

A further system is an entry of `SYSTEMS` like these (docs/adding-a-system.md).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from patton.errors import ConfigError
from patton.systems.attacc import attacc
from patton.systems.attenpim import attenpim
from patton.systems.blockpim import blockpim
from patton.systems.cent import cent
from patton.systems.l3 import l3
from patton.systems.neupims import neupims
from patton.systems.paise import paise
from patton.systems.patton import patton
from patton.systems.pimphony import pimphony
from patton.systems.system import System

_ADOPTING: Mapping[str, Any] = {"adoption": True, "pairs": "spread"}

SYSTEMS: Mapping[str, Callable[..., System]] = {
    "neupims": neupims,
    "attacc": attacc,
    "cent": cent,
    "blockpim": blockpim,
    "paise": paise,
    "attenpim": attenpim,
    "l3": l3,
    "pimphony": pimphony,
    "patton": patton,
    "patton-adopting": partial(patton, "patton-adopting", **_ADOPTING),
    "patton-best": partial(patton, "patton-best", **_ADOPTING, schedule="head"),
    "patton-without-commit-zone": partial(
        patton, "patton-without-commit-zone", commit_zone=False
    ),
    "patton-without-o2": partial(patton, "patton-without-o2", o2=False),
}


def system(name: str, **options: Any) -> System:
    """The system of this name. Raises ConfigError, which lists names or options."""
    if name not in SYSTEMS:
        accepted = "one of " + ", ".join(SYSTEMS)
        raise ConfigError("systems", "name", name, accepted)
    known = SYSTEMS[name]().options
    for option in options:
        if option not in known:
            accepted = "one of " + ", ".join(known)
            raise ConfigError(name, "option", option, accepted)
    return SYSTEMS[name](**options)
