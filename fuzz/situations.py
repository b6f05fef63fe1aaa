"""The situations that a run must have met, by name, and how each is recognised.

A check that passes says little if what it checks hardly ever occurred. `python -m fuzz
situations` counts them all on the fast driver and asks for a minimum of each.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from fuzz.moments import Moment, Recognise, Situations
from patton.commit_zone import NO_SLOT
from patton.errors import OutOfPairsError, PlacementError
from patton.requests import FRESH

LEAST = 100  # times each, in a run of STEPS
STEPS = 400_000

KNOWN: dict[str, tuple[frozenset[str], Recognise]] = {}


def situation(name: str, *events: str) -> Callable[[Recognise], Recognise]:
    """Register a recogniser; events: at which it is asked."""

    def register(recognise: Recognise) -> Recognise:
        KNOWN[name] = frozenset(events), recognise
        return recognise

    return register


def counting() -> Situations:
    """A watcher that has counted nothing yet."""
    return Situations(KNOWN, Counter(dict.fromkeys(KNOWN, 0)))


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


# --- levels ---------------------------------------------------------------------------


@situation("a full block waits in its slot for its tokens to be verified", "step")
def _(m: Moment) -> bool:
    return any(
        m.now.slot[b] >= 0 and m.now.written[b] == m.size > m.now.confirmed[b]
        for b in {row[0] for row in m.rows}
    )


@situation("verified drafts make a block due for its commit", "confirm", "step")
def _(m: Moment) -> bool:
    written = {row[0] for row in m.rows}
    return any(m.confirms()) and bool({*m.now.due} - m.was.due - written)


@situation("rejected drafts are written anew", "step")
def _(m: Moment) -> bool:
    tables = {r: m.was.tables[r] for r, *_ in m.step.writes if r in m.was.tables}
    return any(
        r in tables and tables[r][2] <= start < tables[r][1]
        for r, start, _ in m.step.writes
    )


@situation("verified tokens are written anew", "step")
def _(m: Moment) -> bool:
    tables = m.was.tables
    return any(r in tables and start < tables[r][2] for r, start, _ in m.step.writes)


@situation("a rewrite that ends earlier leaves a later block empty", "step")
def _(m: Moment) -> bool:
    return any(
        written
        and not m.now.written[b]
        and m.now.epoch[b] == m.was.epoch[b]
        and m.now.granule[b] >= 0
        for b, written in enumerate(m.was.written)
    )


@situation("tokens are written beyond a gap of unverified ones", "step")
def _(m: Moment) -> bool:
    return any(start > m.now.requests[r].confirmed for r, start, _ in m.step.writes)


@situation("one write goes through three blocks", "step")
def _(m: Moment) -> bool:
    return any(n > 2 for n in Counter(row[6] for row in m.rows).values())


@situation("a write from the middle of a block to the middle of another", "step")
def _(m: Moment) -> bool:
    return any(
        start % m.size
        and (start + n) % m.size
        and start // m.size < (start + n) // m.size
        for _, start, n in m.step.writes
    )


@situation("one token fills its block", "step")
def _(m: Moment) -> bool:
    return any(n == 1 and start == m.size - 1 for *_, start, n, _, _ in m.rows)


# --- sharing and ends -----------------------------------------------------------------


@situation("a block is shared in the step that fills it", "step")
def _(m: Moment) -> bool:
    filled = {row[0] for row in m.rows if m.was.written[row[0]] < m.size}
    sealed = m.now.sealed
    return any(sealed[b] == m.now.step - 1 and m.now.references[b] > 1 for b in filled)


@situation("a block is shared in the step that fills it with drafts", "step")
def _(m: Moment) -> bool:
    now = m.now
    filled = {row[0] for row in m.rows if m.was.written[row[0]] < m.size}
    return any(
        now.sealed[b] == now.step - 1 and now.confirmed[b] < m.size == now.written[b]
        for b in filled
    )


@situation("a cached block is shared", "share", "step")
def _(m: Moment) -> bool:
    return any(not m.was.references[b] for _, b in m.shares())


@situation("a cached block in a slot is shared", "share", "step")
def _(m: Moment) -> bool:
    return any(not m.was.references[b] and m.was.slot[b] >= 0 for _, b in m.shares())


@situation("a cached block in a slot is evicted", "evict", "step")
def _(m: Moment) -> bool:
    return any(m.was.slot[b] >= 0 for b in m.evicts())


@situation("a cached block is evicted beside blocks in use", "evict", "step")
def _(m: Moment) -> bool:
    pairs = [m.pair(m.was.granule[b]) for b in m.evicts() if m.was.granule[b] >= 0]
    return any(m.was.references[b] for p in pairs for b in m.blocks_before(p))


@situation("the binder of a block ends while others share it", "finish", "step")
def _(m: Moment) -> bool:
    ended = {*m.finishes()}
    binders = [(b, q.id) for b, q in enumerate(m.was.binder) if q is not None]
    return any(r in ended and m.now.references[b] for b, r in binders)


@situation("a block is cached when its last sharer leaves", "finish", "release", "step")
def _(m: Moment) -> bool:
    gone = [b for r in m.finishes() for b in m.was.tables[r][0] if b >= 0]
    gone += [b for _, b in m.releases()]
    return any(m.was.binder[b] is None and not m.now.references[b] for b in gone)


@situation("a partial block is dropped with its slot", "finish", "step")
def _(m: Moment) -> bool:
    return any(m.was.slot[b] >= 0 and m.was.confirmed[b] < m.size for b in m.freed())


@situation("a partial block is dropped from its O1V", "finish", "step")
def _(m: Moment) -> bool:
    return any(
        m.was.slot[b] == NO_SLOT and m.was.confirmed[b] < m.size for b in m.freed()
    )


@situation("a block with drafts is dropped though it is full", "finish", "step")
def _(m: Moment) -> bool:
    return any(m.was.written[b] == m.size > m.was.confirmed[b] for b in m.freed())


# --- reads ----------------------------------------------------------------------------


@situation("a read goes through slots and O1Vs", "step")
def _(m: Moment) -> bool:
    for request, start, end in m.step.reads:
        blocks = m.now.requests[request].blocks[start // m.size : -(-end // m.size)]
        if len({m.now.slot[b] >= 0 for b in blocks}) > 1:
            return True
    return False


@situation("a window begins inside a block", "step")
def _(m: Moment) -> bool:
    return any(start % m.size for _, start, _ in m.step.reads)


@situation("several query tokens of one request", "step")
def _(m: Moment) -> bool:
    return any(n > 1 for n in Counter(r for r, *_ in m.step.reads).values())


@situation("two requests read the same block in one step", "step")
def _(m: Moment) -> bool:
    readers = {r for r, *_ in m.step.reads}
    tables = [{b for b in m.now.requests[r].blocks if b >= 0} for r in readers]
    return len(set[int]().union(*tables)) < sum(map(len, tables))


@situation("a read-back goes through several blocks", "step")
def _(m: Moment) -> bool:
    return any(
        start // m.size < (end - 1) // m.size for _, start, end in m.step.readbacks
    )
