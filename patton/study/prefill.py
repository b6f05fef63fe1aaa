"""What prefill costs on a GPU: a roofline, without a GPU (Paper 5.3).

A step's prefill tokens form one batch. It reads all weights once and the cached context
of each of its requests, so few tokens cost as much as a hundred: costs of batches do
not add up. What a runtime's misses cost is therefore the difference of two totals, all
its prefill less the part that even an engine's own GPU cache would have computed.

Two departures from a measured run are small and on both sides of the difference: norms
and the output layer are left out, and attention counts at the linear layers' rate.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs
import numpy as np
from numpy.typing import NDArray

from patton.config import ModelConfig
from patton.errors import ModelConfigError

Counts = NDArray[np.int64]
Seconds = NDArray[np.float64]

BF16_BYTES = 2


@attrs.frozen
class Gpu:
    """Peak rates of a GPU, and the share of them that layers of a model reach.

    flops: BF16, dense, per second; bandwidth: bytes per second; watts: at full load, an
    upper bound of what prefill draws.
    """

    name: str
    flops: float
    bandwidth: float
    watts: float
    compute_efficiency: float
    bandwidth_efficiency: float


# Peaks: NVIDIA product brief PB-10577-001. Efficiencies: the profiles of Llama-shaped
# layers on an A100 published with Vidur (github.com/microsoft/vidur), in which 61 to
# 67 % of the peak are reached from 512 tokens up, and 9.7 ms for a single token.
A100_PCIE = Gpu("A100 80 GB PCIe", 312e12, 1.935e12, 300.0, 0.62, 0.70)

# A PCIe card lowers its clock under load; how far is not published.
A100_SLOW = attrs.evolve(A100_PCIE, name="at 50 % of peak", compute_efficiency=0.50)


@attrs.frozen
class LinearLayers:
    """Widths of a model; matrices: of its feed-forward part, 3 if that is gated."""

    hidden: int
    intermediate: int
    matrices: int

    def parameters(self, model: ModelConfig) -> int:
        """Weights of all layers: projections and feed-forward part."""
        heads = 2 * model.query_heads + 2 * model.kv_heads
        projections = self.hidden * heads * model.head_dim
        return model.layers * (
            projections + self.matrices * self.hidden * self.intermediate
        )


# From the models' public config.json.
LINEAR_LAYERS: Mapping[str, LinearLayers] = {
    "llama3-8b": LinearLayers(4096, 14_336, 3),
    "qwen3-8b": LinearLayers(4096, 12_288, 3),
    "opt-6.7b": LinearLayers(4096, 16_384, 2),
    "qwen1.5-7b": LinearLayers(4096, 11_008, 3),
}


@attrs.frozen(eq=False)
class Batches:
    """Prefill of a sequence of steps, all arrays [steps].

    tokens: computed; pairs: (token, position that it attends to), summed; context:
    positions whose Key and Value the step's requests read, each once a request.
    """

    tokens: Counts
    pairs: Counts
    context: Counts


@attrs.frozen
class PrefillModel:
    """Time and energy of prefill batches of one model on one GPU."""

    model: ModelConfig
    gpu: Gpu
    parameters: int

    @classmethod
    def of(cls, model: ModelConfig, gpu: Gpu = A100_PCIE) -> PrefillModel:
        """The roofline of a model. Raises ModelConfigError for unknown widths."""
        if model.name not in LINEAR_LAYERS:
            accepted = "one of " + ", ".join(LINEAR_LAYERS)
            raise ModelConfigError("prefill", "model", model.name, accepted)
        return cls(model, gpu, LINEAR_LAYERS[model.name].parameters(model))

    def seconds(self, batches: Batches) -> Seconds:
        """Time of each batch [steps]; a step without tokens takes none."""
        model, gpu = self.model, self.gpu
        width = model.query_heads * model.head_dim
        # A product and a sum for each weight and token, and for QK and SV each.
        flops = 2.0 * self.parameters * batches.tokens
        flops += 4.0 * model.layers * width * batches.pairs
        per_token = 2 * BF16_BYTES * model.layers * model.kv_heads * model.head_dim
        moved = BF16_BYTES * self.parameters + float(per_token) * batches.context
        time = np.maximum(
            flops / (gpu.compute_efficiency * gpu.flops),
            moved / (gpu.bandwidth_efficiency * gpu.bandwidth),
        )
        return np.where(batches.tokens > 0, time, 0.0)

    def total(self, batches: Batches) -> float:
        """Seconds of all batches."""
        return float(self.seconds(batches).sum())

    def joules(self, seconds: float) -> float:
        """Energy of so many seconds, an upper bound."""
        return self.gpu.watts * seconds
