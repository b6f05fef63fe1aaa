"""PATTON: a serving engine's KV blocks in processing-in-memory DRAM.

`Layout` says how a model divides a device, `Runtime` where every block lies,
`generate_step` what the device has to do. What executes the streams is in
`patton.device`, a vLLM-like engine in `patton.engine`.
"""

from __future__ import annotations

from patton.attention import LayerResult, run_layer
from patton.commands import Command, CommandStream
from patton.config import (
    DeviceConfig,
    ElementType,
    ModelConfig,
    device_preset,
    model_from_config,
    model_preset,
)
from patton.errors import PattonError, PlacementError
from patton.events import Recorder, replay
from patton.generate import StepStreams, generate_step
from patton.layout import Layout
from patton.runtime import Runtime
from patton.steps import PlacedStep, Placement, Step, StepPlan

__version__ = "0.1.0"

__all__ = [
    "Command",
    "CommandStream",
    "DeviceConfig",
    "ElementType",
    "LayerResult",
    "Layout",
    "ModelConfig",
    "PattonError",
    "PlacedStep",
    "Placement",
    "PlacementError",
    "Recorder",
    "Runtime",
    "Step",
    "StepPlan",
    "StepStreams",
    "__version__",
    "device_preset",
    "generate_step",
    "model_from_config",
    "model_preset",
    "replay",
    "run_layer",
]
