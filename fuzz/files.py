"""Failures as files: written, replayed, and cut down to what it takes.

The format is the event log of `patton.events`, with a header that also says what was
watched and what was found, and with four events more (`fuzz.world.OWN_EVENTS`). A file
in `fuzz/regressions` is the record of a defect; replayed, it must not fail any more.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from time import monotonic
from typing import Any, get_args

import attrs

from fuzz.world import OWN_EVENTS, Event, FailureError, Level, World
from patton.errors import PattonError
from patton.events import (
    EVENTS,
    decode_step,
    encode_step,
    header,
    runtime_from_header,
)
from patton.step_form import check_form
from patton.steps import Step

REGRESSIONS = Path(__file__).with_name("regressions")
ARGUMENTS = {**EVENTS, "step": 1, **OWN_EVENTS}  # how many, of every event

LIST_PARTS = (
    *("finishes", "releases", "evicts", "confirms"),
    *("grants", "writes", "reads", "readbacks"),
)


class UnreadableError(OSError):
    """A file is there, and is not what it should be."""


def json_lines(path: Path) -> list[Any]:
    """The values of a file, one a line. Raises OSError, UnreadableError."""
    values = []
    for number, line in enumerate(path.read_bytes().splitlines(), 1):
        try:
            values.append(json.loads(line))
        except (ValueError, RecursionError) as error:
            what = f"{path}, line {number}: {error}; accepted: a JSON value"
            raise UnreadableError(what) from None
    return values


@attrs.frozen
class Recorded:
    """A sequence of events on a fresh runtime.

    head: that describes the runtime; level, device: what watches it.
    """

    head: dict[str, Any]
    level: Level
    device: bool
    events: Sequence[Event]

    @classmethod
    def of(cls, world: World) -> Recorded:
        """What was done to a world so far."""
        head, device = header(world.runtime), world.validator is not None
        return cls(head, world.level, device, [*world.log])

    @classmethod
    def read(cls, path: Path) -> Recorded:
        """Read a file that `write` has written. Raises OSError, UnreadableError."""
        head, *rows = json_lines(path) or [None]
        try:
            level, device = _watch(head.pop("watch"))
            head.pop("found", None)
            runtime_from_header(head)
            events = [_decoded(row) for row in rows]
        except (AttributeError, LookupError, PattonError, TypeError, ValueError) as bad:
            what = f"{path}: {bad!r}; accepted: what a run has left"
            raise UnreadableError(what) from bad
        return cls(head, level, device, events)

    def write(self, path: Path, found: FailureError | None = None) -> None:
        """Write a file; found: what is wrong when it is written."""
        head = self.head | {"watch": {"level": self.level, "device": self.device}}
        if found is not None:
            head["found"] = {"clause": found.clause, "what": str(found)[:300]}
        rows = [head, *(_encoded(event) for event in self.events)]
        text = "".join(json.dumps(row, separators=(",", ":")) + "\n" for row in rows)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def replay(self) -> FailureError | None:
        """Do it all again; the failure that it ends with, if it still does."""
        runtime = runtime_from_header(self.head)
        world = World.of(runtime, self.level, device=self.device)
        try:
            for event, arguments in self.events:
                world.do(event, *arguments)
            world.do("restore")
        except FailureError as failure:
            return failure
        return None


def _watch(data: Any) -> tuple[Level, bool]:
    level, device = data["level"], data["device"]
    if level not in get_args(Level) or type(device) is not bool:
        raise ValueError(f"no watch: {data}")
    return level, device


def _encoded(event: Event) -> list[Any]:
    name, arguments = event
    parts = [encode_step(a) if isinstance(a, Step) else a for a in arguments]
    return [name, *parts]


def _decoded(row: list[Any]) -> Event:
    name, *parts = row
    if len(parts) != ARGUMENTS.get(name):
        raise ValueError(f"no event: {row}")
    if name == "step":
        parts = [decode_step(*parts)]
        check_form(*parts)
    return name, tuple(parts)


# --- minimal files --------------------------------------------------------------------


def minimal(recorded: Recorded, clause: str, seconds: float = 20.0) -> Recorded:
    """The fewest events, and the smallest steps, that still break the clause.

    Events that follow from others that are cut are refused, which does no harm.
    """
    deadline = monotonic() + seconds

    def fails(events: Sequence[Event]) -> bool:
        failure = attrs.evolve(recorded, events=events).replay()
        return failure is not None and failure.clause == clause

    best = [*recorded.events]
    if not fails(best):
        return recorded
    width = max(1, len(best) // 2)
    while monotonic() < deadline:
        cut = next((e for e in _without_runs(best, width) if fails(e)), None)
        if cut is not None:
            best = cut
        elif width > 1:
            width //= 2
        elif (smaller := _smaller(best, fails)) is not None:
            best = smaller
        else:
            break
    return attrs.evolve(recorded, events=best)


def _without_runs(events: list[Event], width: int) -> Iterator[list[Event]]:
    for start in range(len(events) - width, -width, -width):
        yield events[: max(start, 0)] + events[start + width :]


def _smaller(events: list[Event], fails: Any) -> list[Event] | None:
    """The same with one part less in one of the steps."""
    for index, (name, arguments) in enumerate(events):
        for step in _lesser_steps(*arguments) if name == "step" else ():
            less = [*events[:index], (name, (step,)), *events[index + 1 :]]
            if fails(less):
                return less
    return None


def _lesser_steps(step: Step) -> Iterator[Step]:
    for part in LIST_PARTS:
        rows = getattr(step, part)
        for index in range(len(rows)):
            less: dict[str, Any] = {part: [*rows[:index], *rows[index + 1 :]]}
            yield attrs.evolve(step, **less)
    for request in step.drafts:
        drafts = {r: n for r, n in step.drafts.items() if r != request}
        yield attrs.evolve(step, drafts=drafts)
