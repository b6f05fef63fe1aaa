"""PATTON: a serving engine's KV blocks in processing-in-memory DRAM."""

from __future__ import annotations

__version__ = "0.1.0"

__all__ = ["__version__"]
