"""Public calls with arguments that are right, of which a test makes one wrong.

An entry is made anew for every try: the call, its arguments by name, and what must be
as before when it is refused.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import numpy as np

from patton import (
    DeviceConfig,
    Layout,
    ModelConfig,
    Recorder,
    Runtime,
    Step,
    device_preset,
    generate_step,
    model_from_config,
    model_preset,
    replay,
    run_layer,
)
from patton.addresses import Address, Element
from patton.config import ElementType
from patton.device import PlainDevice, ReferenceDevice
from patton.device.provenance import StreamValidator
from patton.engine.serving import LoopSettings, ServingLoop
from patton.engine.session import RunSettings, Session
from patton.engine.synthetic import SyntheticSettings, synthetic
from patton.engine.workloads import open_workload
from patton.operands import no_payload
from patton.steps import PlacedStep

SMALL = DeviceConfig("small", channels=2, banks=2, rows=40, row_bytes=32, burst_bytes=4)
MODEL = ModelConfig("small", 1, 1, 2, 4, 64)
LAYOUT = Layout.of(SMALL, MODEL, block_tokens=4)

# What no call takes for a number, a name or a structure; some of it some calls do take.
WRONG: list[Any] = [
    *(None, True, 1.5, float("nan"), float("inf"), -1, 0, 10**6, 2**70),
    *("", "x", b"x", [], [1], ["x"], (), (1, 2), (1, "x", None), {}, {1: 2}, {3}),
    *(range(3), np.int64(1), np.zeros(2), np.zeros((2, 2), np.uint16), object, len),
    *(Step(), SMALL, MODEL, LAYOUT, ElementType.BF16, Path("/nowhere/at/all")),
]


@attrs.frozen
class Entry:
    """A call that is right, and what it must leave alone when it is refused."""

    call: Callable[..., Any]
    arguments: dict[str, Any]
    state: Callable[[], Any] = lambda: None


Make = Callable[[], Entry]
ENTRIES: dict[str, Make] = {}


def entry(make: Make) -> Make:
    """Register an entry under the name of the function that makes it."""
    ENTRIES[make.__name__] = make
    return make


def served() -> Runtime:
    """Request 1 holds blocks 0, full, and 1, partial; 2 is cached."""
    runtime = Runtime.of(LAYOUT)
    runtime.apply_step(Step(grants=[(3, [], [2])], writes=[(3, 0, 4)]))
    runtime.finish(3)
    runtime.publish(
        runtime.apply_step(Step(grants=[(1, [], [0, 1])], writes=[(1, 0, 6)]))
    )
    return runtime


def placed() -> PlacedStep:
    """A step that writes, reads and reads back."""
    step = Step(
        grants=[(1, [], [0, 1])],
        writes=[(1, 0, 7)],
        reads=[(1, 0, 7)],
        readbacks=[(1, 0, 5)],
    )
    return Runtime.of(LAYOUT).apply_step(step).place()


# --- the runtime ----------------------------------------------------------------------


def _event(name: str, **arguments: Any) -> None:
    def make() -> Entry:
        runtime = served()
        return Entry(getattr(runtime, name), arguments, lambda: frozen(runtime))

    ENTRIES[f"Runtime.{name}"] = make


def frozen(runtime: Runtime) -> str:
    """The whole state of a runtime as text."""
    return json.dumps(runtime.snapshot(), sort_keys=True)


_event("bind", request=1, block=3)
_event("share", request=2, block=0)
_event("release", request=1, block=0)
_event("evict", block=2)
_event("finish", request=1)
_event("confirm", request=1, tokens=6)
_event("write", request=1, start=6, count=1)
_event("placement", block=0)
_event("bindable", request=2, shares=[0])
_event("blocks_of_pair", pair=0)
_event("apply_step", step=Step())
_event("follow", step=Step())
_event("restore", snapshot=served().snapshot())
_event("publish", plan=served().apply_step(Step()))
for _part in attrs.fields_dict(Step):

    def _make(part: str = _part) -> Entry:
        runtime = served()
        rows: dict[str, Any] = {
            "finishes": [1],
            "releases": [(1, 0)],
            "evicts": [2],
            "confirms": [(1, 6)],
            "grants": [(2, [0], [3])],
            "writes": [(1, 6, 1)],
            "drafts": {},
            "reads": [(1, 0, 6)],
            "readbacks": [(1, 0, 6)],
        }

        def apply(**parts: Any) -> Any:
            return runtime.apply_step(Step(**parts))

        return Entry(apply, {part: rows[part]}, lambda: frozen(runtime))

    ENTRIES[f"Step.{_part}"] = _make


@entry
def commit() -> Entry:
    """A block that a plan has copied."""
    runtime = served()
    runtime.apply_step(Step(writes=[(1, 6, 2)]))
    return Entry(runtime.commit, {"block": 1}, lambda: frozen(runtime))


@entry
def runtime_of() -> Entry:
    """A fresh runtime."""
    options = {"choice": "spread", "adoption": True, "commit_zone": True}
    return Entry(Runtime.of, {"layout": LAYOUT, "blocks": 3} | options)


# --- shapes ---------------------------------------------------------------------------


@entry
def device_config() -> Entry:
    """A device."""
    return Entry(DeviceConfig, attrs.asdict(SMALL, recurse=False))


@entry
def model_config() -> Entry:
    """A model."""
    return Entry(ModelConfig, attrs.asdict(MODEL))


@entry
def scaled() -> Entry:
    """A device of another size."""
    return Entry(SMALL.scaled, {"capacity_gib": 1})


@entry
def presets() -> Entry:
    """A preset of a device."""
    return Entry(device_preset, {"name": "tiny"})


@entry
def model_presets() -> Entry:
    """A preset of a model."""
    return Entry(model_preset, {"name_or_path": "tiny"})


@entry
def model_files() -> Entry:
    """A model's own description; there is none."""
    return Entry(model_from_config, {"path": "/nowhere/config.json"})


