"""Requests, and the record of what one step did with them."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from patton.engine.tokens import TokenSource
from patton.errors import ConfigError


@attrs.define(eq=False)
class Request:
    """One turn of a conversation, from prompt to last generated token.

    known: tokens that are prompt or sampled by now; computed: leading tokens that were
    hit or that completed steps have written; blocks: its table; hashed: full blocks at
    its head that are, or were, in the cache; keys: of all full blocks it will have.
    """

    id: int
    prompt_tokens: int
    output_tokens: int
    tokens: TokenSource
    keys: Sequence[int]
    conversation: int
    turn: int
    known: int
    computed: int = 0
    blocks: list[int] = attrs.field(factory=list)
    hashed: int = 0
    preemptions: int = 0

    @classmethod
    def of(
        cls,
        id: int,  # noqa: A002  (a request's id is called so everywhere)
        prompt_tokens: int,
        output_tokens: int,
        tokens: TokenSource,
        *,
        block_tokens: int = 16,
        conversation: int = 0,
        turn: int = 0,
    ) -> Request:
        """A request that generates exactly `output_tokens` tokens.

        Raises ConfigError if prompt or output has no token.
        """
        if min(prompt_tokens, output_tokens) < 1:
            shape = f"{prompt_tokens} prompt and {output_tokens} output tokens"
            raise ConfigError("engine", f"request {id}", shape, "at least 1 of each")
        full = (prompt_tokens + output_tokens - 1) // block_tokens
        keys = tokens.block_keys(block_tokens, full)
        return cls(
            id=id,
            prompt_tokens=prompt_tokens,
            output_tokens=output_tokens,
            tokens=tokens,
            keys=keys,
            conversation=conversation,
            turn=turn,
            known=prompt_tokens,
        )

    @property
    def final_tokens(self) -> int:
        """Tokens of prompt and output together."""
        return self.prompt_tokens + self.output_tokens

    @property
    def is_done(self) -> bool:
        """Its last token is sampled."""
        return self.known == self.final_tokens


@attrs.frozen
class Admission:
    """A request that began to run: `hit_tokens` of its `known_tokens` were cached."""

    request: int
    known_tokens: int
    hit_tokens: int
    readmitted: bool


@attrs.define(eq=False)
class StepRecord:
    """What one step did, in the order in which a placement must see it.

    preempted: requests that gave up their blocks; evicted: ids whose content went;
    grants: (request, shared blocks, new blocks) in the engine's order; scheduled:
    (request, first position, tokens, whether it is a decode) in that order too. A
    decode computes just the token that was sampled last; all else is prefill. chunked:
    prefills that the budget cut short; same_step_shares: shared blocks that this step
    fills; finished: requests that ended with it (filled in by `Scheduler.complete`).
    """

    step: int
    preempted: list[int] = attrs.field(factory=list)
    evicted: list[int] = attrs.field(factory=list)
    grants: list[tuple[int, list[int], list[int]]] = attrs.field(factory=list)
    scheduled: list[tuple[Request, int, int, bool]] = attrs.field(factory=list)
    admissions: list[Admission] = attrs.field(factory=list)
    chunked: int = 0
    same_step_shares: int = 0
    finished: list[Request] = attrs.field(factory=list)
