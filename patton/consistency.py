"""Does the runtime's state agree with itself; and its form as plain data.

`check` derives everything that follows from the primary facts anew and compares, then
tests the facts that must hold between them. It is for tests and debugging: its cost
grows with the device. `snapshot` and `restored` carry exactly the primary facts.
"""

from __future__ import annotations

from array import array
from typing import Any

import attrs

from patton.errors import InconsistencyError, SnapshotError
from patton.placements import Placements
from patton.requests import FRESH, NEVER, RELEASED, UNBOUND, RequestState


def _demand(what: str, found: object, expected: object) -> None:
    if found != expected:
        raise InconsistencyError(what, found, expected)


def check(state: Placements) -> None:
    """Raise InconsistencyError at the first contradiction in the state."""
    _check_blocks(state)
    _check_requests(state)
    _check_slots(state)
    _check_derived(state)
    _check_tails(state)


def _check_blocks(state: Placements) -> None:
    size = state.layout.block_tokens
    held: dict[int, int] = {}
    for request in state.requests.values():
        for block in request.blocks:
            if block != RELEASED:
                held[block] = held.get(block, 0) + 1
    granules: dict[int, int] = {}
    for block, granule in enumerate(state.granule):
        _demand(
            f"references of block {block}", state.references[block], held.get(block, 0)
        )
        epoch = state.epoch[block]
        counted = type(epoch) is int and epoch >= (granule != UNBOUND)
        _demand(f"epoch of block {block} counted", counted, True)
        if granule == UNBOUND:
            facts = state.slot[block], state.written[block], state.confirmed[block]
            _demand(f"slot and levels of unbound block {block}", facts, (FRESH, 0, 0))
            continue
        _demand(
            f"granule of block {block} in range",
            0 <= granule < len(state.block_at),
            True,
        )
        other = granules.setdefault(granule, block)
        _demand(f"block in granule {granule}", block, other)
        levels = 0 <= state.confirmed[block] <= state.written[block] <= size
        _demand(f"levels of block {block} in order", levels, True)
        whole = state.references[block] > 0 or state.confirmed[block] == size
        _demand(f"unreferenced block {block} full", whole, True)


def _check_requests(state: Placements) -> None:
    size = state.layout.block_tokens
    owned: set[int] = set()
    for key, request in state.requests.items():
        _demand("name of request", request.id, key)
        _demand(f"repeated pairs of request {key!r}", owned & {*request.pairs}, set())
        owned |= {*request.pairs}
        room = len(request.blocks) * size
        levels = 0 <= request.confirmed <= request.tokens <= room
        _demand(f"levels of request {key!r} in order", levels, True)
        for index, block in enumerate(request.blocks):
            if block == RELEASED or state.binder[block] is not request:
                continue
            expected = min(max(request.tokens - index * size, 0), size)
            _demand(f"written level of block {block}", state.written[block], expected)
            expected = min(max(request.confirmed - index * size, 0), size)
            _demand(
                f"confirmed level of block {block}", state.confirmed[block], expected
            )
            pair = state.pair_of(block)
            _demand(f"owner of pair {pair}", state.pool.owner[pair], key)


def _check_slots(state: Placements) -> None:
    size = state.layout.block_tokens
    stripes = state.layout.stripes
    used: dict[int, int] = {}
    for block in state.bound_blocks():
        slot = state.slot[block]
        known = FRESH <= slot < stripes * state.layout.slots
        _demand(f"slot of block {block} in range", known, True)
        if slot < 0:
            continue
        _demand(f"block in slot {slot}", block, used.setdefault(slot, block))
        stripe = state.granule[block] % stripes
        _demand(f"stripe of the slot of block {block}", slot % stripes, stripe)
        due = state.confirmed[block] == size
        _demand(f"commit of block {block} due", block in state.due, due)
    _demand("blocks due outside a slot", {*state.due} - {*used.values()}, set())
    _demand("blocks copied and not due", {*state.copied} - {*state.due}, set())


def _check_derived(state: Placements) -> None:
    copy = attrs.evolve(state)
    copy.requests = {key: attrs.evolve(r) for key, r in state.requests.items()}
    copy.binder = [r and copy.requests.get(r.id) for r in state.binder]
    copy.derive()
    _demand("blocks given up", state.gaps, copy.gaps)
    _demand("free slots", state.zone.free, copy.zone.free)
    _demand("blocks by granule", state.block_at, copy.block_at)
    live, fresh = state.pool.facts(), copy.pool.facts()
    for name, expected in fresh.items():
        _demand(f"{name} of the pair pool", live[name], expected)
    candidates = list(state.pool.eviction_candidates())
    _demand("eviction order", candidates, list(copy.pool.eviction_candidates()))
    for key, request in state.requests.items():
        anew = copy.requests[key]
        for name in ("shared", "released", "open"):
            found, expected = getattr(request, name), getattr(anew, name)
            _demand(f"{name} of request {key!r}", found, expected)
    partial = [
        (key, block)
        for key, request in copy.requests.items()
        for block in request.shared
        if state.written[block] < state.layout.block_tokens
    ]
    owed = sorted(state.owed, key=repr)
    _demand("shares of blocks to be filled", owed, sorted(partial, key=repr))


