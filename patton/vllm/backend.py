"""The attention backend PATTON: Keys and Values live in PIM, decodes attend there.

Chosen by `--attention-backend PATTON` where the platform lets a user choose, together
with the connector. With check "data" every step's streams run on the reference device:
decodes attend on it, prefills on the host, behind what is read back of a cached prefix.
With "placement" streams are only counted (by the connector), and all rows attend on the
host over vLLM's own KV cache.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from vllm.distributed.kv_transfer import get_kv_transfer_group
from vllm.v1.attention.backend import (
    AttentionBackend,
    AttentionImpl,
    AttentionMetadata,
    AttentionMetadataBuilder,
    AttentionType,
    MultipleOf,
)
from vllm.v1.kv_cache_interface import KVCacheLayout

from patton.elements import encode
from patton.errors import ConfigError, EngineStateError
from patton.vllm import capacity
from patton.vllm.layer import Batch, Layer
from patton.vllm.plugin import CONNECTOR
from patton.vllm.worker import Worker

if TYPE_CHECKING:
    from vllm.config import VllmConfig
    from vllm.v1.attention.backend import CommonAttentionMetadata
    from vllm.v1.kv_cache_interface import AttentionSpec

SOURCE = "attention backend PATTON"
GRANULARITY = 16  # tokens; the least block that all banks and lanes share evenly


class PattonBackend(AttentionBackend):
    """What vLLM asks of a backend before it makes layers of it."""

    forward_includes_kv_cache_update = True
    supported_dtypes = [torch.float16, torch.bfloat16, torch.float32]  # noqa: RUF012

    @staticmethod
    def get_supported_kernel_block_sizes(kv_cache_spec: Any = None) -> list[Any]:
        """Multiples of 16 tokens."""
        return [MultipleOf(GRANULARITY)]

    @staticmethod
    def get_name() -> str:
        """As it is registered by `patton.vllm.plugin`."""
        return "PATTON"

    @staticmethod
    def get_impl_cls() -> type[PattonAttention]:
        """One for each layer."""
        return PattonAttention

    @staticmethod
    def get_builder_cls() -> type[PattonBuilder]:
        """One for all layers."""
        return PattonBuilder

    @classmethod
    def customize_spec(cls, spec: AttentionSpec) -> AttentionSpec:
        """The spec whose manager is the capacity gate."""
        return capacity.customize(spec)

    @classmethod
    def supports_sliding_window(cls) -> bool:
        """Yes: blocks that a window has left are released."""
        return True

    @classmethod
    def supported_kv_cache_layouts(cls) -> tuple[KVCacheLayout, ...]:
        """Per layer [blocks, heads, block tokens, Key and Value]."""
        return (KVCacheLayout.LBHNC,)


@dataclass
class PattonBatch(AttentionMetadata):
    """The tokens of a step, request after request.

    first [requests + 1]: their rows; lengths [requests]: tokens that each has with
    those of the step; tables [requests, blocks]; slots [rows]; layers: name -> number.
    """

    first: list[int]
    lengths: list[int]
    tables: torch.Tensor
    slots: torch.Tensor
    layers: dict[str, int]

    @property
    def rows(self) -> int:
        """Rows of the batch that are tokens, and no padding."""
        return self.first[-1]

    def spans(self) -> list[tuple[int, int, int]]:
        """Of every request that has tokens: number, first row, row after the last."""
        ends = enumerate(zip(self.first, self.first[1:], strict=False))
        return [(number, start, end) for number, (start, end) in ends if end > start]


class PattonBuilder(AttentionMetadataBuilder[PattonBatch]):
    """Makes the batch of a step."""

    def __init__(
        self,
        kv_cache_spec: AttentionSpec,
        layer_names: list[str],
        vllm_config: VllmConfig,
        device: torch.device,
    ) -> None:
        super().__init__(kv_cache_spec, layer_names, vllm_config, device)
        transfer = vllm_config.kv_transfer_config
        if (name := transfer and transfer.kv_connector) != CONNECTOR:
            accepted = f"{CONNECTOR}, and no other beside it"
            raise ConfigError(SOURCE, "kv_connector", name, accepted)
        self.layers = {name: number for number, name in enumerate(layer_names)}

    def build(
        self,
        common_prefix_len: int,
        common_attn_metadata: CommonAttentionMetadata,
        fast_build: bool = False,
    ) -> PattonBatch:
        """The batch that these metadata describe."""
        common = common_attn_metadata
        return PattonBatch(
            common.query_start_loc_cpu.tolist(),
            common.seq_lens.tolist(),
            common.block_table_tensor,
            common.slot_mapping,
            self.layers,
        )


class PattonAttention(AttentionImpl[PattonBatch]):
    """Attention of one layer."""

    def __init__(
        self,
        num_heads: int,
        head_size: int,
        scale: float,
        num_kv_heads: int | None = None,
        alibi_slopes: list[float] | None = None,
        sliding_window: int | None = None,
        kv_cache_dtype: str = "auto",
        logits_soft_cap: float | None = None,
        attn_type: str = AttentionType.DECODER,
        kv_sharing_target_layer_name: str | None = None,
        **others: Any,
    ) -> None:
        refused = {
            "alibi_slopes": alibi_slopes,
            "logits_soft_cap": logits_soft_cap,
            "kv_sharing_target_layer_name": kv_sharing_target_layer_name,
            **others,
        }
        for name, value in refused.items():
            if value is not None:
                raise ConfigError(SOURCE, name, value, "None")
        if attn_type != AttentionType.DECODER:
            raise ConfigError(SOURCE, "attn_type", attn_type, AttentionType.DECODER)
        if not np.isclose(scale, head_size**-0.5):
            accepted = f"1 / sqrt(head_size) = {head_size**-0.5}"
            raise ConfigError(SOURCE, "scale", scale, accepted)
        self.num_heads = num_heads
        self.head_size = head_size
        self.scale = scale
        self.num_kv_heads = num_kv_heads or num_heads
        self.window = sliding_window
        self.kv_cache_dtype = kv_cache_dtype
        self._pim: Layer | None = None

    def forward(
        self,
        layer: Any,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        kv_cache: torch.Tensor,
        attn_metadata: PattonBatch | None,
        output: torch.Tensor,
        output_scale: torch.Tensor | None = None,
        output_block_scale: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """Write Keys and Values, then attend; returns `output`, [rows, heads, D].

        query [rows, heads, D]; key, value [rows, KV heads, D]. Raises what the streams'
        execution raises.
        """
        if output_scale is not None or output_block_scale is not None:
            raise ConfigError(SOURCE, "output_scale", "a quantised output", "None")
        if attn_metadata is None:  # a run that measures memory
            return output.fill_(0)
        batch, rows = attn_metadata, attn_metadata.rows
        query = query[:rows].view(rows, self.num_heads, self.head_size)
        key = key[:rows].view(rows, self.num_kv_heads, self.head_size)
        value = value[:rows].view(rows, self.num_kv_heads, self.head_size)
        attended = output[:rows].view_as(query)
        worker = get_kv_transfer_group().worker
        if worker.executor is None:
            self._on_host(batch, query, key, value, kv_cache, attended)
        else:
            if self._pim is None:
                number = batch.layers[layer.layer_name]
                self._pim = Layer.of(worker.executor, worker.layout, number)
            self._in_pim(self._pim, worker, batch, query, key, value, attended)
        return output

    def _in_pim(
        self,
        pim: Layer,
        worker: Worker,
        batch: PattonBatch,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        output: torch.Tensor,
    ) -> None:
        """Decodes on the device, prefills behind what it gives back."""
        element = worker.layout.device.element

        def bits(tensor: torch.Tensor) -> Any:
            return encode(tensor.detach().float().cpu().numpy(), element)

        slots = batch.slots[: batch.rows].cpu().numpy()
        grouped = query.reshape(batch.rows, self.num_kv_heads, -1, self.head_size)
        assert worker.current is not None
        done = pim.run(
            worker.current, Batch(slots, bits(key), bits(value), bits(grouped))
        )
        decodes = torch.from_numpy(done.rows).to(output.device)
        found = torch.from_numpy(done.outputs).reshape(-1, *output.shape[1:])
        output[decodes] = found.to(output)
        attended = set(done.rows.tolist())
        prefixes = {prefix.row: prefix for prefix in done.prefixes}
        for number, start, end in batch.spans():
            if start in attended:
                continue
            before = batch.lengths[number] - (end - start)
            keys, values = key[start:end].float(), value[start:end].float()
            if seen := before if self.window is None else min(before, self.window - 1):
                prefix = prefixes.get(start)
                if prefix is None or len(prefix.keys) != seen:
                    problem = f"row {start} sees {seen} tokens before it"
                    raise EngineStateError("prefill", f"{problem}, not read back")
                keys = torch.cat([torch.from_numpy(prefix.keys).to(keys), keys])
                values = torch.cat([torch.from_numpy(prefix.values).to(values), values])
            output[start:end] = self._attend(query[start:end], keys, values).to(output)

    def _on_host(
        self,
        batch: PattonBatch,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        kv_cache: torch.Tensor,
        output: torch.Tensor,
    ) -> None:
        """All rows over vLLM's KV cache [blocks, KV heads, block tokens, 2 * D]."""
        block_tokens = kv_cache.shape[2]
        slots = batch.slots[: batch.rows]
        cells = slots // block_tokens, slots % block_tokens
        cache = kv_cache.transpose(1, 2)
        cache[cells] = torch.cat([key, value], dim=-1).to(cache)
        for number, start, end in batch.spans():
            length = batch.lengths[number]
            blocks = batch.tables[number, : -(-length // block_tokens)].long()
            both = cache[blocks].reshape(-1, *cache.shape[2:])[:length].float()
            keys, values = both.split(self.head_size, dim=-1)
            output[start:end] = self._attend(query[start:end], keys, values).to(output)

    def _attend(
        self, query: torch.Tensor, keys: torch.Tensor, values: torch.Tensor
    ) -> torch.Tensor:
        """Causal attention in float32 of the last tokens of a sequence.

        query [q, heads, D]; keys, values [tokens, KV heads, D], the last of them those
        of the queries. Returns [q, heads, D].
        """
        count, tokens = len(query), len(keys)
        last = torch.arange(tokens - count, tokens, device=query.device)[:, None]
        position = torch.arange(tokens, device=query.device)
        seen = position <= last
        if self.window is not None:
            seen &= position > last - self.window
        attended = torch.nn.functional.scaled_dot_product_attention(
            query.float().transpose(0, 1),
            keys.transpose(0, 1),
            values.transpose(0, 1),
            attn_mask=seen,
            scale=self.scale,
            enable_gqa=True,
        )
        return attended.transpose(0, 1)
