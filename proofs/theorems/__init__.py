"""One file a theorem, or a theorem for each kind of place; here all, in reading order.

Each file has the sections given, claim, witness and planted bugs (`proofs.theorem`).
"""

from __future__ import annotations

from proofs.theorem import Theorem
from proofs.theorems import (
    acceptance,
    comes_back,
    commit_copies,
    commit_stays,
    commits,
    copies_in_turn,
    disjoint,
    element_at,
    events,
    first_writes,
    inside,
    key_operands,
    lock_step,
    one_index,
    onto,
    operand_columns,
    own_bursts,
    pair_set,
    possible,
    rounding_up,
    run,
    shift,
    sums,
    value_operands,
    words,
)

THEOREMS: tuple[Theorem, ...] = (
    *acceptance.THEOREMS,
    *rounding_up.THEOREMS,
    *comes_back.THEOREMS,
    *inside.THEOREMS,
    *onto.THEOREMS,
    *one_index.THEOREMS,
    *disjoint.THEOREMS,
    *element_at.THEOREMS,
    *shift.THEOREMS,
    *commit_stays.THEOREMS,
    *commit_copies.THEOREMS,
    *copies_in_turn.THEOREMS,
    *key_operands.THEOREMS,
    *value_operands.THEOREMS,
    *operand_columns.THEOREMS,
    *run.THEOREMS,
    *pair_set.THEOREMS,
    *events.THEOREMS,
    *possible.THEOREMS,
    *words.THEOREMS,
    *commits.THEOREMS,
    *lock_step.THEOREMS,
    *sums.THEOREMS,
    *own_bursts.THEOREMS,
    *first_writes.THEOREMS,
)
