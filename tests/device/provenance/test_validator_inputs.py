"""What is wrong before any stream: tables, steps and blocks that do not fit."""

from __future__ import annotations

import attrs
import numpy as np
import pytest

from patton.commands import Phase, Tokens
from patton.device.provenance import Fault, Identify, StreamValidator
from patton.device.provenance.reads import StepReads
from patton.device.provenance.tags import (
    UNWRITTEN,
    ZERO,
    Identities,
)
from patton.errors import ValidationError
from patton.generate import generate_step
from patton.steps import PlacedStep
from tests.device.provenance.edits import VECTORS, edited
from tests.device.provenance.runs import (
    faults_of,
    fork,
    layout_of,
    moments,
    moments_of,
    serve,
)


def misplaced(validator: StreamValidator, placed: PlacedStep) -> ValidationError:
    """The error of the very streams that are generated for wrong placements."""
    streams = [s for s in generate_step(placed).present() if s.phase in VECTORS]
    return faults_of(validator, placed, streams)[Fault.PLACEMENT]


def test_a_block_read_from_where_it_is_not_is_found() -> None:
    """Its Key and its Value must be of one token."""
    moment = moments_of(Phase.PARTIAL)[0]
    tables = moment.placed.tables
    tables = attrs.evolve(tables, slot=np.full_like(tables.slot, -1))

    error = misplaced(moment.validator, attrs.evolve(moment.placed, tables=tables))

    assert error.found.count("position") == 1 or "no token" in error.found


def test_a_token_that_was_never_written_is_found() -> None:
    """Where the zero fill lies that stands behind the last token."""
    seen = 0
    for moment in moments_of(Phase.PARTIAL):
        placed, size = moment.placed, moment.placed.layout.block_tokens
        tables = placed.tables
        last = tables.ptr[1:][placed.read_request] - 1
        next_token = tables.opened[last]
        granule = tables.granule[last]
        grows = (granule >= 0) & (next_token > 0) & (next_token < size)
        held = moment.validator.contents.key[granule, next_token % size]
        if not (grows & (held == UNWRITTEN)).all():
            continue
        opened = tables.opened.copy()
        opened[last] += 1
        more = attrs.evolve(
            placed,
            tables=attrs.evolve(tables, opened=opened),
            read_end=tables.ptr[1:][placed.read_request] * 0
            + (last - tables.ptr[placed.read_request]) * size
            + next_token
            + 1,
        )
        assert "no token" in misplaced(moment.validator, more).found
        seen += 1
    assert seen > 0


def test_tables_too_short_are_found() -> None:
    moment = moments_of(Phase.QK)[0]
    placed, size = moment.placed, moment.placed.layout.block_tokens
    beyond = attrs.evolve(placed, read_end=placed.read_end + 4 * size)
    opened = attrs.evolve(placed.tables, opened=placed.tables.opened - 1)
    short = attrs.evolve(placed, tables=opened)

    for other, due in ((beyond, "a block in its table"), (short, "a written token")):
        with pytest.raises(ValidationError, match="finds in memory") as caught:
            fork(moment.validator).check(other, moment.stream)
        assert (caught.value.fault, caught.value.due) == (Fault.PLACEMENT, due)


def test_a_burst_begun_in_the_middle_is_found() -> None:
    """Lanes beside a token must have been filled, also where no query sees them."""
    for moment in moments_of(Phase.SV):
        placed, validator = moment.placed, fork(moment.validator)
        if placed.layout.device.lanes == 1 or (placed.read_end < 2).any():
            continue
        reads = StepReads.of(validator.contents, placed)
        late = attrs.evolve(placed, read_start=np.maximum(placed.read_start, 1))
        first = reads.queries.base == 0
        if not first.any():
            continue
        validator.contents.value[reads.queries.place[first], 0] = UNWRITTEN
        assert "beside those" in misplaced(validator, late).due
        return
    raise AssertionError("no such step")


def test_two_blocks_in_one_place_are_found() -> None:
    moment = next(
        m
        for seed in range(9)
        for m in moments(seed, 5)
        if m.stream.phase == Phase.KEY_WRITE and len(m.placed.write_granule) > 1
    )
    granule = np.full_like(
        moment.placed.write_granule, moment.placed.write_granule.min()
    )
    start = np.zeros_like(granule)
    placed = attrs.evolve(moment.placed, write_granule=granule, write_start=start)

    with pytest.raises(ValidationError, match="two blocks"):
        fork(moment.validator).check(placed, moment.stream)


def test_writes_that_no_step_asks_for_are_found() -> None:
    """Also where a step has no writes at all."""
    moment = moments_of(Phase.VALUE_WRITE)[0]
    placed = moment.placed
    nothing = {
        f"write_{name}": getattr(placed, f"write_{name}")[:0]
        for name in ("granule", "slot", "start", "count", "request", "position")
    }

    with pytest.raises(ValidationError, match="write to a foreign place"):
        fork(moment.validator).check(attrs.evolve(placed, **nothing), moment.stream)


def test_a_fill_that_changes_nothing_is_still_missing() -> None:
    """Lanes that happen to be zero already must be written zero all the same."""
    for moment in moments_of(Phase.VALUE_WRITE):
        stream, validator = moment.stream, fork(moment.validator)
        assert stream.lanes is not None
        assert stream.fill is not None
        part = stream.fill & (stream.lanes != 2**stream.frame.lanes - 1)
        if not part.any() or not validator.layout.device.write_masks:
            continue
        validator.memory._tags[1:] = ZERO
        changed = edited(stream, int(np.flatnonzero(part)[0]), fill=False)
        errors = faults_of(validator, moment.placed, [changed])
        if "lanes" in errors[Fault.MISSING].found:
            return
    raise AssertionError("no such write")


def test_another_token_than_the_engine_means_is_found() -> None:
    """A block that was bound anew would be right in itself."""
    layout = layout_of(1)
    validator = StreamValidator.of(layout)
    steps: list[PlacedStep] = []

    def watch(placed: PlacedStep, identify: Identify) -> None:
        def other(tokens: Tokens) -> Identities:
            found = identify(tokens)
            return found + np.uint64(1) if len(steps) == 4 else found

        steps.append(placed)
        validator.check_step(placed, generate_step(placed).present(), other)

    with pytest.raises(ValidationError, match="its own"):
        serve(layout, 1, 8, watch)


def test_streams_of_a_step_are_complete_and_in_order() -> None:
    """A phase that is missing, doubled or early is found whatever it holds."""
    moment = next(m for m in moments(1, 8) if len(m.placed.write_granule) > 0)
    streams = generate_step(moment.placed).present()
    assert len(streams) > 2

    for wrong in (streams[1:], streams[:-1], streams[::-1], [streams[0], *streams]):
        validator = fork(moment.validator)
        with pytest.raises(ValidationError, match="the streams of the step") as caught:
            validator.check_step(moment.placed, wrong)
        assert caught.value.fault in {Fault.MISSING, Fault.ORDER}
