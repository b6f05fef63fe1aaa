"""AttAcc (ASPLOS 2024): fixed channel partitions, a slot of the longest context each.

Its simulator (scale-snu/attacc_simulator) divides the memory statically by the longest
context and gives every request and head a part of it. On AiM the channels of a head are
the partition, and a slot's Keys and Values lie as GEMV likes them (Paper 5.2).
"""

from __future__ import annotations

from patton.systems.rows import head_memory
from patton.systems.system import Claim, Declaration, System, positive

DECLARATION = Declaration(
    title="AttAcc",
    year=2024,
    owner="request",
    unit="a slot of the longest context",
    mapping="code",
    claims=(
        Claim("patton", "static partition of channels, capacity reserved per head"),
        Claim("inference", "Case Ch to C inside the slot, 1,024 tokens along a row"),
        Claim("patton", "GEMV in an unmodified unit; its own accumulates outer parts"),
        Claim("patton", "the limit of 2,048 tokens; the code's default is 4,096"),
        Claim("inference", "the whole slot is taken at admission, freed at the end"),
    ),
)


def attacc(max_context: int = 2048) -> System:
    """AttAcc with slots of `max_context` tokens. Raises ConfigError."""
    positive("attacc", "max_context", max_context)
    return System(
        "attacc",
        DECLARATION,
        {"max_context": max_context},
        lambda device, model: head_memory(
            "attacc", device, model, reserved=max_context
        ),
    )
