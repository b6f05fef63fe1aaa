"""vLLM's own Scheduler, KVCacheManager and BlockPool, without a model to run.

Requests have token numbers only, and what a step samples is said by the caller.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch
from vllm.config import (
    CacheConfig,
    DeviceConfig,
    ModelConfig,
    ParallelConfig,
    SchedulerConfig,
    VllmConfig,
)
from vllm.sampling_params import SamplingParams
from vllm.utils.hashing import sha256
from vllm.v1.core.kv_cache_utils import get_request_block_hasher, init_none_hash
from vllm.v1.core.sched.scheduler import Scheduler
from vllm.v1.core.single_type_kv_cache_manager import register_all_kvcache_specs
from vllm.v1.kv_cache_interface import (
    FullAttentionSpec,
    KVCacheConfig,
    KVCacheGroupSpec,
)
from vllm.v1.outputs import ModelRunnerOutput
from vllm.v1.request import Request
from vllm.v1.structured_output import StructuredOutputManager

MODEL = Path(__file__).parent / "model"
MAX_MODEL_LEN = 2048


def real_scheduler(
    blocks: int, *, block_tokens: int, concurrency: int, token_budget: int
) -> Any:
    """A Scheduler with `blocks` usable blocks, that is ids 1 to `blocks`."""
    model = ModelConfig(
        model=str(MODEL),
        dtype="float32",
        skip_tokenizer_init=True,
        max_model_len=MAX_MODEL_LEN,
    )
    scheduler = SchedulerConfig(
        max_num_seqs=concurrency,
        max_num_batched_tokens=token_budget,
        max_model_len=MAX_MODEL_LEN,
        enable_chunked_prefill=True,
        async_scheduling=False,
        is_encoder_decoder=False,
    )
    cache = CacheConfig(block_size=block_tokens, enable_prefix_caching=True)
    config = VllmConfig(
        model_config=model,
        scheduler_config=scheduler,
        cache_config=cache,
        parallel_config=ParallelConfig(),
        device_config=DeviceConfig(device="cpu"),
    )
    spec = FullAttentionSpec(
        block_size=block_tokens, num_kv_heads=2, head_size=64, dtype=torch.float32
    )
    pool = KVCacheConfig(
        num_blocks=blocks + 1,  # and the null block
        kv_cache_tensors=[],
        kv_cache_groups=[KVCacheGroupSpec(["layer"], spec)],
    )
    cache.num_gpu_blocks = blocks + 1
    register_all_kvcache_specs(config)
    return Scheduler(
        vllm_config=config,
        kv_cache_config=pool,
        block_size=block_tokens,
        structured_output_manager=StructuredOutputManager(config),
    )


def block_hasher(block_tokens: int) -> Any:
    """Hashes blocks as vLLM does by default."""
    init_none_hash(sha256)
    return get_request_block_hasher(block_tokens, sha256)


def real_request(
    name: str, prompt: Iterable[int], output_tokens: int, hasher: Any
) -> Any:
    """A request that generates exactly `output_tokens` tokens."""
    sampling = SamplingParams(
        max_tokens=output_tokens, ignore_eos=True, temperature=0.0
    )
    return Request(
        request_id=name,
        prompt_token_ids=list(prompt),
        sampling_params=sampling,
        pooling_params=None,
        block_hasher=hasher,
    )


def sampled_output(scheduled: Iterable[str], tokens: dict[str, int]) -> Any:
    """What the model runner returns: a token of each request that has one to sample."""
    names = list(scheduled)
    return ModelRunnerOutput(
        req_ids=names,
        req_id_to_index={name: index for index, name in enumerate(names)},
        sampled_token_ids=[[tokens[n]] if n in tokens else [] for n in names],
    )
