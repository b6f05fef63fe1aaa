"""Situations of pairs and places, of slots and commits."""

from __future__ import annotations

from fuzz.moments import Moment, situation
from patton.commit_zone import NO_SLOT
from patton.errors import OutOfPairsError, PlacementError
from patton.requests import FRESH

# --- pairs and places -----------------------------------------------------------------


@situation("a pair is adopted", "bind", "step")
def _(m: Moment) -> bool:
    return m.now.adopted > m.was.adopted


@situation(
    "a pair is adopted while its prefix is shared by another running request",
    *("bind", "step"),
)
def _(m: Moment) -> bool:
    if m.now.adopted == m.was.adopted:
        return False
    pairs = {m.pair(m.now.granule[b]) for b in m.bound()}
    unowned = [p for p in pairs if m.was.owner[p] is None]
    return any(m.now.references[b] > 1 for p in unowned for b in m.blocks_before(p))


@situation("a prefix hit ends in a pair that its owner still fills", "bind")
def _(m: Moment) -> bool:
    request, _ = m.arguments
    blocks, *_ = m.was.tables.get(request, ([], 0, 0))
    if not blocks or blocks[-1] < 0 or m.was.granule[blocks[-1]] < 0:
        return False
    pair = m.pair(m.was.granule[blocks[-1]])
    others = m.was.owner[pair] not in (None, request)
    return others and m.now.pool.free_places[pair] > 0


@situation("all pairs are in use", "bind", "step")
def _(m: Moment) -> bool:
    return m.now.pool.free_pairs == 0 and any(m.bound())


@situation("no place is left for a new block", "refused")
def _(m: Moment) -> bool:
    return isinstance(m.error, OutOfPairsError)


@situation("a step that has bound blocks is refused and undone", "refused")
def _(m: Moment) -> bool:
    late = isinstance(m.error, PlacementError)
    late = late and not isinstance(m.error, OutOfPairsError)
    return late and any(binds for _, _, binds in m.step.grants)


@situation("a hole of a pair is filled", "bind", "step")
def _(m: Moment) -> bool:
    for block in m.bound():
        granule = m.now.granule[block]
        before = m.blocks_before(m.pair(granule))
        if any(m.was.granule[b] > granule for b in before):
            return True
    return False


@situation("an owner loses a pair that has emptied", "evict", "release", "step")
def _(m: Moment) -> bool:
    for pair, owner in enumerate(m.was.owner):
        goes_on = owner is not None and owner in m.now.requests
        if goes_on and m.now.pool.is_free(pair):
            return True
    return False


@situation("the first place of a pair is freed while others stay", "evict", "step")
def _(m: Moment) -> bool:
    granules = [m.was.granule[b] for b in m.freed()]
    first = [g for g in granules if m.place(g) == 0]
    return any(not m.now.pool.is_free(m.pair(g)) for g in first)


@situation("a sliding window gives up the first place of a pair", "release", "step")
def _(m: Moment) -> bool:
    return any(m.place(m.was.granule[b]) == 0 for _, b in m.releases())


@situation("a request lies in several pairs", "step")
def _(m: Moment) -> bool:
    return any(len(m.now.requests[r].pairs) > 1 for r, *_ in m.step.writes)


@situation("a request reads from several Value Row Sets", "step")
def _(m: Moment) -> bool:
    sets_of = m.now.pool.set_of
    for request, start, end in m.step.reads:
        blocks = m.now.requests[request].blocks[start // m.size : -(-end // m.size)]
        if len({sets_of[m.now.pair_of(b)] for b in blocks}) > 1:
            return True
    return False


@situation("an id is bound anew in the step that freed it", "step")
def _(m: Moment) -> bool:
    return any(m.was.granule[block] >= 0 for block in m.bound())


# --- slots and commits ----------------------------------------------------------------


@situation("a slot is reused in the step in which it was freed", "step")
def _(m: Moment) -> bool:
    held = {slot: b for b, slot in enumerate(m.was.slot) if slot >= 0}
    begun = [(b, slot) for b, _, _, slot, *_ in m.rows if slot in held]
    return any(held[slot] != b or m.was.epoch[b] != m.now.epoch[b] for b, slot in begun)


@situation("no slot is free for a first write", "step")
def _(m: Moment) -> bool:
    return m.now.commit_zone and any(
        slot == NO_SLOT and start == 0 and _first(m, b) and m.now.confirmed[b] < m.size
        for b, _, _, slot, start, *_ in m.rows
    )


def _first(m: Moment, block: int) -> bool:
    anew = m.was.epoch[block] != m.now.epoch[block]
    return anew or m.was.slot[block] == FRESH


@situation("a block written in one go bypasses the Commit Zone", "step")
def _(m: Moment) -> bool:
    return m.now.commit_zone and any(
        tokens == m.size and slot == NO_SLOT and _first(m, b)
        for b, _, _, slot, _, tokens, *_ in m.rows
    )


@situation("a commit with the slot's row shared by another request", "step")
def _(m: Moment) -> bool:
    per_row = m.now.layout.slots_per_row * m.now.layout.stripes
    rows: dict[int, set[object]] = {}
    for block, slot in enumerate(m.now.slot):
        if slot >= 0:
            rows.setdefault(slot // per_row, set()).add(m.now.binder[block])
    return any(len(rows[m.now.slot[b] // per_row]) > 1 for b in m.commits)


@situation("an interrupted commit is repeated", "step")
def _(m: Moment) -> bool:
    written = {row[0] for row in m.rows}
    return any(b in m.was.copied and b not in written for b in m.commits)


@situation("a copy is made void by a write", "step")
def _(m: Moment) -> bool:
    return any(row[0] in m.was.copied for row in m.rows)


@situation("a rewrite after the commit", "step")
def _(m: Moment) -> bool:
    return any(
        (b, epoch) in m.past.committed and start < m.was.written[b]
        for b, epoch, _, _, start, *_ in m.rows
    )


@situation("several blocks are committed in one step", "step")
def _(m: Moment) -> bool:
    return len(m.commits) > 1


@situation("blocks of several requests are committed in one step", "step")
def _(m: Moment) -> bool:
    return m.plan is not None and len({c.request for c in m.plan.commits}) > 1


@situation("a block is committed whose request has ended", "step")
def _(m: Moment) -> bool:
    return any(m.now.binder[b] is None for b in m.commits)


@situation("a block is committed that others share", "step")
def _(m: Moment) -> bool:
    return any(m.now.references[b] > 1 for b in m.commits)


@situation("a commit is passed over because its block is gone", "publish")
def _(m: Moment) -> bool:
    plan = m.world.plans.get(m.arguments[0])
    commits = plan.commits if plan else []
    return any(
        m.was.epoch[c.block] != c.epoch or m.was.granule[c.block] < 0 for c in commits
    )


@situation("a plan is published after later steps", "publish")
def _(m: Moment) -> bool:
    late = m.arguments[0] < m.now.step - 1
    return late and len(m.now.due) < len(m.was.due)


@situation("a plan is published again", "publish")
def _(m: Moment) -> bool:
    return m.arguments[0] in m.past.published


@situation("the state is saved and loaded with commits pending", "restore")
def _(m: Moment) -> bool:
    return bool(m.was.due)
