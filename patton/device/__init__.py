"""The device: what executes command streams, and what they cost.

`PlainDevice` is the definition, one command at a time; `ReferenceDevice` comes to the
same bits, fast. Both are `patton.executor.Executor`s over a `BankMemory`.
"""

from __future__ import annotations

from patton.device.batched import ReferenceDevice
from patton.device.memory import BankMemory
from patton.device.plain import PlainDevice

__all__ = ["BankMemory", "PlainDevice", "ReferenceDevice"]

if __name__ != "patton.device":
    raise ImportError("import patton.device: the top-level device is only a link to it")
