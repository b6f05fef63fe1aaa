"""Conversations as a workload describes them: lengths and, where known, block ids."""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from patton.engine.tokens import (
    BlockIds,
    BlockIdTokens,
    ConversationTokens,
    TokenSource,
    prefix_base,
    private_base,
)


@attrs.frozen
class Turn:
    """One request of a conversation.

    prompt_tokens: of the whole prompt, with all history; output_tokens: of its answer;
    block_ids: what a block-id file says of the prompt, None where tokens are known by
    (conversation, position).
    """

    prompt_tokens: int
    output_tokens: int
    block_ids: BlockIds | None = None

    @property
    def tokens(self) -> int:
        """Tokens of prompt and answer."""
        return self.prompt_tokens + self.output_tokens


@attrs.frozen
class Conversation:
    """Turns in order; the first `prefix_tokens` tokens are those of prefix `prefix`."""

    turns: tuple[Turn, ...]
    prefix: int = 0
    prefix_tokens: int = 0

    def token_source(self, turn: int, number: int, reading: int) -> TokenSource:
        """Who the tokens of a turn are.

        number: the conversation's number in the run, reading: the pass over the file.
        What follows the ids of a block-id file belongs to the turn alone.
        """
        ids = self.turns[turn].block_ids
        if ids is not None:
            return BlockIdTokens(ids, private_base(number, turn), reading)
        base = private_base(number)
        return ConversationTokens(base, prefix_base(self.prefix), self.prefix_tokens)


@attrs.frozen
class ChatTemplate:
    """Tokens that a model's chat format adds to plain text.

    start: once, before all else; prompt: per user message; answer: at the end of each
    answer, generated; gap: between an answer and the next message.
    """

    start: int = 0
    prompt: int = 0
    answer: int = 0
    gap: int = 0


PLAIN = ChatTemplate()

# By tokenizer. Qwen speaks ChatML without a system prompt, and ends an answer with
# <|im_end|> and a line feed; Llama-3 begins with one BOS and ends answers with
# <|eot_id|>; OPT, which has GPT-2's tokenizer, adds a BOS and nothing else.
CHAT_TEMPLATES = {
    "gpt2": ChatTemplate(start=1),
    "qwen": ChatTemplate(prompt=8, answer=1, gap=1),
    "llama3": ChatTemplate(start=1, prompt=9, answer=1),
}


def chat(
    messages: Iterable[tuple[int, int]], template: ChatTemplate = PLAIN
) -> Conversation:
    """A conversation of (user, assistant) tokens, each prompt with all history.

    An empty message counts as one token, since a request must have one.
    """
    turns = []
    history = template.start
    for user, assistant in messages:
        prompt = history + template.prompt + max(1, user)
        output = max(1, assistant) + template.answer
        turns.append(Turn(prompt, output))
        history = prompt + output + template.gap
    return Conversation(tuple(turns))
