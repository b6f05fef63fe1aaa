"""What the runtime refuses, the specification refuses too.

A `Rehearsal` takes an event through the abstract machine with choices of its own: any
place and slot that the clauses allow will do, because whether there is one does not
depend on earlier choices among allowed ones. If the machine gets through, nothing in
the specification forbids the event, and the runtime should not have refused it.
"""

from __future__ import annotations

from typing import Any

import attrs

from fuzz.machine_run import MachineRun, RefinementError
from fuzz.refinement import Refinement
from patton.commit_zone import NO_SLOT
from patton.steps import Request
from spec.state import adoptable


@attrs.define(eq=False)
class Rehearsal(MachineRun):
    """A machine that makes its own choices."""

    @classmethod
    def of(cls, refinement: Refinement) -> Rehearsal:
        """A machine in the same state, independent of it from here on."""
        twin = refinement.copy(refinement.runtime)
        return cls(twin.lg, twin.s, twin.tables)

    def place_for(self, request: Request, block: int) -> tuple[int, int]:
        """The first free place of the first pair that the request may fill."""
        pairs = [p for r, p in self.maps["owns"].cells if r == request]
        hit = self.s.pair(self.s.tail(request))
        if adoptable(self.lg, self.s, request, hit):
            pairs.append(hit)
        pairs += [p for p in self.lg.universe["p"] if not self.s.used(p)]
        for pair in pairs:
            for place in self.lg.universe["i"]:
                if not self.s.occupied(pair, place):
                    return pair, place
        what = f"place for block {block} of request {request!r}"
        raise RefinementError("LIFE-BIND", self.event, what, None, "a free place")

    def slot_for(self, block: int) -> int:
        """The first free slot in the block's stripe."""
        index = self.s.pair(block), self.s.place(block)
        slots = [
            slot
            for slot in self.lg.universe["z"]
            if self.lg.aligned(slot, *index) and not self.s.slot_used(slot)
        ]
        return slots[0] if slots and self.lg.staging else NO_SLOT


def reason(
    refinement: Refinement, event: str, arguments: tuple[Any, ...]
) -> RefinementError | None:
    """Why the specification refuses an event; None if it does not."""
    try:
        Rehearsal.of(refinement).run(event, arguments)
    except RefinementError as refusal:
        return refusal
    return None


def check_refusal(
    refinement: Refinement, event: str, arguments: tuple[Any, ...]
) -> RefinementError:
    """The runtime has refused an event: rightly so, and its state is as it was.

    Returns why the specification refuses it too. Raises RefinementError.
    """
    refinement.event = f"refused {event}{arguments}"
    refinement.check()
    found = reason(refinement, event, arguments)
    if found is None:
        what = f"{event}{arguments}"
        raise RefinementError("LIFE-OPEN", event, what, "refused", "allowed")
    return found
