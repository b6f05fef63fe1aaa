"""L3, now CHIME (arXiv 2504.17584): accumulating bank units in DIMMs.

No code is public; from two summaries. A Value is spread over four banks, two bursts in
each, and the score is broadcast; memory is reserved. Its re-layout in flight on the
buffer chip has no counterpart on AiM and is taken to be free.
"""

from __future__ import annotations

from patton.systems.bundle_step import BundleMemory
from patton.systems.system import Claim, Declaration, System, positive

DECLARATION = Declaration(
    title="L3",
    year=2025,
    owner="request",
    unit="a slot of the longest context",
    mapping="summary",
    modified=True,
    claims=(
        Claim("summary", "adder tree for scores, accumulators for outputs"),
        Claim("summary", "a Value over four banks, two bursts each"),
        Claim("patton", "static reservation, no sharing"),
        Claim("inference", "four heads of 128 elements side by side in 16 banks"),
        Claim("inference", "two sets of 16 sums in each bank"),
        Claim("inference", "slots of 2,048 tokens, as of the others in comparisons"),
        Claim("inference", "as AttenPIM in all that both leave open"),
    ),
)


def l3(max_context: int = 2048) -> System:
    """L3 with slots of `max_context` tokens, on a modified device.

    Raises ConfigError.
    """
    positive("l3", "max_context", max_context)
    return System(
        "l3",
        DECLARATION,
        {"max_context": max_context},
        lambda device, model: BundleMemory.for_model(
            "l3", device, model, token_bursts=2, reserved=max_context
        ),
    )
