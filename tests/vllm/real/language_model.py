"""A small random Llama, served by vLLM with PATTON and without.

The weights are drawn so that a device with elements of 16 bits can be compared token by
token. Attention adds about a third to what the residual stream holds, so that rounding
hardly shows in the logits, while tokens read from a wrong place do; and of 20 seeds one
was taken with which the two best tokens are never close (`Answers.margin`).
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import attrs
import torch
from vllm import LLM, SamplingParams

from patton.vllm.platform import define_operations

MODEL, WINDOWED = (Path(__file__).parent / name for name in ("model", "model_window"))
WEIGHTS_SEED = 8
ATTENTION_SHARE = 0.3
VOCABULARY = 512

CHATS, TURNS, ANSWER = 8, 3, 32
REQUESTS = CHATS * TURNS
FIRST_PROMPT, NEXT_PROMPT = (60, 140), 20


@attrs.frozen
class Setting:
    """How vLLM serves. blocks: of its pool, the null block included.

    model: a Llama, or a Mistral whose tokens see the last 48.
    """

    model: Path = MODEL
    caching: bool = True
    blocks: int = 200
    budget: int = 1024


@attrs.define
class Answers:
    """tokens: of each answer; lead: of each token, its logit over the next best's."""

    tokens: list[list[int]] = attrs.field(factory=list)
    lead: list[list[float]] = attrs.field(factory=list)
    cached: int = 0

    @property
    def margin(self) -> float:
        """The least lead of all tokens: how far logits may be off, the two together."""
        return min(min(lead) for lead in self.lead)

    def differing(self, other: Answers) -> int:
        """How many answers are not the same."""
        pairs = zip(self.tokens, other.tokens, strict=True)
        return sum(mine != its for mine, its in pairs)

    def deviation(self, other: Answers) -> float:
        """How far apart the leads of the same tokens are at most."""
        mine = [lead for leads in self.lead for lead in leads]
        its = [lead for leads in other.lead for lead in leads]
        return max(abs(a - b) for a, b in zip(mine, its, strict=True))


@contextmanager
def served(setting: Setting, patton: dict[str, Any] | None) -> Iterator[Any]:
    """An LLM with weights of WEIGHTS_SEED; patton: the connector's options.

    Without PATTON it attends with vLLM's own FlexAttention, in float32.
    """
    if patton is None:
        define_operations((_CACHE_WRITE,))
        attention: dict[str, Any] = {"attention_backend": "FLEX_ATTENTION"}
    else:
        attention = {
            "attention_backend": "PATTON",
            "kv_transfer_config": {
                "kv_connector": "PattonConnector",
                "kv_role": "kv_both",
                "kv_connector_extra_config": patton,
            },
        }
    llm = LLM(
        model=str(setting.model),
        load_format="dummy",
        dtype="float32",
        skip_tokenizer_init=True,
        enforce_eager=True,
        max_model_len=512,
        max_num_seqs=CHATS,
        block_size=16,
        num_gpu_blocks_override=setting.blocks,
        max_num_batched_tokens=setting.budget,
        enable_prefix_caching=setting.caching,
        **attention,
    )
    try:
        llm.apply_model(_draw_weights)
        yield llm
    finally:
        llm.llm_engine.engine_core.shutdown()


def answers(llm: Any, turns: int) -> Answers:
    """What it answers to the greedy requests of CHATS conversations."""
    source = random.Random(0)
    said = [_tokens(source, source.randint(*FIRST_PROMPT)) for _ in range(CHATS)]
    sampling = SamplingParams(
        max_tokens=ANSWER,
        temperature=0.0,
        ignore_eos=True,
        detokenize=False,
        logprobs=2,
    )
    found = Answers()
    for _ in range(turns):
        prompts = [{"prompt_token_ids": tokens} for tokens in said]
        for chat, result in enumerate(llm.generate(prompts, sampling, use_tqdm=False)):
            answer = result.outputs[0]
            found.tokens.append(list(answer.token_ids))
            found.lead.append([_lead(choices) for choices in answer.logprobs])
            found.cached += result.num_cached_tokens
            said[chat] += [*answer.token_ids, *_tokens(source, NEXT_PROMPT)]
    return found


def scheduler_of(llm: Any) -> Any:
    """The scheduler of an LLM in this process."""
    return llm.llm_engine.engine_core.engine_core.scheduler


def _tokens(source: random.Random, count: int) -> list[int]:
    return [source.randrange(VOCABULARY) for _ in range(count)]


def _lead(choices: dict[int, Any]) -> float:
    best, second = sorted((c.logprob for c in choices.values()), reverse=True)[:2]
    return float(best - second)


def _draw_weights(model: torch.nn.Module) -> None:
    """Normal weights that keep the size of what passes, from a seed."""
    generator = torch.Generator().manual_seed(WEIGHTS_SEED)
    for name, weight in model.named_parameters():
        if "norm" in name:
            weight.data.fill_(1.0)
            continue
        weight.data.normal_(generator=generator)
        if "embed" not in name:
            weight.data /= weight.shape[-1] ** 0.5
        if "o_proj" in name or "down_proj" in name:
            weight.data *= ATTENTION_SHARE


def _write_cache(
    key: torch.Tensor,
    value: torch.Tensor,
    key_cache: torch.Tensor,
    value_cache: torch.Tensor,
    slots: torch.Tensor,
    *_: Any,
) -> None:
    """Keys and Values [tokens, heads, D] into caches [blocks, tokens, heads, D]."""
    used = slots >= 0
    block, offset = slots[used] // key_cache.shape[1], slots[used] % key_cache.shape[1]
    key_cache[block, offset] = key[: len(slots)][used]
    value_cache[block, offset] = value[: len(slots)][used]


_CACHE_WRITE = (
    "_C_cache_ops",
    (
        "reshape_and_cache_flash(Tensor key, Tensor value, Tensor(a!) key_cache, "
        "Tensor(b!) value_cache, Tensor slots, str dtype, Tensor key_scale, "
        "Tensor value_scale) -> ()"
    ),
    _write_cache,
)
