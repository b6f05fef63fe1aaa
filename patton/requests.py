"""Running requests, and the journal by which a refused step is undone."""

from __future__ import annotations

from array import array
from typing import Any

import attrs

from patton.errors import RequestError
from patton.steps import Request

UNBOUND = -1  # granule of a block that has none
RELEASED = -1  # table entry of a block given up
FRESH = -2  # slot of a block whose first write has not come yet
NEVER = 1 << 62  # sealing step of a block that was neither shared nor cached


@attrs.define(eq=False)
class RequestState:
    """One running request.

    blocks: its table (RELEASED where given up). shared: blocks in it that another
    request bound. tokens, confirmed: positions [0, n) written and verified. pairs: the
    ones it owns, in the order claimed; open: those of them with a free place. room:
    tokens that may be appended with no look at the block: it is `tail` (block, epoch,
    granule, slot), begun by this request and read by no other; 0: not known to be.
    """

    id: Request
    blocks: array[int] = attrs.field(factory=lambda: array("i"))
    shared: set[int] = attrs.field(factory=set)
    tokens: int = 0
    confirmed: int = 0
    released: int = 0
    pairs: list[int] = attrs.field(factory=list)
    open: list[int] = attrs.field(factory=list)
    room: int = 0
    tail: tuple[int, int, int, int] = (0, 0, UNBOUND, FRESH)


Running = dict[Request, RequestState]


def running(requests: Running, event: str, request: Request) -> RequestState:
    """The state of a running request. Raises RequestError."""
    try:
        return requests[request]
    except KeyError:
        accepted = "a running request"
        raise RequestError(event, request, "it is not running", accepted) from None
    except TypeError:  # it cannot be in any table
        raise _no_id(event, request) from None


def running_or_new(requests: Running, event: str, request: Request) -> RequestState:
    """The same, or of one that runs from now on. Raises RequestError for no id."""
    try:
        return requests[request]
    except KeyError:
        if type(request) in (int, str):
            return RequestState(request)
    except TypeError:
        pass
    raise _no_id(event, request)


def _no_id(event: str, request: object) -> RequestError:
    return RequestError(event, request, "no id", "an integer or a text as id")


@attrs.define(eq=False)
class Journal:
    """What it takes to put back the primary facts that the events of a step changed.

    cells: (column, index, old value); those from `grants` on were noted by shares.
    touched: request -> itself, whether it ran, its table length, levels and pairs.
    bound: the columns of a block's binding. Binds need no cells: the blocks that a step
    binds are the new ones of a table, and nothing else happens to them in its events.
    """

    granule: array[int]
    references: list[int]
    epoch: list[int]
    binder: list[RequestState | None]
    due: dict[int, tuple[Request, int]]
    copied: dict[int, int]
    owed: list[tuple[Request, int]]
    adopted: int
    releases: int
    grants: int = 0
    cells: list[tuple[Any, int, Any]] = attrs.field(factory=list)
    touched: dict[int, tuple[RequestState, bool, int, tuple[int, int], list[int]]] = (
        attrs.field(factory=dict)
    )

    def touch(self, state: RequestState, runs: bool) -> None:
        """Note a request before its first change of the step."""
        if id(state) not in self.touched:
            levels = state.tokens, state.confirmed
            pairs = list(state.pairs)
            self.touched[id(state)] = state, runs, len(state.blocks), levels, pairs

    def put_back(self, requests: dict[Request, RequestState]) -> None:
        """Undo shares, then binds, then everything before them: last change first."""
        self._restore(self.cells[self.grants :])
        for state, _, length, levels, pairs in self.touched.values():
            self._unbind(state, length)
            del state.blocks[length:]
            state.tokens, state.confirmed = levels
            state.pairs = pairs
            if requests.get(state.id) is state:
                del requests[state.id]
        for state, runs, *_ in self.touched.values():
            if runs:
                requests[state.id] = state
        self._restore(self.cells[: self.grants])

    def _unbind(self, state: RequestState, length: int) -> None:
        for block in state.blocks[length:]:
            if self.binder[block] is state:
                self.granule[block] = UNBOUND
                self.references[block] = 0
                self.epoch[block] -= 1
                self.binder[block] = None

    @staticmethod
    def _restore(cells: list[tuple[Any, int, Any]]) -> None:
        for column, index, old in reversed(cells):
            column[index] = old
