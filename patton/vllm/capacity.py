"""The capacity gate: vLLM waits or preempts when PIM has no room for a block.

A cache manager of our own, chosen by a spec of our own, sees every hit, every fresh
block and every block given up at the moment it happens, and tells the runtime. Before
blocks are taken it asks for room; a refusal is a demand for more blocks than are free,
which vLLM answers by its own rules. Where nobody attached a lifecycle the managers are
vLLM's own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

from vllm.v1.core.kv_cache_utils import KVCacheBlock
from vllm.v1.core.single_type_kv_cache_manager import (
    FullAttentionManager,
    SingleTypeKVCacheManager,
    SlidingWindowManager,
)
from vllm.v1.kv_cache_interface import (
    AttentionSpec,
    FullAttentionSpec,
    SlidingWindowSpec,
)
from vllm.v1.kv_cache_spec_registry import KVCacheSpecRegistry

from patton.vllm.lifecycle import Lifecycle


@dataclass(frozen=True, kw_only=True)
class PattonSpec(FullAttentionSpec):
    """Full attention whose blocks are placed in PIM."""


@dataclass(frozen=True, kw_only=True)
class PattonWindowSpec(SlidingWindowSpec):
    """Sliding window attention whose blocks are placed in PIM."""


def customize(spec: AttentionSpec) -> AttentionSpec:
    """The gated spec of a layer (`AttentionBackend.customize_spec`).

    A spec of another kind stays as it is: the connector refuses it, with a reason.
    """
    gated = {FullAttentionSpec: PattonSpec, SlidingWindowSpec: PattonWindowSpec}
    kind = gated.get(type(spec))
    if kind is None:
        return spec
    values = {f.name: getattr(spec, f.name) for f in fields(spec) if f.init}
    return kind(**values)


def _ids(blocks: Sequence[KVCacheBlock]) -> list[int]:
    return [block.block_id for block in blocks if not block.is_null]


class _Gated(SingleTypeKVCacheManager):
    """Tells of blocks as they are taken and given up, and asks for room before.

    lifecycle: attached by the connector, which is created before the managers but may
    speak to them only afterwards.
    """

    lifecycle: Lifecycle | None = None

    # A running request that needs no block is by far the most frequent case, and the
    # same in every manager: it is answered first.

    def get_num_blocks_to_allocate(
        self,
        request_id: str,
        num_tokens: int,
        new_computed_blocks: Sequence[KVCacheBlock],
        total_computed_tokens: int,
        num_local_computed_tokens: int,
        num_tokens_main_model: int,
        apply_admission_cap: bool = False,
        prefill_end: int = 0,
    ) -> int:
        """Blocks to take, or more than there are if PIM has no room for them."""
        if (
            request_id in self.num_cached_block
            and num_tokens <= len(self.req_to_blocks[request_id]) * self.block_size
        ):
            return 0
        count: int = super().get_num_blocks_to_allocate(
            request_id,
            num_tokens,
            new_computed_blocks,
            total_computed_tokens,
            num_local_computed_tokens,
            num_tokens_main_model,
            apply_admission_cap,
            prefill_end,
        )
        if self.lifecycle is None or count > self.block_pool.get_num_free_blocks():
            return count
        fresh = count - self._get_num_evictable_blocks(new_computed_blocks)
        if fresh <= 0 or self._has_room(
            self.lifecycle,
            request_id,
            fresh,
            _ids(new_computed_blocks),
            only_asked=apply_admission_cap,
        ):
            return count
        return int(self.block_pool.num_gpu_blocks) + 1

    def _has_room(
        self,
        lifecycle: Lifecycle,
        request: str,
        fresh: int,
        hits: list[int],
        *,
        only_asked: bool,
    ) -> bool:
        """Whether PIM has room for `fresh` blocks; evicts for it unless only asked.

        A request alone must be able to go on. Were its prefix hits scattered over so
        many pairs that the rest has no room, it would be preempted, hit the same blocks
        and be refused for ever; without the cache it fits, since the longest context
        fits the device.
        """
        if lifecycle.make_room(request, 0 if only_asked else fresh, fresh, hits):
            return True
        if not any(t for name, t in self.req_to_blocks.items() if name != request):
            lifecycle.forget_cache()
        return False

    def add_local_computed_blocks(
        self, request_id: str, *arguments: Any, **options: Any
    ) -> None:
        """Take the blocks of a prefix hit."""
        super().add_local_computed_blocks(request_id, *arguments, **options)
        if self.lifecycle is not None:
            table = self.req_to_blocks[request_id]
            hits = _ids(table)
            self.lifecycle.share(request_id, hits, len(table) - len(hits))

    def allocate_new_blocks(
        self, request_id: str, num_tokens: int, num_tokens_main_model: int
    ) -> list[KVCacheBlock]:
        """Take fresh blocks."""
        room = len(self.req_to_blocks[request_id]) * self.block_size
        if num_tokens <= room and not self._partial_hit_reqs:
            return []
        new: list[KVCacheBlock] = super().allocate_new_blocks(
            request_id, num_tokens, num_tokens_main_model
        )
        if self.lifecycle is not None:
            self.lifecycle.bind(request_id, _ids(new))
        return new

    def _remove_blocks_in_range(
        self, request_id: str, first_block: int, last_block: int
    ) -> None:
        """Give up the blocks that a window has left."""
        held = self.req_to_blocks.get(request_id, ())[first_block:last_block]
        blocks = _ids(held) if self.lifecycle is not None else []
        super()._remove_blocks_in_range(request_id, first_block, last_block)
        if blocks and self.lifecycle is not None:
            self.lifecycle.release(request_id, blocks[::-1])

    def pop_blocks_for_free(self, request_id: str) -> list[KVCacheBlock]:
        """Give up all blocks: the request ended or is preempted."""
        if self.lifecycle is not None and request_id in self.lifecycle.requests:
            self.lifecycle.finish(request_id)
        blocks: list[KVCacheBlock] = super().pop_blocks_for_free(request_id)
        return blocks


class PattonManager(_Gated, FullAttentionManager):
    """vLLM's manager of full attention, gated."""


class PattonWindowManager(_Gated, SlidingWindowManager):
    """vLLM's manager of sliding window attention, gated."""


def register() -> None:
    """Make vLLM choose the gated managers; may be called again."""
    # vLLM's own first: if ours were the first of all, it would leave its own out.
    KVCacheSpecRegistry.check_kv_cache_spec_registry({})
    KVCacheSpecRegistry.register(PattonSpec, PattonManager, FullAttentionSpec)
    KVCacheSpecRegistry.register(
        PattonWindowSpec, PattonWindowManager, SlidingWindowSpec
    )
