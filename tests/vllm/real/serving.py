"""vLLM's own scheduler, cache and block pool, served without a model or a device.

Conversations take turns; tokens are sampled at random. Everything else is vLLM's:
`Served` builds the scheduler as its engine would and drives it step by step.
"""

from __future__ import annotations

import json
import random
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import attrs
import torch
from vllm.config import (
    CacheConfig,
    DeviceConfig,
    KVTransferConfig,
    ModelConfig,
    ParallelConfig,
    SchedulerConfig,
    SpeculativeConfig,
    VllmConfig,
)
from vllm.sampling_params import SamplingParams
from vllm.utils.hashing import sha256
from vllm.v1.core.kv_cache_utils import get_request_block_hasher, init_none_hash
from vllm.v1.core.sched.async_scheduler import AsyncScheduler
from vllm.v1.core.sched.scheduler import Scheduler
from vllm.v1.kv_cache_interface import (
    FullAttentionSpec,
    KVCacheConfig,
    KVCacheGroupSpec,
    SlidingWindowSpec,
)
from vllm.v1.kv_cache_spec_registry import KVCacheSpecRegistry
from vllm.v1.outputs import DraftTokenIds, ModelRunnerOutput
from vllm.v1.request import Request, RequestStatus
from vllm.v1.structured_output import StructuredOutputManager

from patton.vllm import capacity

BLOCK = 16
VOCABULARY = 32_000
HEADS, QUERY_HEADS, HEAD_DIM = 1, 2, 128

CONNECTOR = {
    "kv_connector": "PattonConnector",
    "kv_connector_module_path": "patton.vllm.connector",
    "kv_role": "kv_both",
}

LLAMA = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": QUERY_HEADS * HEAD_DIM,
    "intermediate_size": 256,
    "num_hidden_layers": 1,
    "num_attention_heads": QUERY_HEADS,
    "num_key_value_heads": HEADS,
    "head_dim": HEAD_DIM,
    "max_position_embeddings": 8192,
    "vocab_size": VOCABULARY,
    "torch_dtype": "bfloat16",
}


@attrs.frozen(kw_only=True)
class Serving:
    """What is served, and how.

    usable: blocks of the pool, vLLM's null block not counted; prompt, answer: bounds of
    a turn's new tokens; flight: steps scheduled before the first of them is processed;
    drafts: tokens speculated per step; lookahead: slots beyond them; twins: probability
    that a turn is sampled twice; aborts, resubmits: probability per step; reset_every:
    steps. connector: PATTON's options, None for vLLM alone; gated: with its managers.
    """

    usable: int = 256
    running: int = 8
    open: int = 16
    budget: int = 256
    max_len: int = 1024
    prompt: tuple[int, int] = (16, 160)
    answer: tuple[int, int] = (8, 64)
    turns: tuple[int, int] = (2, 6)
    system_prompt: int = 32
    policy: str = "fcfs"
    flight: int = 1
    drafts: int = 0
    lookahead: int = 0
    window: int | None = None
    twins: float = 0.0
    aborts: float = 0.0
    resubmits: float = 0.0
    reset_every: int = 0
    watermark: float = 0.0
    seed: int = 1
    connector: dict[str, Any] | None = None
    gated: bool = False


def _spec(serving: Serving) -> Any:
    shape: dict[str, Any] = {
        "block_size": BLOCK,
        "num_kv_heads": HEADS,
        "head_size": HEAD_DIM,
        "dtype": torch.bfloat16,
    }
    spec = FullAttentionSpec(**shape)
    if serving.window is not None:
        spec = SlidingWindowSpec(**shape, sliding_window=serving.window)
    return capacity.customize(spec) if serving.gated else spec