@entry
def layout_of() -> Entry:
    """A layout."""
    sizes = {"block_tokens": 4, "pair_blocks": 2, "slots": 1}
    return Entry(Layout.of, {"device": SMALL, "model": MODEL} | sizes)


@entry
def address_of() -> Entry:
    """Where an element lies."""
    return Entry(LAYOUT.address_of, {"kind": "key", "element": Element(0, 0, 0, 0, 0)})


@entry
def element_at() -> Entry:
    """What lies there."""
    return Entry(LAYOUT.element_at, {"address": Address(0, 0, 0, 0, 0)})


for _name in Element._fields:

    def _element(name: str = _name) -> Entry:
        def call(**fields: Any) -> Any:
            return LAYOUT.address_of("value", Element(0, 0, 0, 0, 0)._replace(**fields))

        return Entry(call, {name: 0})

    ENTRIES[f"Element.{_name}"] = _element
for _name in Address._fields:

    def _address(name: str = _name) -> Entry:
        def call(**fields: Any) -> Any:
            return LAYOUT.element_at(Address(0, 0, 0, 0, 0)._replace(**fields))

        return Entry(call, {name: 0})

    ENTRIES[f"Address.{_name}"] = _address


# --- streams and devices --------------------------------------------------------------


@entry
def streams() -> Entry:
    """From a step to its streams."""
    arguments = {"placed": placed(), "commit_way": None}
    return Entry(generate_step, arguments)


@entry
def layer() -> Entry:
    """One layer on a device."""
    device = ReferenceDevice(SMALL)

    def data(tokens: Any) -> Any:
        return np.zeros((len(tokens.position), 1, 4), np.uint16)

    arguments = {
        "executor": device,
        "streams": generate_step(placed()),
        "layer": 0,
        "element": ElementType.BF16,
        "keys": data,
        "values": data,
        "queries": np.zeros((1, 1, 2, 4), np.uint16),
    }
    return Entry(run_layer, arguments)


def _executor(kind: type[PlainDevice | ReferenceDevice]) -> None:
    def run() -> Entry:
        device, stream = kind(SMALL), generate_step(placed()).read_key
        assert stream is not None
        payload = {"payload": no_payload(stream), "layer": 0, "stop": None}
        return Entry(
            device.run, {"stream": stream} | payload, lambda: [*device.memory.image()]
        )

    ENTRIES[f"{kind.__name__}.run"] = run
    ENTRIES[kind.__name__] = lambda: Entry(kind, {"device": SMALL})


_executor(PlainDevice)
_executor(ReferenceDevice)


@entry
def validator() -> Entry:
    """What proves streams."""
    return Entry(StreamValidator.of, {"layout": LAYOUT})


# --- files, workloads and the engine --------------------------------------------------


@entry
def recorder() -> Entry:
    """The event log."""
    return Entry(Recorder.attach, {"runtime": served(), "out": io.StringIO()})


@entry
def replayed() -> Entry:
    """An event log that is not there."""

    def call(path: Any) -> Any:
        return [*replay(path)]

    return Entry(call, {"path": "/nowhere/log.jsonl"})


@entry
def workload() -> Entry:
    """A workload that is not there."""
    options = {"tokenizer": "qwen", "template": False, "count_tokens": len}
    return Entry(open_workload, {"path": "/nowhere/chats.jsonl"} | options)


@entry
def synthetic_workload() -> Entry:
    """A workload that is drawn."""
    return Entry(synthetic, {"settings": SyntheticSettings()})


@entry
def synthetic_settings() -> Entry:
    """What is drawn."""

    def call(**fields: Any) -> Any:
        return next(synthetic(SyntheticSettings(**fields)).conversations())

    return Entry(call, attrs.asdict(SyntheticSettings()))


@entry
def loop() -> Entry:
    """A closed loop."""
    arguments = {
        "workload": synthetic(),
        "settings": LoopSettings(pool=2),
        "blocks": 600,
    }
    return Entry(ServingLoop.of, arguments)


@entry
def loop_settings() -> Entry:
    """How a workload is served."""
    settings = LoopSettings(pool=2, wrap=False)

    def call(**fields: Any) -> Any:
        few = synthetic(SyntheticSettings(conversations=20))
        chosen = attrs.evolve(settings, **fields)
        return ServingLoop.of(few, chosen, 600, placement=Runtime.of(LAYOUT))

    return Entry(call, attrs.asdict(settings))


RUN = RunSettings(
    synthetic(),
    Layout.of(device_preset("tiny"), model_preset("tiny")),
    LoopSettings(pool=2, max_context=300),
    steps=1,
    check="lifecycle",
)


@entry
def run_settings() -> Entry:
    """A checked run."""

    def call(**fields: Any) -> Any:
        return Session.of(RunSettings(**fields))

    return Entry(call, attrs.asdict(RUN, recurse=False))


@entry
def session() -> Entry:
    """A checked run of settings."""
    return Entry(Session.of, {"settings": RUN})
