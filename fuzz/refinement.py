"""Every step of the runtime is an allowed step of the specification.

A `Refinement` runs the abstract machine beside a runtime: each event that the runtime
has carried out is taken apart into transitions (`fuzz.machine_run`), whose guards must
allow the choices that the runtime made; then the machine's state must be what the
runtime holds. `note` compares what the event touched, `check` everything.

Not seen: what the runtime refuses (`fuzz.rehearsal`), and which of several allowed
choices it prefers.
"""

from __future__ import annotations

from typing import Any

import attrs

from fuzz.abstraction import FACTS, MEANT, Cells, abstraction, request_tables
from fuzz.machine_run import Changed, MachineRun, RefinementError, logic_of
from patton.commit_zone import NO_SLOT
from patton.requests import RELEASED
from patton.runtime import Runtime
from patton.steps import Request, SegmentRow, Step, StepPlan
from spec.claims import CHANGED_BY
from spec.invariants import invariants
from spec.logic import Key, Table
from spec.state import SIGNATURE, State, empty


@attrs.define(eq=False)
class Refinement(MachineRun):
    """The machine beside a runtime, in the state in which that was last seen.

    noted: events so far.
    """

    runtime: Runtime = attrs.field(kw_only=True)
    touched: Changed = attrs.field(factory=list, init=False)
    noted: int = attrs.field(default=0, init=False)

    @classmethod
    def of(cls, runtime: Runtime) -> Refinement:
        """The machine in the state of a runtime between two events.

        That the copies which a plan asks for are made is assumed.
        """
        s, tables = state_seen(runtime), request_tables(runtime.placements)
        return cls(logic_of(runtime), s, tables, runtime=runtime)

    @classmethod
    def attach(cls, runtime: Runtime) -> Refinement:
        """Check every event of a runtime from now on, before its present observer."""
        refinement = cls.of(runtime)
        inner = runtime.observer

        def observer(event: str, arguments: tuple[Any, ...]) -> None:
            refinement.note(event, arguments)
            if inner is not None:
                inner(event, arguments)

        runtime.observer = observer
        return refinement

    def note(self, event: str, arguments: tuple[Any, ...]) -> None:
        """The runtime has carried out an event. Raises RefinementError."""
        self.touched.clear()
        self.noted += 1
        self.run(event, arguments)
        due = {*self.runtime.placements.due}
        self.demand("LIFE-COMMIT", "blocks due for a commit", due, self.due())
        self._compare_touched()

    def copy(self, runtime: Runtime) -> Refinement:
        """The same machine beside another runtime, or a later state of the same."""
        cells = {name: dict(map_.cells) for name, map_ in self.maps.items()}
        tables = {
            request: attrs.evolve(table, blocks=[*table.blocks])
            for request, table in self.tables.items()
        }
        return Refinement(self.lg, state_of(cells), tables, runtime=runtime)

    # --- the runtime's choices ----------------------------------------------------

    def place_for(self, request: Request, block: int) -> tuple[int, int]:
        """The pair and place that the runtime chose for a new block."""
        granule = self.runtime.placements.granule[block]
        what = f"granule of block {block} for request {request!r}"
        self.demand("INV-GRANULE", f"{what} reserved", granule >= 0, True)
        return divmod(granule, self.runtime.layout.pair_blocks)

    def slot_for(self, block: int) -> int:
        """The slot that the runtime chose for the first write of a block, if any."""
        return self.runtime.placements.slot[block]

    def changed(self, changes: Changed) -> None:
        """To be compared when the event is through."""
        self.touched += changes

    # --- comparison ---------------------------------------------------------------

    def _compare_touched(self) -> None:
        state, maps = self.runtime.placements, self.maps
        for field, keys in self.touched:
            fact = FACTS.get(field)
            if fact is None:
                continue
            for key in keys:
                found, expected = fact(state, *key), maps[field](*key)
                if found != expected and self._says(field, key):
                    self.demand(CHANGED_BY[field][0], f"{field}{key}", found, expected)
                if field in {"binder", "sharer"}:
                    self._compare_references(key[1])

    def _compare_references(self, block: int) -> None:
        found, expected = self.runtime.placements.references[block], self.holders(block)
        self.demand("INV-HELD", f"references of block {block}", found, expected)

    def _says(self, field: str, key: Key) -> bool:
        """Whether a function says anything for the key: see `State`."""
        if field == "tail":
            tail = self.s.tail(*key)
            return bool(self.s.binder(*key, tail) or self.s.sharer(*key, tail))
        return field not in MEANT or bool(self.maps[MEANT[field]](*key))

    def check(self) -> None:
        """The whole state of the runtime is the machine's, and has its invariants.

        Raises RefinementError.
        """
        state = self.runtime.placements
        for field, found in abstraction(state).items():
            cells = self.maps[field].cells
            if field in MEANT or field == "tail":
                cells = {key: self.maps[field](*key) for key in found}
            self.demand(CHANGED_BY[field][0], field, found, cells)
        for block in range(len(state.references)):
            self._compare_references(block)
        self.demand("LIFE-LEVELS", "tables", request_tables(state), self.tables)
        for clause, claims in invariants(self.lg, self.s).items():
            self.demand(clause, "every claim", claims, [True] * len(claims))

    def check_plan(self, step: Step, plan: StepPlan) -> None:
        """The plan of the step just noted writes and commits where the machine says.

        Raises RefinementError.
        """
        rows = [row for write in step.writes for row in self._rows(*write)]
        for found, due in zip(plan.rows, rows, strict=False):
            clause = "LIFE-STAY" if due[4] else "LIFE-STAGE"  # from its first token on
            self.demand(clause, f"slot of block {due[0]}", found[3], due[3])
        self.demand("LIFE-STAGE", "rows to write", plan.rows, rows)
        copies = {(c.block, c.epoch, c.granule, c.slot) for c in plan.commits}
        expected = {(b, *self.where(b)) for b in self.due()}
        self.demand("LIFE-COMMIT", "commits", copies, expected)
        self.demand("LIFE-COMMIT", "number", len(plan.commits), len(expected))
        for commit in plan.commits:
            if self.s.binder(commit.request, commit.block):
                blocks = self.tables[commit.request].blocks
                position = blocks.index(commit.block) * self.lg.tokens
                self.demand("LIFE-COMMIT", "position", commit.position, position)

    def check_placed(self, plan: StepPlan) -> None:
        """A plan reads each block where it is visible, or where the plan writes it.

        Raises RefinementError.
        """
        placed = plan.place()
        tables = placed.tables
        columns = tables.granule, tables.slot, tables.opened
        rows = [*zip(*(column.tolist() for column in columns), strict=True)]
        written = {row[0]: row[3] for row in plan.rows}
        for index, request in enumerate(placed.requests):
            found = rows[tables.ptr[index] : tables.ptr[index + 1]]
            blocks = self.tables[request].blocks if found else []
            for block, row in zip(blocks, found, strict=True):
                what = f"where request {request!r} reads block {block}"
                if block == RELEASED:
                    self.demand("LIFE-READ", what, row, (RELEASED, NO_SLOT, 0))
                    continue
                _, granule, slot = self.where(block)
                there = granule, written.get(block, slot), self.s.written(block)
                self.demand("STEP-PLACED", what, row, there)

    def where(self, block: int) -> tuple[int, int, int]:
        """Epoch (not the machine's), granule index and slot of a block."""
        size = self.runtime.layout.pair_blocks
        slot = self.s.slot(block) if self.s.in_slot(block) else NO_SLOT
        granule = self.s.pair(block) * size + self.s.place(block)
        return self.runtime.placements.epoch[block], granule, slot

    def _rows(self, request: Request, start: int, count: int) -> list[SegmentRow]:
        size, end = self.lg.tokens, start + count
        rows: list[SegmentRow] = []
        for index in range(start // size, -(-end // size)):
            block, base = self.tables[request].blocks[index], index * size
            first, last = max(start - base, 0), min(end - base, size)
            where = self.where(block)
            rows.append((block, *where, first, last - first, request, base + first))
        return rows


def state_seen(runtime: Runtime) -> State:
    """The abstract state that a runtime shows between two events."""
    cells = abstraction(runtime.placements)
    slots = {(slot,): block for (block,), slot in cells["slot"].items()}
    copied = {(block,): True for block in runtime.placements.copied}
    return state_of(cells | {"block_in": slots, "copied": copied})


def state_of(cells: Cells) -> State:
    """A state with these cells; the rest has its default."""
    s = empty()
    maps: dict[str, Table] = {name: getattr(s, name) for name in SIGNATURE}
    for field, those in cells.items():
        maps[field].take(those)
    return s


def check_step(
    before: Refinement, event: str, arguments: tuple[Any, ...], after: Runtime
) -> Refinement:
    """The machine after one event that led from a state seen before to a runtime's.

    Compares everything and leaves `before` as it is. Raises RefinementError.
    """
    refinement = before.copy(after)
    refinement.note(event, arguments)
    refinement.check()
    return refinement


__all__ = ["Refinement", "RefinementError", "check_step"]
