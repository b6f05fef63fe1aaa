"""The Commit Zone's slots: who holds which, lowest free first (Paper 4.4, layout 3).

A slot index is `z * stripes + stripe`; a block's slot lies in the stripe of its
O1V, so that a commit keeps channel, bank and lane.
"""

from __future__ import annotations

import attrs

NO_SLOT = -1


@attrs.define(eq=False)
class CommitZone:
    """Free slots of every stripe, as bitmaps (bit z: slot z of the stripe is free)."""

    stripes: int
    slots: int
    free: list[int]

    @classmethod
    def of(cls, stripes: int, slots: int) -> CommitZone:
        """All `slots` slots of each of `stripes` stripes free."""
        return cls(stripes, slots, [(1 << slots) - 1] * stripes)

    def take(self, stripe: int) -> int:
        """The lowest free slot of the stripe, now taken; NO_SLOT if there is none.

        Lowest first keeps the number of CRS rows in use, hence of activations, small.
        """
        free = self.free[stripe]
        if not free:
            return NO_SLOT
        lowest = free & -free
        self.free[stripe] = free ^ lowest
        return (lowest.bit_length() - 1) * self.stripes + stripe

    def claim(self, slot: int) -> None:
        """Mark one given slot as taken (when state is rebuilt)."""
        self.free[slot % self.stripes] &= ~(1 << slot // self.stripes)

    def give_back(self, slot: int) -> None:
        """Return a slot to the free pool."""
        self.free[slot % self.stripes] |= 1 << slot // self.stripes

    def free_count(self) -> int:
        """Free slots over all stripes."""
        return sum(free.bit_count() for free in self.free)
