"""Streams of runs that go right are proved; what is not of a stream is found, too."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import cache
from itertools import product

import attrs
import numpy as np
import pytest

from patton.commands import CommandStream, Phase, Tokens
from patton.device import protocol
from patton.device.provenance import Fault, Identify, StreamValidator
from patton.device.provenance.diagnosis import Term, compare, terms_due, terms_found
from patton.device.provenance.reads import StepReads
from patton.device.provenance.results import Output, first_wrong
from patton.device.provenance.tables import check_tables
from patton.device.provenance.tags import (
    FILLED,
    NOBODY,
    UNWRITTEN,
    ZERO,
    Identities,
    Kind,
    tags_of,
)
from patton.errors import ProtocolError, ValidationError
from patton.generate import generate_step
from patton.steps import PlacedStep
from tests.device.provenance.edits import VECTORS, edited
from tests.device.provenance.runs import (
    WAYS,
    Moment,
    driven,
    fork,
    layout_of,
    moments,
    options_of,
    serve,
)
from tests.test_end_to_end import SHAPES


def test_runs_of_the_driver_are_right() -> None:
    """Random layouts, all ways to commit; every phase occurs often."""
    seen: Counter[str] = Counter()
    for seed in range(24):
        validator = None
        for placed in driven(seed, 15):
            validator = validator or StreamValidator.of(placed.layout)
            streams = generate_step(placed).present()
            validator.check_step(placed, streams)
            way = placed.layout.device.commit_way
            seen.update(f"{stream.phase} {way}" for stream in streams)
        assert validator is not None
        assert validator.commands > validator.streams > 0

    for phase, way in product(VECTORS | {Phase.VALUE_WRITE, Phase.COMMIT}, WAYS):
        assert seen[f"{phase} {way}"] >= 5, (phase, way, seen)


def test_served_runs_are_right() -> None:
    """Several queries, windows, read-backs; tokens are those that the engine means."""
    seen: Counter[str] = Counter()
    for seed in range(15):
        layout = layout_of(seed)
        validator = StreamValidator.of(layout)

        def watch(
            placed: PlacedStep,
            identify: Identify,
            validator: StreamValidator = validator,
        ) -> None:
            streams = generate_step(placed).present()
            validator.check_step(placed, streams, identify)

        seen += serve(layout, seed, 10, watch, **options_of(seed)).seen

    for situation in (
        *("drafts rejected", "same-step shares", "several queries", "windows"),
        *("releases", "evictions", "read-backs", "commits", "commits repeated"),
        *("no slot", "partial reads", "resident reads"),
    ):
        assert seen[situation] > 1, situation


@pytest.mark.parametrize("name", SHAPES)
def test_real_geometries(name: str) -> None:
    layout = SHAPES[name].layout()
    validator = StreamValidator.of(layout)

    def watch(placed: PlacedStep, identify: Identify) -> None:
        validator.check_step(placed, generate_step(placed).present(), identify)

    engine = serve(layout, 3, 4, watch)

    assert engine.seen["partial reads"] > 0


# --- the fast way and the slow one ----------------------------------------------------


def outputs(stream: CommandStream, reads: StepReads) -> Iterator[Output]:
    """Everything that a stream must return."""
    placed, frame = reads.placed, stream.frame
    ranges = zip(placed.read_start.tolist(), placed.read_end.tolist(), strict=True)
    for query, positions in enumerate(ranges):
        scores = stream.phase == Phase.QK
        components = range(*positions) if scores else range(frame.head_dim)
        for head, component in product(range(frame.heads_per_kv), components):
            yield Output(query * frame.heads_per_kv + head, component)


def test_the_fast_way_finds_what_the_slow_one_does() -> None:
    """On streams with any field of any entry changed, and on right ones."""
    rng, seen = np.random.default_rng(5), Counter[bool]()
    found = [m for seed in range(12) for m in moments(seed, 5)]
    for moment in found:
        stream, commands = moment.stream, int(moment.stream.command_offsets()[-1])
        if stream.phase not in VECTORS or commands > 150:
            continue
        for changed in (stream, *(randomly_changed(rng, stream) for _ in range(6))):
            validator = moment.validator
            try:
                protocol.check(changed, validator.layout.device)
                check_tables(changed, moment.placed)
            except (ProtocolError, ValidationError):
                continue
            reads = StepReads.of(validator.contents, moment.placed)
            runs = reads.runs(in_slots=stream.phase == Phase.PARTIAL)
            fast = first_wrong(changed, validator.memory, reads, runs)
            slow = [
                output
                for output in outputs(changed, reads)
                if compare(
                    terms_found(changed, validator.memory, reads, output)[0],
                    list(terms_due(changed, reads, runs, output)),
                )
            ]
            assert (fast is not None) == bool(slow), str(fast)
            assert fast is None or fast in slow
            seen[bool(slow)] += 1

    assert seen[True] > 30
    assert seen[False] > 30


def randomly_changed(rng: np.random.Generator, stream: CommandStream) -> CommandStream:
    name = rng.choice(["burst", "count", "row", "channel", "reference", "register"])
    entry = int(rng.integers(len(stream)))
    value = int(getattr(stream, str(name))[entry]) + int(rng.choice([-1, 1]))
    return edited(stream, entry, **{str(name): value}) if value >= 0 else stream


def term(token: int, operand: int | None, result: int = 0) -> Term:
    cell = int(tags_of(np.array([token]), Kind.VALUE, 0, 1)[0])
    return Term(cell, None if operand is None else (0, operand), result)


RIGHT = [term(50, 1), term(51, 2), term(52, 3, 1)]


@pytest.mark.parametrize(
    ("found", "fault"),
    [
        (RIGHT, None),
        ([*RIGHT[:2], term(60, None), *RIGHT[2:]], Fault.FOREIGN),
        ([*RIGHT, term(FILLED, None)], Fault.ORDER),
        (RIGHT[:2], Fault.MISSING),
        ([*RIGHT, RIGHT[0]], Fault.DOUBLED),
        ([RIGHT[1], RIGHT[0], RIGHT[2]], Fault.ORDER),
        ([term(50, 1), term(51, 2), term(52, 3, 0)], Fault.ORDER),
        ([term(50, 1), term(51, 2, 1), term(52, 3, 1)], Fault.ORDER),
        ([*RIGHT, term(53, 9)], Fault.FOREIGN),
        ([*RIGHT, term(53, None)], Fault.FOREIGN),
        ([*RIGHT, term(51, 3)], Fault.OPERAND),
        ([*RIGHT, term(51, None)], Fault.OPERAND),
        ([*RIGHT, term(FILLED, 3)], Fault.ZERO),
        ([*RIGHT, term(UNWRITTEN, 3)], Fault.UNWRITTEN),
        ([*RIGHT, term(UNWRITTEN, None)], Fault.UNWRITTEN),
    ],
)
def test_terms_are_compared(found: list[Term], fault: Fault | None) -> None:
    """Each term, each once, none foreign, in the stated order and results."""
    finding = compare(found, RIGHT)

    assert (finding.fault if finding else None) == fault


@pytest.mark.parametrize("lane", [0, 1])
def test_lanes_under_zero_are_compared(lane: int) -> None:
    """They add nothing, but the place must hold what the step put there."""
    due = [*RIGHT, term(60, None), term(FILLED, None)]
    found = list(due)
    found[len(RIGHT) + lane] = due[len(RIGHT) + 1 - lane]
    finding = compare(found, due)

    assert compare(due, due) is None
    assert finding is not None
    assert finding.fault == (Fault.ZERO, Fault.FOREIGN)[lane]


# --- the tags are read, not believed --------------------------------------------------


NOBODYS = NOBODY * ZERO


@pytest.mark.parametrize(
    ("tag", "fault"),
    [
        (UNWRITTEN, Fault.UNWRITTEN),
        (ZERO, Fault.ZERO),
        (NOBODYS, Fault.FOREIGN),
    ],
)
@pytest.mark.parametrize("phase", [*sorted(VECTORS), Phase.READ_KEY, Phase.READ_VALUE])
def test_a_changed_lane_is_seen(phase: Phase, tag: int, fault: Fault) -> None:
    """Every lane that a token of a reading stream lies in is looked at."""
    pokes = 25 if phase in VECTORS else 120  # a read-back is of few tokens
    for moment in moments_of(phase)[:2]:
        validator = fork(moment.validator)
        tags = validator.memory._tags
        tokens = np.argwhere(tags > ZERO)
        seen = 0
        for at in np.random.default_rng(1).permutation(tokens)[:pokes].tolist():
            before = int(tags[*at])
            tags[*at] = tag
            faults = faults_of(validator, moment.placed, [moment.stream])
            assert set(faults) <= {fault}
            seen += len(faults)
            tags[*at] = before
        assert seen > 0


def faults_of(
    validator: StreamValidator, placed: PlacedStep, streams: list[CommandStream]
) -> dict[str, ValidationError]:
    """The error that the streams raise, if any, by its fault."""
    try:
        for stream in streams:
            validator.check(placed, stream)
    except ValidationError as error:
        return {error.fault: error}
    return {}


@pytest.mark.parametrize("phase", [*sorted(VECTORS), Phase.READ_KEY])
def test_a_reading_stream_that_stops_changes_nothing(phase: Phase) -> None:
    moment = moments_of(phase)[0]
    validator = fork(moment.validator)
    validator.interrupt(moment.placed, moment.stream, 3)

    assert np.array_equal(validator.memory._tags, moment.validator.memory._tags)
    assert validator.streams == moment.validator.streams
    validator.check(moment.placed, moment.stream)
    assert validator.streams == moment.validator.streams + 1


# --- what is wrong before any stream --------------------------------------------------


@cache
def moments_of(phase: Phase) -> list[Moment]:
    """Streams of one kind, the latest first."""
    found = [m for seed in (1, 2, 3) for m in moments(seed, 8)]
    return [m for m in reversed(found) if m.stream.phase == phase]


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
