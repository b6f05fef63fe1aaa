"""PAISE (HPCA 2025): one large region, allocated before, for requests in lock step.

No code is public. Keys and Values are mapped explicitly inside the region, with nothing
but GEMV in view; its requests are of one length, so that whole batches are written at a
time. Here requests come and go, and each has a slot of the region (Paper 3.3).
"""

from __future__ import annotations

from patton.systems.rows import head_memory
from patton.systems.system import Claim, Declaration, System, positive

DECLARATION = Declaration(
    title="PAISE",
    year=2025,
    owner="request",
    unit="a slot of a region allocated before",
    mapping="patton",
    claims=(
        Claim("patton", "explicit mapping in a large region that is allocated before"),
        Claim("inference", "slots as AttAcc's, Values in Case C"),
        Claim("inference", "a dynamic trace writes token by token, not in bulk"),
        Claim("inference", "slots of 2,048 tokens, as of the others in comparisons"),
    ),
)


def paise(max_context: int = 2048) -> System:
    """PAISE with slots of `max_context` tokens. Raises ConfigError."""
    positive("paise", "max_context", max_context)
    return System(
        "paise",
        DECLARATION,
        {"max_context": max_context},
        lambda device, model: head_memory("paise", device, model, reserved=max_context),
    )
