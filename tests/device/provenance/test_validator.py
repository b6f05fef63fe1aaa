"""Streams of runs that go right are proved, fast and slow alike.

Clauses CMD-SCORES, CMD-SUMS, CMD-WRITE, CMD-FIRST and CMD-READBACK.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import product

import numpy as np
import pytest

from patton.commands import CommandStream, Phase
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
    Kind,
    tags_of,
)
from patton.errors import ProtocolError, ValidationError
from patton.generate import generate_step
from patton.steps import PlacedStep
from tests.device.provenance.edits import VECTORS, edited
from tests.device.provenance.runs import (
    WAYS,
    driven,
    faults_of,
    fork,
    layout_of,
    moments,
    moments_of,
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


@pytest.mark.parametrize("phase", [*sorted(VECTORS), Phase.READ_KEY])
def test_a_reading_stream_that_stops_changes_nothing(phase: Phase) -> None:
    moment = moments_of(phase)[0]
    validator = fork(moment.validator)
    validator.interrupt(moment.placed, moment.stream, 3)

    assert np.array_equal(validator.memory._tags, moment.validator.memory._tags)
    assert validator.streams == moment.validator.streams
    validator.check(moment.placed, moment.stream)
    assert validator.streams == moment.validator.streams + 1