def scheduler(serving: Serving, folder: Path) -> Scheduler:
    """A scheduler as vLLM's engine builds it; folder: for the model's config.json."""
    (folder / "config.json").write_text(json.dumps(LLAMA))
    options: dict[str, Any] = {}
    if serving.drafts:
        options["speculative_config"] = SpeculativeConfig(
            method="ngram",
            model="ngram",
            num_speculative_tokens=serving.drafts,
            prompt_lookup_max=4,
            prompt_lookup_min=1,
        )
    if serving.connector is not None:
        options["kv_transfer_config"] = KVTransferConfig(
            **CONNECTOR, kv_connector_extra_config=serving.connector
        )
    cache = CacheConfig(block_size=BLOCK, enable_prefix_caching=True)
    cache.num_gpu_blocks = serving.usable + 1
    config = VllmConfig(
        model_config=ModelConfig(
            model=str(folder),
            dtype="bfloat16",
            skip_tokenizer_init=True,
            max_model_len=serving.max_len,
        ),
        scheduler_config=SchedulerConfig(
            max_num_seqs=serving.running,
            max_num_batched_tokens=serving.budget,
            max_model_len=serving.max_len,
            enable_chunked_prefill=True,
            async_scheduling=serving.flight > 1,
            is_encoder_decoder=False,
            policy=serving.policy,
            watermark=serving.watermark,
        ),
        cache_config=cache,
        parallel_config=ParallelConfig(),
        device_config=DeviceConfig(device="cpu"),
        **options,
    )
    KVCacheSpecRegistry._ensure_registered(config)
    capacity.register()
    groups = [KVCacheGroupSpec(["layer"], _spec(serving))]
    built = (AsyncScheduler if serving.flight > 1 else Scheduler)(
        vllm_config=config,
        kv_cache_config=KVCacheConfig(
            num_blocks=serving.usable + 1, kv_cache_tensors=[], kv_cache_groups=groups
        ),
        block_size=BLOCK,
        log_stats=True,
        structured_output_manager=StructuredOutputManager(config),
    )
    built.num_lookahead_tokens += serving.lookahead
    return built


@attrs.define
class Chats:
    """Open conversations, each with one turn (or two equal ones) under way."""

    serving: Serving
    random: random.Random
    hasher: Callable[[Request], Any]
    turns: dict[str, int] = attrs.field(factory=dict)
    told: dict[str, list[int]] = attrs.field(factory=dict)
    under_way: dict[str, tuple[str | None, Request]] = attrs.field(factory=dict)
    opened: int = 0
    asked: int = 0

    def open(self) -> Iterator[Request]:
        """The first turn of a new conversation."""
        self.opened += 1
        name = f"chat-{self.opened}"
        source = random.Random(7)
        self.told[name] = [
            source.randrange(VOCABULARY) for _ in range(self.serving.system_prompt)
        ]
        self.turns[name] = self.random.randint(*self.serving.turns)
        yield from self.turn(name)

    def turn(self, name: str) -> Iterator[Request]:
        """The next turn of a conversation, or the first of another."""
        new = self.random.randint(*self.serving.prompt)
        answer = self.random.randint(*self.serving.answer)
        prompt = self.told[name] + self.tokens(new)
        if not self.turns[name] or len(prompt) + answer >= self.serving.max_len:
            del self.told[name], self.turns[name]
            yield from self.open()
            return
        self.turns[name] -= 1
        self.told[name] = prompt
        yield self.ask(name, prompt, answer)
        if self.random.random() < self.serving.twins:
            yield self.ask(None, prompt, answer)

    def tokens(self, count: int) -> list[int]:
        return [self.random.randrange(VOCABULARY) for _ in range(count)]

    def ask(
        self, chat: str | None, prompt: list[int], answer: int, again: str | None = None
    ) -> Request:
        """A request of a conversation, or of none; again: an id used before."""
        self.asked += 1
        request = Request(
            request_id=again or f"request-{self.asked}",
            prompt_token_ids=list(prompt),
            sampling_params=SamplingParams(max_tokens=answer, ignore_eos=True),
            pooling_params=None,
            block_hasher=self.hasher,
            priority=self.random.randrange(4),
        )
        self.under_way[request.request_id] = (chat, request)
        return request

    def ended(self, request_id: str) -> Iterator[Request]:
        """What is asked next."""
        chat, request = self.under_way.pop(request_id)
        if chat is not None:
            self.told[chat] = list(request.all_token_ids)
            yield from self.turn(chat)


