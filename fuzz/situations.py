"""The situations that a run must have met, by name, and how each is recognised.

A check that passes says little if what it checks hardly ever occurred. `python -m fuzz
situations` counts them all on the fast driver and asks for a minimum of each.
"""

from __future__ import annotations

from collections import Counter
from importlib import import_module

from fuzz.moments import KNOWN, Situations

LEAST = 100  # times each, in a run of STEPS
STEPS = 400_000

for _name in ("blocks", "requests"):
    import_module(f"fuzz.situations_{_name}")  # registers its situations


def counting() -> Situations:
    """A watcher that has counted nothing yet."""
    return Situations(KNOWN, Counter(dict.fromkeys(KNOWN, 0)))
