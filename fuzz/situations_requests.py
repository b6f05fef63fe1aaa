"""Situations of levels, of sharing and ends, of reads."""

from __future__ import annotations

from collections import Counter

from fuzz.moments import Moment, situation
from patton.commit_zone import NO_SLOT

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
