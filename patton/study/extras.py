"""Libraries that only some studies need, each of an extra."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from patton.errors import ConfigError


def library(name: str, use: str, extra: str) -> Any:
    """A module of a library. Raises ConfigError if the extra is not installed."""
    try:
        return import_module(name)
    except ImportError as error:
        package = name.partition(".")[0]
        accepted = f"an installation with the extra `{extra}` (pip install {package})"
        raise ConfigError("study", use, "not installed", accepted) from error
