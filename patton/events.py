"""The event log: any run as JSON lines, replayed to the same state.

The first line is a header with the device, the model and the runtime's options; every
further line is one event, `[name, argument...]`, a step being an object of its
non-empty parts. A log may end with the digest of the final state.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import attrs
import numpy as np

from patton.arguments import PATH, expect, expect_call
from patton.config import DeviceConfig, ElementType, ModelConfig
from patton.errors import EventError, PattonError
from patton.layout import Layout
from patton.runtime import Runtime
from patton.steps import Step, StepPlan

FORMAT = "patton-events-1"

_STEP_PARTS = {
    "finishes": list,
    "releases": tuple,
    "evicts": list,
    "confirms": tuple,
    "grants": tuple,
    "writes": tuple,
    "drafts": dict,
    "reads": tuple,
    "readbacks": tuple,
}


def digest(runtime: Runtime) -> str:
    """SHA-256 of the runtime's snapshot: equal states, equal digests."""
    text = json.dumps(runtime.snapshot(), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def header(runtime: Runtime) -> dict[str, Any]:
    """What it takes to build the runtime again, as plain data."""
    layout, state = runtime.layout, runtime.placements
    device = attrs.asdict(layout.device) | {"element": layout.device.element.name}
    return {
        "format": FORMAT,
        "device": device,
        "model": attrs.asdict(layout.model),
        "block_tokens": layout.block_tokens,
        "pair_blocks": layout.pair_blocks,
        "slots": layout.slots,
        "blocks": len(state.granule),
        "choice": state.pool.choice,
        "adoption": state.adoption,
        "commit_zone": state.commit_zone,
    }


def runtime_from_header(data: dict[str, Any]) -> Runtime:
    """A fresh runtime as a header describes it. Raises EventError or ConfigError."""
    if data.get("format") != FORMAT:
        raise EventError(1, f"format {data.get('format')!r}", repr(FORMAT))
    try:
        device = dict(data["device"])
        device["element"] = ElementType[device["element"]]
        layout = Layout.of(
            DeviceConfig(**device),
            ModelConfig(**data["model"]),
            block_tokens=data["block_tokens"],
            pair_blocks=data["pair_blocks"],
            slots=data["slots"],
        )
        options = {k: data[k] for k in ("blocks", "choice", "adoption", "commit_zone")}
        return Runtime.of(layout, **options)
    except (KeyError, TypeError, ValueError) as error:
        raise EventError(1, f"header: {error!r}", "a header as written here") from None


def encode_step(step: Step) -> dict[str, Any]:
    """The non-empty parts of a step as plain data."""
    parts: dict[str, Any] = {
        n: getattr(step, n) for n in _STEP_PARTS if getattr(step, n)
    }
    if "drafts" in parts:
        parts["drafts"] = list(step.drafts.items())
    return parts


def _refuse_fractions(data: Any) -> None:
    """Streams would cut them to integers."""
    if isinstance(data, dict | list | tuple):
        for part in data.values() if isinstance(data, dict) else data:
            _refuse_fractions(part)
    elif type(data) not in (int, str):
        raise TypeError(f"{data!r} is neither an integer nor a request's name")


def decode_step(parts: dict[str, Any]) -> Step:
    """A step from its plain form. Raises ValueError, TypeError on anything else."""
    unknown = parts.keys() - _STEP_PARTS.keys()
    if unknown:
        raise ValueError(f"unknown parts {sorted(unknown)}")
    _refuse_fractions(parts)
    decoded: dict[str, Any] = {}
    for name, rows in parts.items():
        kind = _STEP_PARTS[name]
        if kind is dict:
            decoded[name] = dict(rows)
        else:
            decoded[name] = (
                [tuple(row) for row in rows] if kind is tuple else list(rows)
            )
    return Step(**decoded)


@attrs.define(eq=False)
class Recorder:
    """Writes every event of a runtime to a text stream, as it is carried out."""

    runtime: Runtime
    out: IO[str]

    @classmethod
    def attach(cls, runtime: Runtime, out: IO[str]) -> Recorder:
        """Record a runtime from its present, fresh state on."""
        expect("Recorder.attach", "runtime", runtime, Runtime)
        expect_call("Recorder.attach", "out", out, "write")
        recorder = cls(runtime, out)
        recorder._line(header(runtime))
        runtime.observer = recorder.note
        return recorder

    def note(self, event: str, arguments: tuple[Any, ...]) -> None:
        """One event as one line."""
        if event == "step":
            self._line(["step", encode_step(arguments[0])])
        else:
            self._line([event, *arguments])

    def close(self) -> None:
        """End the log with the digest of the state."""
        self._line(["digest", digest(self.runtime)])
        self.runtime.observer = None

    def _line(self, data: object) -> None:
        self.out.write(json.dumps(data, separators=(",", ":"), default=_plain) + "\n")


def _plain(value: Any) -> Any:
    """What JSON does not know: NumPy's integers, and sequences of any kind."""
    return int(value) if isinstance(value, np.integer) else list(value)


# How many arguments each has; a step is its own.
EVENTS = {
    "bind": 2,
    "share": 2,
    "release": 2,
    "evict": 1,
    "finish": 1,
    "confirm": 2,
    "commit": 1,
}


@attrs.frozen
class Replayed:
    """One replayed event. plan: of a step, else None."""

    line: int
    event: str
    runtime: Runtime
    plan: StepPlan | None


def replay(path: Path | str) -> Iterator[Replayed]:
    """Replay a log event by event; the runtime is the same object throughout.

    Raises EventError (line, problem) for what is not a log, for an event that the
    runtime refuses, and for a final digest that differs.
    """
    expect("replay", "path", path, *PATH)
    with _opened(Path(path)) as lines:
        runtime: Runtime | None = None
        for number, line in enumerate(lines, 1):
            data = _parse(number, line)
            if runtime is None:
                if not isinstance(data, dict):
                    raise EventError(number, "no header", "a header object")
                runtime = runtime_from_header(data)
            else:
                yield _apply(runtime, number, data)
        if runtime is None:
            raise EventError(1, "an empty file", "a header and events")


def _opened(path: Path) -> IO[bytes]:
    try:
        return path.open("rb")
    except OSError as error:
        problem = f"{path}: {error.strerror}"
        raise EventError(0, problem, "a file that can be read") from None


def _parse(number: int, line: bytes) -> Any:
    try:
        return json.loads(line.decode())
    except (ValueError, RecursionError) as error:
        raise EventError(
            number, f"not JSON ({error})", "one JSON value a line"
        ) from None


def _apply(runtime: Runtime, number: int, data: Any) -> Replayed:
    match data:
        case ["step", dict(parts)]:
            plan = _guarded(number, lambda: runtime.apply_step(decode_step(parts)))
            return Replayed(number, "step", runtime, plan)
        case ["digest", str(expected)]:
            if digest(runtime) != expected:
                raise EventError(number, "another final state", f"digest {expected}")
            return Replayed(number, "digest", runtime, None)
        case [str(event), *arguments] if len(arguments) == EVENTS.get(event):
            _guarded(number, lambda: _carry_out(runtime, event, arguments))
            return Replayed(number, event, runtime, None)
    known = ", ".join([*EVENTS, "step", "digest"])
    raise EventError(number, f"{json.dumps(data)[:60]}", f"[event, ...] with {known}")


def _carry_out(runtime: Runtime, event: str, arguments: list[Any]) -> None:
    _refuse_fractions(arguments)
    getattr(runtime, event)(*arguments)


def _guarded(number: int, action: Any) -> Any:
    try:
        return action()
    except PattonError as error:
        raise EventError(
            number, str(error), "an event that the state allows"
        ) from error
    except (TypeError, ValueError, KeyError, AttributeError) as error:
        raise EventError(number, repr(error), "arguments of the right kind") from error
