"""How much of a study is done: presets, and what they leave to choose."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

import attrs

from patton import __version__
from patton.config import model_preset
from patton.errors import ConfigError
from patton.study.lifecycles import LifecycleTask
from patton.study.serving import ServeTask
from patton.study.tasks import Source

# Requests that run at once, and open conversations (Paper 5.1).
LOADS: Final[Mapping[str, tuple[int, int]]] = {
    "llama3-8b": (32, 64),
    "qwen3-8b": (32, 64),
    "opt-6.7b": (8, 16),
    "qwen1.5-7b": (8, 16),
}
MODELS: Final = tuple(LOADS)
SHORT: Final = 2048  # tokens of context in comparisons with AttAcc and NeuPIMs
LONG: Final = 8192  # tokens of context elsewhere


@attrs.frozen
class Settings:
    """What all experiments of a study have in common.

    steps: of the engine, in each run; every: one of so many is timed; block_steps: of
    runs in which only blocks live, which need more until a device is full; pools: open
    conversations of the capacity study, pressure: those at which its policies are
    compared; shares: parts of the device, rising, of block-granular caches that know
    the queue; contexts, batches, pair_sizes: of the scaling study; variant, host: of
    the simulator.
    """

    preset: str
    source: Source
    models: tuple[str, ...] = MODELS
    steps: int = 10_000
    every: int = 100
    block_steps: int = 10_000
    pools: tuple[int, ...] = (32, 40, 48, 56, 60, 64, 68, 72, 80, 96)
    pressure: int = 64
    shares: tuple[float, ...] = (0.86, 0.96)
    contexts: tuple[int, ...] = tuple(1024 << i for i in range(8))
    batches: tuple[int, ...] = tuple(1 << i for i in range(9))
    pair_sizes: tuple[int, ...] = (1, 2, 4, 8, 16, 32, 64)
    variant: str = "pin"
    host: str = "port-per-channel"

    def __attrs_post_init__(self) -> None:
        for model in self.models:
            if model not in LOADS:
                accepted = "one of " + ", ".join(LOADS)
                raise ConfigError("study", "model", model, accepted)
        if len(set(self.models)) != len(self.models):
            named = ",".join(self.models)
            raise ConfigError("study", "models", named, "each model once")
        if not self.models:
            raise ConfigError("study", "models", "none", "one of " + ", ".join(LOADS))
        if self.steps < 1:
            raise ConfigError("study", "steps", self.steps, "at least 1")
        if not 1 <= self.every <= self.steps:
            raise ConfigError("study", "every", self.every, f"1 to {self.steps}")
        if self.block_steps < 1:
            raise ConfigError("study", "block_steps", self.block_steps, "at least 1")

    def serve(self, model: str, system: str, context: int, **options: Any) -> ServeTask:
        """The run of a system under the paper's load.

        options: of the system, or fields of `ServeTask`.
        """
        fields = {field.name for field in attrs.fields(ServeTask)}
        own = {name: options.pop(name) for name in fields & options.keys()}
        concurrency, pool = LOADS[model]
        task = ServeTask(
            model=model,
            system=system,
            source=self.source,
            steps=self.steps,
            every=self.every,
            concurrency=concurrency,
            pool=pool,
            max_context=min(context, model_preset(model).max_context),
            variant=self.variant,
            host=self.host,
            options=tuple(sorted(options.items())),
        )
        return attrs.evolve(task, **own)

    def lifecycle(self, model: str, context: int, **policy: Any) -> LifecycleTask:
        """The same run of PATTON without any streams."""
        concurrency, pool = LOADS[model]
        task = LifecycleTask(
            model=model,
            source=self.source,
            steps=self.block_steps,
            concurrency=concurrency,
            pool=pool,
            max_context=min(context, model_preset(model).max_context),
        )
        return attrs.evolve(task, **policy)

    def as_json(self) -> dict[str, Any]:
        """What is written beside the figures."""
        found = attrs.asdict(self)
        found["version"] = __version__
        found["source"] = {
            "name": self.source.label,
            "digest": self.source.digest,
            "seed": self.source.seed,
        }
        as_read: dict[str, Any] = json.loads(json.dumps(found))
        return as_read


PRESETS: Final[Mapping[str, Mapping[str, Any]]] = {
    "quick": {
        "steps": 3_000,
        "every": 150,
        "pools": (32, 56, 64, 80),
        "shares": (),
        "pair_sizes": (1, 4, 16, 64),
    },
    "full": {"steps": 10_000, "every": 100},
}


def preset(name: str, source: Source, **chosen: Any) -> Settings:
    """The settings of a preset, some replaced. Raises ConfigError."""
    if name not in PRESETS:
        accepted = "one of " + ", ".join(PRESETS)
        raise ConfigError("study", "preset", name, accepted)
    known = {**PRESETS[name], **chosen}
    if "every" not in chosen:  # of a short run at least one step is timed
        known["every"] = min(known["every"], max(1, known["steps"]))
    return Settings(name, source, **known)
