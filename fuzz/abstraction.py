"""The runtime's state, read as a state of the abstract machine.

`FACTS` answers for one field and key, `abstraction` for all of them at once, from the
runtime's own structures: bitmaps, inverse maps and counters are read where they lie,
not derived, so that one which went wrong is found out.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import attrs

from patton.placements import Placements
from patton.requests import FRESH, RELEASED, UNBOUND
from patton.steps import Request
from spec.logic import Key, Term

Cells = dict[str, dict[Key, Term]]

# What the runtime keeps nowhere: which copies of commits are made, the phase of a step
# (its own are atomic), and the inverse of `slot`.
UNSEEN = {"copied", "phase", "block_in"}

# Functions say something only where these relations hold.
MEANT = {"pair": "bound", "place": "bound", "block_at": "occupied", "slot": "in_slot"}


@attrs.define
class RequestTable:
    """What the machine leaves out of a request: the order of its blocks, its levels."""

    blocks: list[int]
    tokens: int = 0
    confirmed: int = 0


def request_tables(state: Placements) -> dict[Request, RequestTable]:
    """The tables of all running requests."""
    return {
        key: RequestTable(list(r.blocks), r.tokens, r.confirmed)
        for key, r in state.requests.items()
    }


def _grown(state: Placements, r: Request) -> bool:
    request = state.requests.get(r)
    return request is not None and len(request.blocks) != len(request.shared)


def _tail(state: Placements, r: Request) -> int:
    request = state.requests.get(r)
    return request.blocks[-1] if request and request.blocks else RELEASED


def _binder(state: Placements, r: Request, b: int) -> bool:
    request = state.binder[b]
    return request is not None and request is state.requests.get(r)


def _sharer(state: Placements, r: Request, b: int) -> bool:
    request = state.requests.get(r)
    return request is not None and b in request.shared


def _slot_used(state: Placements, z: int | None) -> bool:
    if z is None:  # of a block that never was in one
        return False
    index, stripe = divmod(z, state.zone.stripes)
    return not state.zone.free[stripe] >> index & 1


FACTS: dict[str, Callable[..., Any]] = {
    "active": lambda state, r: r in state.requests,
    "grown": _grown,
    "tail": _tail,
    "binder": _binder,
    "sharer": _sharer,
    "bound": lambda state, b: state.granule[b] != UNBOUND,
    "pair": lambda state, b: state.granule[b] // state.pool.blocks_per_pair,
    "place": lambda state, b: state.granule[b] % state.pool.blocks_per_pair,
    "used": lambda state, p: not state.pool.is_free(p),
    "occupied": lambda state, p, i: not state.pool.free_places[p] >> i & 1,
    "block_at": lambda state, p, i: state.block_at[p * state.pool.blocks_per_pair + i],
    "owns": lambda state, r, p: state.pool.owner[p] == r,
    "in_o1v": lambda state, b: state.granule[b] != UNBOUND and state.slot[b] < 0,
    "in_slot": lambda state, b: state.slot[b] >= 0,
    "slot": lambda state, b: state.slot[b],
    "slot_used": _slot_used,
    "begun": lambda state, b: state.slot[b] != FRESH,
    "written": lambda state, b: state.written[b],
    "confirmed": lambda state, b: state.confirmed[b],
    "sealed": lambda state, b: state.sealed[b] < state.step,
    "sealing": lambda state, b: state.sealed[b] == state.step,
}


def abstraction(state: Placements) -> Cells:
    """All cells that differ from the machine's defaults, of all fields it can see."""
    return _requests(state) | _pairs(state) | _blocks(state)


def _requests(state: Placements) -> Cells:
    running = state.requests.items()
    binders = enumerate(state.binder)
    return {
        "active": {(r,): True for r in state.requests},
        "grown": {(r,): True for r in state.requests if _grown(state, r)},
        "tail": {(r,): _tail(state, r) for r, _ in running if _tail(state, r) >= 0},
        "binder": {(q.id, b): True for b, q in binders if q is not None},
        "sharer": {(r, b): True for r, q in running for b in q.shared},
    }


def _pairs(state: Placements) -> Cells:
    pool, zone = state.pool, state.zone
    free: Any = pool.facts()["free pairs by set"]
    pairs, slots = range(len(pool.owner)), range(zone.slots * zone.stripes)
    places = list(product(pairs, range(pool.blocks_per_pair)))

    def is_free(pair: int) -> bool:
        value_set = pool.set_of[pair]
        return bool(free[value_set] >> pair - pool.first_of_set[value_set] & 1)

    return {
        "used": {(p,): True for p in pairs if not is_free(p)},
        "occupied": {key: True for key in places if FACTS["occupied"](state, *key)},
        "block_at": {
            key: block
            for key, block in zip(places, state.block_at, strict=False)
            if block != UNBOUND
        },
        "owns": {(r, p): True for p, r in enumerate(pool.owner) if r is not None},
        "slot_used": {(z,): True for z in slots if _slot_used(state, z)},
    }


def _blocks(state: Placements) -> Cells:
    """What is kept per block; of an unbound one, only what is not as it should be."""
    fields = (
        *("bound", "in_o1v", "in_slot", "begun", "sealed", "sealing"),
        *("written", "confirmed", "pair", "place", "slot"),
    )
    cells: Cells = {field: {} for field in fields}
    for block in range(len(state.granule)):
        for field in fields:
            value = FACTS[field](state, block)
            says = FACTS[MEANT[field]](state, block) if field in MEANT else value
            if says:
                cells[field][block,] = value
    return cells
