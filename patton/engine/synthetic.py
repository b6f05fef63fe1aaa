"""Conversations with ShareGPT's lengths from a seed: the workload that is always there.

Lengths are drawn from log-normal fits, cut at the 99th percentile (without the cut a
few giants would rule a short run). Some conversations begin with a system prompt that
others have, too, so that prefixes are shared across conversations and, when several of
them begin together, in the very step that computes the prefix.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from random import Random

import attrs

from patton.arguments import expect, expect_fields
from patton.engine.conversations import Conversation, Turn
from patton.engine.formats import Reading
from patton.engine.serving import LoopSettings
from patton.engine.text import is_count
from patton.engine.workloads import Workload
from patton.errors import ConfigError


@attrs.frozen
class LogNormal:
    """Mean and deviation of the natural logarithm of a count, and its largest value."""

    mean: float
    deviation: float
    most: int

    def draw(self, random: Random, scale: float = 1.0) -> int:
        """One count of at least 1, `scale` times as large as drawn."""
        value = min(math.exp(random.gauss(self.mean, self.deviation)), self.most)
        return max(1, round(scale * value))


# Fitted to the 9,435 conversations (61,237 turns) of the first 18.8 % of
# ShareGPT_V3_unfiltered_cleaned_split.json, chunks re-joined, Llama-3 tokens of plain
# text: mean and deviation of the natural logarithm, and the 99th percentile.
TURNS = LogNormal(1.176, 1.069, 56)
FIRST_MESSAGE = LogNormal(3.493, 1.514, 2159)
LATER_MESSAGE = LogNormal(3.000, 1.352, 1106)
FIRST_ANSWER = LogNormal(5.176, 1.123, 769)
LATER_ANSWER = LogNormal(5.295, 1.045, 769)


@attrs.frozen
class SyntheticSettings:
    """What is drawn.

    seed; scale: factor on all lengths; system_prompts: how many there are, of
    system_tokens each; system_share: part of the conversations that begin with one;
    conversations: how many, None for no end.
    """

    seed: int = 0
    scale: float = 1.0
    system_prompts: int = 4
    system_tokens: int = 100
    system_share: float = 0.5
    conversations: int | None = None


def synthetic(settings: SyntheticSettings | None = None) -> Workload:
    """A workload that is the same for the same settings. Raises ConfigError."""
    expect("synthetic", "settings", settings, SyntheticSettings, type(None))
    chosen = settings or SyntheticSettings()
    _check(chosen)
    return Workload(
        name=f"synthetic, seed {chosen.seed}",
        format="synthetic",
        read=lambda reading: _conversations(chosen, reading),
    )


def _check(settings: SyntheticSettings) -> None:
    expect_fields(
        "synthetic",
        settings,
        seed=int,
        scale=(int, float),
        system_share=(int, float),
        conversations=(int, type(None)),
    )

    def refuse(name: str, accepted: str) -> None:
        raise ConfigError("synthetic", name, getattr(settings, name), accepted)

    if not 0 < settings.scale <= 1000:
        refuse("scale", "a number above 0, up to 1000")
    if not 0 <= settings.system_share <= 1:
        refuse("system_share", "a number from 0 to 1")
    for name, least in (("system_prompts", 1), ("system_tokens", 1)):
        if not is_count(getattr(settings, name), least, 1 << 20):
            refuse(name, f"a whole number from {least} to {1 << 20}")
    if settings.conversations is not None and settings.conversations < 1:
        refuse("conversations", "at least 1, or None for no end")


def _conversations(
    settings: SyntheticSettings, reading: Reading
) -> Iterator[Conversation]:
    random = Random(settings.seed)
    while reading.records != settings.conversations:
        reading.records += 1
        yield _conversation(settings, random)


def _conversation(settings: SyntheticSettings, random: Random) -> Conversation:
    prefix = random.randrange(settings.system_prompts)
    shared = random.random() < settings.system_share
    history = prefix_tokens = settings.system_tokens if shared else 0
    turns = []
    for turn in range(TURNS.draw(random)):
        message, answer = (
            (LATER_MESSAGE, LATER_ANSWER) if turn else (FIRST_MESSAGE, FIRST_ANSWER)
        )
        prompt = history + message.draw(random, settings.scale)
        output = answer.draw(random, settings.scale)
        turns.append(Turn(prompt, output))
        history = prompt + output
    return Conversation(tuple(turns), prefix, prefix_tokens)


@attrs.frozen
class Scenario:
    """A workload, how to serve it, and for how many steps."""

    workload: Workload
    loop: LoopSettings
    steps: int


def default_scenario(seed: int = 0) -> Scenario:
    """What is served when nothing is said: everything happens, on a small device.

    Lengths are halved and contexts end at 1,024 tokens, for some 480 blocks in 30 pairs
    (`tiny` model and device). Twenty requests run at once and hold about as much as the
    device has: it evicts all the time, preempts now and then, and yet some turns find
    their conversation cached and adopt its last pair. A budget of 192 tokens cuts long
    prompts; four conversations in five begin with one of two system prompts, so that
    the very first step shares blocks which it fills.
    """
    drawn = SyntheticSettings(
        seed=seed, scale=0.5, system_prompts=2, system_tokens=100, system_share=0.8
    )
    loop = LoopSettings(concurrency=20, pool=24, max_context=1024, token_budget=192)
    return Scenario(synthetic(drawn), loop, steps=300)
