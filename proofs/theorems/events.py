"""Every event keeps what holds throughout and does what the clauses say, no more.

One theorem for each kind of event of `spec.machine`, for any number of requests,
blocks, pairs and slots: in a state with all invariants, an event that is allowed

* leaves all invariants true, which thus hold in every state that can be reached;
* was allowed only when the clauses say so, and has done what they say;
* has changed nothing that the clauses do not name, and nothing of any other request,
  block, pair, place or slot;
* has freed or taken at most one block, pair, place and slot, a place exactly with its
  block, so that what is free and what is in use add up to all there is.

The invariants alone would be kept by a machine that does nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from proofs.logic import Formulas
from proofs.machines import Event, about_machine, any_event, claimed, suppose
from proofs.numbers import Work
from proofs.theorem import Bug, Claim, Swap, Without
from spec.claims import conserved, frame, only, steady
from spec.effects import effects
from spec.invariants import initial, invariants
from spec.machine import TRANSITIONS
from spec.state import State


def given(space: Work, lg: Formulas, name: str) -> tuple[Work, Event]:
    """Any state with all invariants and any event of the kind that is allowed in it."""
    return space, any_event(space, lg, name)


def claim(space: Work, e: Event) -> Iterator[Claim]:
    """All that the specification says of two states with an event between them."""
    lg, s, t = e.lg, e.s, e.t
    yield from claimed(space, "still holds", invariants(lg, t))
    for says, claims in {
        "is done": effects(lg, s, t, e.name, *e.arguments),
        "is all that changes": only(lg, s, t, e.name),
        "changes only here": frame(lg, s, t, e.name, *e.arguments),
        "one at most": conserved(lg, s, t),
        "stays so": steady(lg, s, t),
    }.items():
        yield from claimed(space, says, claims)


def given_first(space: Work, lg: Formulas) -> tuple[Work, Formulas, State]:
    """The state in which the machine begins."""
    s = lg.state()
    suppose(space, "a block has a token", lg.tokens >= 1)
    suppose(space, "nothing has happened", initial(lg, s))
    return space, lg, s


def claim_first(space: Work, lg: Formulas, s: State) -> Iterator[Claim]:
    """It has all invariants."""
    yield from claimed(space, "holds at first", invariants(lg, s))


def _bug(function: str, old: str, new: str) -> Swap:
    return Swap(f"spec.machine.{function}", old, new)


# Kind of event: what it is called, the clause that it is about, and planted bugs.
PLANTED: dict[str, tuple[str, str, tuple[Bug, ...]]] = {
    "start": (
        "a_request_begins",
        "LIFE-FINISH",
        (_bug("start", "s.active.add(r)", "s.active"),),
    ),
    "share": (
        "a_block_is_shared",
        "LIFE-SHARE",
        (
            _bug("share", "s.sharer.add(r, b)", "s.sharer"),
            _bug("share", "s.bound(b)", "True"),
            Without("allowed by LIFE-PREFIX"),
        ),
    ),
    "leave": (
        "a_held_block_is_given_up",
        "LIFE-RELEASE",
        (
            _bug("_without", "s.sharer.remove(r, b)", "s.sharer"),
            _bug("_without", "s.grown.add(r)", "s.grown"),
        ),
    ),
    "cache": (
        "a_full_block_is_cached",
        "LIFE-CACHE",
        (
            Without("allowed by LIFE-CACHE"),
            _bug("cache", "lg.not_(s.sealed(b))", "False"),
        ),
    ),
    "drop": (
        "a_partial_block_is_dropped",
        "LIFE-DROP",
        (
            Without("allowed by LIFE-DROP"),
            _bug("_unbound", "s.occupied.remove(p, i)", "s.occupied"),
            _bug("_unbound", "lg.not_(s.in_slot(b))", "True"),
        ),
    ),
    "end": (
        "a_request_ends",
        "LIFE-FINISH",
        (
            Without("allowed by INV-HELD"),
            _bug("end", "s.owns.where(lambda q, _: lg.not_(lg.eq(q, r)))", "s.owns"),
        ),
    ),
    "evict": (
        "a_cached_block_is_evicted",
        "LIFE-EVICT",
        (
            _bug("evict", "lg.not_(held(lg, s, b))", "True"),
            _bug("_unbound", "s.used.set((p,), lg.not_(empty))", "s.used.remove(p)"),
        ),
    ),
    "confirm": (
        "tokens_are_confirmed",
        "LIFE-CONFIRM",
        (_bug("confirm", "n <= s.written(b)", "n <= lg.tokens"),),
    ),
    "bind_own": (
        "a_block_is_bound_in_an_own_pair",
        "LIFE-BIND",
        (
            Without("allowed by INV-DISTINCT"),
            Without("allowed by LIFE-OWNER"),
            _bug("_bound", "s.occupied.add(p, i)", "s.occupied"),
        ),
    ),
    "bind_fresh": (
        "a_block_is_bound_in_a_free_pair",
        "LIFE-FILL",
        (
            Without("allowed by LIFE-FILL"),
            Without("allowed by LIFE-ADOPT"),
            _bug("_bound", "s.owns.add(r, p)", "s.owns"),
        ),
    ),
    "bind_adopting": (
        "a_block_is_bound_in_an_adopted_pair",
        "LIFE-ADOPT",
        (
            Without("allowed by LIFE-ADOPT"),
            _bug("_bound", "s.tail.set((r,), b)", "s.tail"),
        ),
    ),
    "publish": (
        "a_committed_block_is_published",
        "LIFE-PUBLISH",
        (
            _bug("publish", "s.copied(b)", "s.in_slot(b)"),
            _bug("publish", "s.slot_used.remove(s.slot(b))", "s.slot_used"),
        ),
    ),
    "begin_writes": (
        "a_step_begins_to_write",
        "STEP-ORDER",
        (Without("allowed by STEP-ORDER"),),
    ),
    "write_whole": (
        "a_whole_block_is_written",
        "LIFE-LEVELS",
        (
            _bug("write_whole", "lg.not_(s.begun(b))", "True"),
            _bug("_written", "s.begun.add(b)", "s.begun"),
            Without("allowed by LIFE-WRITER"),
        ),
    ),
    "write_staged": (
        "a_first_write_takes_a_slot",
        "LIFE-STAGE",
        (
            _bug("write_staged", "s.in_o1v.remove(b)", "s.in_o1v"),
            Without("allowed by INV-RESERVED"),
            Without("allowed by INV-SLOT"),
        ),
    ),
    "write_direct": (
        "a_first_write_finds_no_slot",
        "LIFE-DIRECT",
        (Without("allowed by LIFE-DIRECT"), Without("allowed by LIFE-STAGE")),
    ),
    "write_on": (
        "a_block_is_written_on",
        "LIFE-STAY",
        (
            Without("allowed by LIFE-SEALED"),
            Without("allowed by LIFE-LEVELS"),
            _bug("_written", "s.copied.remove(b)", "s.copied"),
        ),
    ),
    "retract": (
        "a_rewrite_shortens_a_block",
        "LIFE-REWRITE",
        (
            Without("allowed by LIFE-SEALED"),
            _bug("retract", "s.copied.remove(b)", "s.copied"),
        ),
    ),
    "begin_reads": (
        "a_step_begins_to_read",
        "STEP-ORDER",
        (_bug("begin_reads", "READING", "PLANNING"),),
    ),
    "read": (
        "written_tokens_are_read",
        "LIFE-READ",
        (_bug("read", "n <= s.written(b)", "n <= lg.tokens"),),
    ),
    "copy": (
        "a_full_block_is_copied",
        "LIFE-COMMIT",
        (_bug("copy", "due(lg, s, b)", "s.in_slot(b)"),),
    ),
    "end_step": (
        "a_step_ends",
        "STEP-SHARED",
        (
            Without("allowed by STEP-SHARED"),
            _bug("end_step", "s.sealing.where(lambda b: full(lg, s, b))", "s.sealing"),
        ),
    ),
}

THEOREMS = (
    about_machine(
        "the_first_state_keeps_all_rules",
        "INV-LEVELS",
        "first state",
        given_first,
        claim_first,
        planted=(Without("nothing has happened"),),
    ),
    *(
        about_machine(
            title, clause, "every state", partial(given, name=name), claim, planted
        )
        for name, (title, clause, planted) in PLANTED.items()
    ),
)
assert PLANTED.keys() == TRANSITIONS.keys()
