"""The roofline of prefill against numbers worked out by hand, and measured ones."""

from __future__ import annotations

import numpy as np
import pytest

from patton.config import model_preset
from patton.errors import ModelConfigError
from patton.study.prefill import (
    A100_PCIE,
    A100_SLOW,
    LINEAR_LAYERS,
    Batches,
    PrefillModel,
)


def batch(tokens: int, start: int = 0) -> Batches:
    """One request that computes positions [start, start + tokens)."""
    end = start + tokens
    pairs = end * (end + 1) // 2 - start * (start + 1) // 2
    columns = (tokens, pairs, end if tokens else 0)
    return Batches(*(np.array([value]) for value in columns))


def test_parameters_of_the_layers() -> None:
    """Llama3-8B has 218,103,808 a layer: 13.96 GB of weights in BF16."""
    model = PrefillModel.of(model_preset("llama3-8b"))

    assert 32 * 218_103_808 == model.parameters
    assert 13.96e9 == pytest.approx(2 * model.parameters, rel=1e-3)


@pytest.mark.parametrize(
    ("name", "billions"),
    [("llama3-8b", 8.0), ("qwen3-8b", 8.2), ("opt-6.7b", 6.7), ("qwen1.5-7b", 7.7)],
)
def test_with_embeddings_models_have_the_size_of_their_name(
    name: str, billions: float
) -> None:
    """Layers, and an embedding and an output matrix (OPT: one for both)."""
    vocabulary = {"llama3-8b": 128_256, "opt-6.7b": 50_272}.get(name, 151_936)
    matrices = 1 if name == "opt-6.7b" else 2
    hidden = LINEAR_LAYERS[name].hidden
    total = PrefillModel.of(model_preset(name)).parameters
    total += matrices * vocabulary * hidden

    assert billions == pytest.approx(total / 1e9, abs=0.1)


def test_few_tokens_take_the_time_of_reading_all_weights() -> None:
    """13.96 GB at 70 % of 1,935 GB/s: 10.3 ms for one token as for a hundred."""
    model = PrefillModel.of(model_preset("llama3-8b"))
    one, hundred = model.total(batch(1)), model.total(batch(100))

    assert 10.3e-3 == pytest.approx(one, rel=0.01)
    assert one == pytest.approx(hundred, rel=0.01)


def test_many_tokens_take_the_time_of_their_products() -> None:
    """2,048 tokens: 2 x 6.98e9 x 2,048 FLOPs and causal attention, at 62 % of peak."""
    model = PrefillModel.of(model_preset("llama3-8b"))
    linear = 2 * 6.979e9 * 2048
    attention = 4 * 32 * 4096 * (2048 * 2049 / 2)

    assert (linear + attention) / (0.62 * 312e12) == pytest.approx(
        model.total(batch(2048)), rel=1e-3
    )


@pytest.mark.parametrize(
    ("name", "tokens", "milliseconds"),
    [
        ("llama3-8b", 1, 9.70),
        ("llama3-8b", 1024, 75.14),
        ("llama3-8b", 4096, 273.57),
        ("qwen1.5-7b", 1, 9.28),
        ("qwen1.5-7b", 1024, 67.94),
        ("qwen1.5-7b", 4096, 258.38),
    ],
)
def test_measured_times_of_linear_layers_are_within_an_eighth(
    name: str, tokens: int, milliseconds: float
) -> None:
    """Profiles of an SXM card (Vidur, compute/a100, mlp.csv), without attention."""
    known = PrefillModel.of(model_preset(name))
    alone = Batches(*(np.array([value]) for value in (tokens, 0, 0)))

    assert milliseconds == pytest.approx(1e3 * known.total(alone), rel=0.125)


def test_the_cost_of_a_difference_is_not_the_difference_of_costs() -> None:
    """200 tokens, of which 100 are required: the weights are read once in both."""
    model = PrefillModel.of(model_preset("llama3-8b"))
    induced = model.total(batch(200)) - model.total(batch(100, start=100))

    assert induced < 0.5 * model.total(batch(100))


def test_a_step_without_prefill_costs_nothing() -> None:
    """No batch, no weights."""
    model = PrefillModel.of(model_preset("opt-6.7b"))

    assert 0.0 == model.total(batch(0))


def test_energy_and_the_slower_card() -> None:
    """300 W; at 50 % of the peak products take 1.24 times as long."""
    model = model_preset("llama3-8b")
    fast, slow = (PrefillModel.of(model, gpu) for gpu in (A100_PCIE, A100_SLOW))

    assert 0.62 / 0.50 == pytest.approx(
        slow.total(batch(4096)) / fast.total(batch(4096))
    )
    assert 600.0 == fast.joules(2.0)


def test_a_model_of_unknown_widths_is_refused() -> None:
    """Its prefill cannot be priced."""
    with pytest.raises(ModelConfigError, match="llama3-8b, qwen3-8b"):
        PrefillModel.of(model_preset("tiny"))