def _check_tails(state: Placements) -> None:
    """What a request may append to unseen is its own, and as it remembers it."""
    for key, request in state.requests.items():
        if request.room:
            block = request.blocks[request.tokens // state.layout.block_tokens]
            facts = block, state.epoch[block], state.granule[block], state.slot[block]
            _demand(f"tail of request {key!r}", request.tail, facts)
            alone = state.binder[block] is request and state.sealed[block] == NEVER
            _demand(f"tail of request {key!r} is its own", alone, True)


# --- snapshots ----------------------------------------------------------------------

_BLOCK_FACTS = ("granule", "slot", "written", "confirmed", "references", "sealed")


def snapshot(state: Placements) -> dict[str, Any]:
    """The primary facts as plain data; equal states give equal data."""
    blocks = {
        str(block): [
            *(getattr(state, name)[block] for name in _BLOCK_FACTS),
            binder.id if (binder := state.binder[block]) else None,
        ]
        for block in state.bound_blocks()
    }
    requests = [
        [r.id, list(r.blocks), r.tokens, r.confirmed, list(r.pairs)]
        for r in state.requests.values()
    ]
    return {
        "granules": state.layout.granules,
        "pair_blocks": state.layout.pair_blocks,
        "slots": state.layout.slots * state.layout.stripes,
        "blocks": len(state.granule),
        "step": state.step,
        "adopted": state.adopted,
        "releases": state.releases,
        "requests": sorted(requests, key=lambda row: (str(type(row[0])), row[0])),
        "bound": blocks,
        "epochs": {str(b): e for b, e in enumerate(state.epoch) if e},
        "last_release": {str(p): s for p, s in enumerate(state.pool.last_release) if s},
        "due": [[block, *due] for block, due in state.due.items()],
        "copied": [list(row) for row in state.copied.items()],
        "owed": [list(row) for row in state.owed],
    }


def restored(state: Placements, data: dict[str, Any]) -> Placements:
    """Placements with the facts of a snapshot, for the layout of `state`.

    Raises SnapshotError when the data are not a consistent snapshot for this layout.
    """
    accepted = "data taken by Runtime.snapshot"
    empty = snapshot(state.emptied())
    if not isinstance(data, dict) or data.keys() != empty.keys():
        raise SnapshotError("other parts than a snapshot has", accepted)
    for name in ("granules", "pair_blocks", "slots", "blocks"):
        if data[name] != empty[name]:
            raise SnapshotError(f"{name} is {data[name]!r}", str(empty[name]))
    try:
        _check_numbers(data)
        anew = _filled(state, data)
        check(anew)
        _check_clocks(anew)
        _demand("the data of the state so restored", snapshot(anew), data)
    except (
        *(InconsistencyError, LookupError, TypeError, ValueError),
        *(OverflowError, AttributeError),
    ) as error:
        raise SnapshotError(f"{error}"[:200], accepted) from error
    return anew


def _check_numbers(data: Any) -> None:
    """Only integers, texts and None; True and 1.0 equal 1, but are no integers."""
    if isinstance(data, dict | list):
        for part in data.values() if isinstance(data, dict) else data:
            _check_numbers(part)
    elif data is not None:
        _demand(f"{data!r} an integer or a name", type(data) in (int, str), True)


def _check_clocks(state: Placements) -> None:
    """What no other fact follows from: counters, and the work still to be done."""
    times = state.pool.last_release
    counters = 0 <= state.step < NEVER and state.adopted >= 0
    counters = counters and 0 <= min(times) <= max(times) <= state.releases
    _demand("counters in order", counters, True)
    size = state.layout.block_tokens
    for request, position in state.due.values():
        known = type(request) in (int, str) and 0 <= position < NEVER
        known = known and position % size == 0
        _demand("a commit of a block of a request", known, True)


def _filled(state: Placements, data: dict[str, Any]) -> Placements:
    anew = state.emptied()
    anew.step, anew.adopted = data["step"], data["adopted"]
    anew.releases = data["releases"]
    for key, blocks, tokens, confirmed, pairs in data["requests"]:
        request = RequestState(key, array("i", blocks))
        request.tokens, request.confirmed, request.pairs = (
            tokens,
            confirmed,
            list(pairs),
        )
        anew.requests[key] = request
    for block, epoch in data["epochs"].items():
        anew.epoch[int(block)] = epoch
    for name, (*facts, binder) in data["bound"].items():
        block = int(name)
        _demand("facts of a block", {*map(type, facts)}, {int})
        for fact, value in zip(_BLOCK_FACTS, facts, strict=True):
            getattr(anew, fact)[block] = value
        anew.binder[block] = anew.requests[binder] if binder is not None else None
    for pair, step in data["last_release"].items():
        anew.pool.last_release[int(pair)] = step
    anew.due = {block: (request, position) for block, request, position in data["due"]}
    anew.copied = dict(data["copied"])
    anew.owed = [(request, block) for request, block in data["owed"]]
    anew.derive()
    return anew