@attrs.define
class Served:
    """A scheduler and its clients. `steps` yields every output as it is scheduled."""

    serving: Serving
    scheduler: Any
    random: random.Random
    chats: Chats
    flight: deque[tuple[Any, set[str]]] = attrs.field(factory=deque)
    count: int = 0
    preemptions: int = 0

    @classmethod
    def of(cls, serving: Serving, folder: Path) -> Served:
        init_none_hash(sha256)
        built = scheduler(serving, folder)
        source = random.Random(serving.seed)
        chats = Chats(serving, source, get_request_block_hasher(BLOCK, sha256))
        served = cls(serving, built, source, chats)
        for _ in range(serving.open):
            served.add(chats.open())
        return served

    @property
    def pool(self) -> Any:
        return self.scheduler.kv_cache_manager.block_pool

    @property
    def tables(self) -> dict[str, Any]:
        """Request -> blocks, as the live manager has them."""
        managers = self.scheduler.kv_cache_manager.coordinator.single_type_managers
        tables: dict[str, Any] = managers[0].req_to_blocks
        return tables

    def add(self, requests: Iterator[Request]) -> None:
        for request in requests:
            self.scheduler.add_request(request)

    def steps(self, count: int) -> Iterator[Any]:
        """Schedule `count` steps; what was scheduled before is processed in between."""
        for _ in range(count):
            output = self.scheduler.schedule()
            self.preemptions += len(output.preempted_req_ids or ())
            requests = self.scheduler.requests
            sampled = {
                name
                for name in output.num_scheduled_tokens
                if not requests[name].is_prefill_chunk
            }
            self.flight.append((output, sampled))
            yield output
            if len(self.flight) >= self.serving.flight:
                self.process(*self.flight.popleft())
            self.count += 1
            self._disturb()
            ended = [n for n, (_, r) in self.chats.under_way.items() if r.is_finished()]
            for name in ended:
                self.add(self.chats.ended(name))

    def process(self, output: Any, sampled: set[str]) -> None:
        """The model has run: tokens are sampled, drafts accepted or not."""
        names = list(output.num_scheduled_tokens)
        tokens = [self._sample(output, name, sampled) for name in names]
        result = ModelRunnerOutput(
            req_ids=names,
            req_id_to_index={name: index for index, name in enumerate(names)},
            sampled_token_ids=tokens,
        )
        self.scheduler.update_from_output(output, result)
        if self.serving.drafts:
            going_on = [name for name in names if name in self.scheduler.requests]
            going_on = [name for name in going_on if name in sampled]
            drafts = [
                self.chats.tokens(self.random.randint(0, self.serving.drafts))
                for _ in going_on
            ]
            self.scheduler.update_draft_token_ids(DraftTokenIds(going_on, drafts))

    def _sample(self, output: Any, name: str, sampled: set[str]) -> list[int]:
        if name not in sampled:
            return []
        accepted = 0
        for _ in output.scheduled_spec_decode_tokens.get(name, ()):
            if self.random.random() > 0.6:
                break
            accepted += 1
        return self.chats.tokens(1 + accepted)

    def _disturb(self) -> None:
        serving = self.serving
        if self.random.random() < serving.aborts:
            name = self.random.choice(list(self.chats.under_way))
            self.scheduler.finish_requests(name, RequestStatus.FINISHED_ABORTED)
        if self.random.random() < serving.resubmits:
            name = self.random.choice(list(self.scheduler.requests))
            chat, request = self.chats.under_way[name]
            self.scheduler.finish_requests(name, RequestStatus.FINISHED_ABORTED)
            prompt = list(request.prompt_token_ids)
            again = self.chats.ask(chat, prompt, request.max_tokens, name)
            self.scheduler.add_request(again)
        if serving.reset_every and self.count % serving.reset_every == 0:
            self.scheduler.reset_prefix_cache(
                reset_running_requests=True,
                reset_connector=serving.connector is not None,
            )
