"""Which clause a difference breaks: that of the transition that should have made it.

A refinement names a fact that differs by the field it is in. That a block is still
bound, say, may mean that it was not dropped, or not evicted: two clauses. The kinds
here remember which transition has set a cell last, during one event, and name its
clause.
"""

from __future__ import annotations

from typing import Any

import attrs

from fuzz.machine_run import Changed
from fuzz.preferences import Preferences
from spec.logic import Key, Term
from spec.state import SIGNATURE

# What a transition is for; other differences are named by their field.
PURPOSE = {
    "leave": "LIFE-RELEASE",
    "cache": "LIFE-CACHE",
    "drop": "LIFE-DROP",
    "end": "LIFE-FINISH",
    "evict": "LIFE-EVICT",
    "share": "LIFE-SHARE",
    "confirm": "LIFE-CONFIRM",
    "write_whole": "LIFE-LEVELS",
    "write_staged": "LIFE-STAGE",
    "write_direct": "LIFE-DIRECT",
    "write_on": "LIFE-LEVELS",
    "retract": "LIFE-REWRITE",
    "publish": "LIFE-PUBLISH",
}
# Named by what they are, whatever changed them.
OWN_CLAUSE = {"owns", "used", "occupied"}


@attrs.define(eq=False)
class Attributed(Preferences):
    """A refinement that names clauses by transition.

    causes: the cells that an event's transitions have set, and which did last. taking:
    the present one. parts: requests, blocks, pairs, places and slots of the last event,
    each with its sort.
    """

    causes: dict[tuple[str, Key], str] = attrs.field(factory=dict, init=False)
    parts: set[tuple[str, Term]] = attrs.field(factory=set, init=False)
    taking: str = attrs.field(default="", init=False)

    def note(self, event: str, arguments: tuple[Any, ...]) -> None:
        """The runtime has carried out an event. Raises RefinementError."""
        self.causes.clear()
        self.parts.clear()
        super().note(event, arguments)
        self.causes.clear()

    def _take(self, name: str, *arguments: Term) -> None:
        self.taking = name
        super()._take(name, *arguments)

    def changed(self, changes: Changed) -> None:
        """Remember the cause."""
        super().changed(changes)
        for field, cells in changes:
            sorts = SIGNATURE[field].partition(">")[0]
            for key in cells:
                self.parts.update(zip(sorts, key, strict=True))
        if self.taking in PURPOSE:
            for field, cells in changes:
                shared = self.taking == "share" and field == "sealing"
                if field not in OWN_CLAUSE and not shared:
                    for key in cells:
                        self.causes[field, key] = self.taking

    def demand(self, clause: str, what: str, found: object, expected: object) -> None:
        """Raise RefinementError if a fact is not as a clause has it."""
        if found != expected:
            for (field, key), cause in self.causes.items():
                if what == f"{field}{key}":
                    clause = PURPOSE[cause]
            if self._is_elsewhere(what, found, expected):
                clause = "LIFE-FRAME"
            super().demand(clause, what, found, expected)

    def _is_elsewhere(self, field: str, found: Any, expected: Any) -> bool:
        """Whether cells differ that have no part in the last event."""
        if field not in SIGNATURE:
            return False
        sorts = SIGNATURE[field].partition(">")[0]
        keys = (key for key, _ in found.items() ^ expected.items())
        return not any(self.parts & {*zip(sorts, key, strict=True)} for key in keys)
