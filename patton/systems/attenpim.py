"""AttenPIM (DAC 2025): a second, outer-product mode, so that Values need no masks.

No code is public; from its abstract and a third party's summary. A token's Value is cut
into bursts that are spread over the banks, the same burst of all tokens in the same
bank; memory is taken row by row as requests grow.
"""

from __future__ import annotations

from patton.systems.bundle_step import BundleMemory
from patton.systems.system import Claim, Declaration, System

DECLARATION = Declaration(
    title="AttenPIM",
    year=2025,
    owner="request",
    unit="a row of the channels of a head",
    mapping="summary",
    modified=True,
    claims=(
        Claim("summary", "two modes: inner products for QK, outer products for SV"),
        Claim("summary", "rows on demand; the paper's Table 1 says static"),
        Claim("summary", "Values in bursts over banks, no masked writes"),
        Claim("inference", "two heads of 128 elements side by side in 16 banks"),
        Claim("inference", "groups of 16 tokens over the channels of the bundle"),
        Claim("inference", "a MACSV takes as long and as much energy as a MACAB"),
        Claim("inference", "sums are cleared and read through WRBIAS and RDMAC"),
    ),
)


def attenpim() -> System:
    """AttenPIM, on a device with its outer-product unit."""
    return System(
        "attenpim",
        DECLARATION,
        {},
        lambda device, model: BundleMemory.for_model(
            "attenpim", device, model, token_bursts=1
        ),
    )
