"""The KV connector: the scheduler's half follows vLLM's blocks, the worker's places.

No Key or Value ever moves through it: it loads nothing and never delays a request or a
free. Used as `kv_connector="PattonConnector"`, with `kv_connector_module_path=
"patton.vllm.connector"` where the plug-in is not loaded.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from vllm.distributed.kv_transfer.kv_connector.v1.base import (
    KVConnectorBase_V1,
    KVConnectorMetadata,
    KVConnectorRole,
    SupportsHMA,
)

from patton.errors import ConfigError
from patton.runtime import Runtime
from patton.vllm import capacity
from patton.vllm.adapter import Adapter
from patton.vllm.geometry import layout_of, window_of
from patton.vllm.lifecycle import Event, Lifecycle
from patton.vllm.options import SOURCE, Options
from patton.vllm.watch import NOTHING, Watch, on_verified
from patton.vllm.worker import Worker

if TYPE_CHECKING:
    from vllm.config import VllmConfig
    from vllm.v1.core.kv_cache_manager import KVCacheManager
    from vllm.v1.core.sched.output import SchedulerOutput
    from vllm.v1.kv_cache_interface import KVCacheConfig


@dataclass
class PattonMetadata(KVConnectorMetadata):
    """A step on its way to the workers: its number and all that led to it."""

    step: int = 0
    events: list[Event] = field(default_factory=list)


class PattonConnector(KVConnectorBase_V1, SupportsHMA):
    """Keeps PATTON's runtime in step with vLLM.

    adapter: the scheduler's half, once it is bound to the cache manager; worker: the
    worker's half. Each is None in the other role.
    """

    def __init__(
        self,
        vllm_config: VllmConfig,
        role: KVConnectorRole,
        kv_cache_config: KVCacheConfig,
    ) -> None:
        super().__init__(vllm_config, role, kv_cache_config)
        capacity.register()
        settings = self._kv_transfer_config.kv_connector_extra_config
        self.options = Options.of(settings)
        _refuse_unknown_positions(vllm_config)
        self._runtime = _runtime(vllm_config, kv_cache_config, self.options, role)
        self.window = window_of(kv_cache_config)
        self.speculating = vllm_config.speculative_config is not None
        self.dropping = vllm_config.scheduler_config.policy == "priority"
        self.adapter: Adapter | None = None
        self.worker: Worker | None = None
        if role == KVConnectorRole.WORKER:
            self.worker = Worker.of(self._runtime, self.options, self.window)
        self._watch: Watch | None = None

    @property
    def runtime(self) -> Runtime:
        """The runtime of this role, with all that was written."""
        return self._runtime if self.adapter is None else self.adapter.lifecycle.runtime

    @property
    def requires_kv_delivery(self) -> bool:
        """Nobody waits for a Key or Value from here."""
        return False

    # --- scheduler ----------------------------------------------------------------

    def bind_kv_cache_manager(self, kv_cache_manager: KVCacheManager) -> None:
        """Follow the blocks of this manager, through the gate if it has one."""
        lifecycle = Lifecycle.of(
            self._runtime,
            kv_cache_manager.block_pool,
            eviction=self.options.eviction,
            withdraws=self.options.unwritten == "withdraw",
        )
        managers = kv_cache_manager.coordinator.single_type_managers
        gated = [manager for manager in managers if hasattr(manager, "lifecycle")]
        for manager in gated:
            manager.lifecycle = lifecycle
        self.adapter = Adapter(lifecycle, bool(gated))
        if not gated:
            self._watch = Watch.of(
                kv_cache_manager,
                windowed=self.window is not None,
                dropping=self.dropping,
                speculating=self.speculating,
            )
        elif self.speculating:
            on_verified(kv_cache_manager, lifecycle.verify)

    def build_connector_meta(self, scheduler_output: SchedulerOutput) -> PattonMetadata:
        """Apply the step to the runtime. Raises what `Adapter.step` raises."""
        assert self.adapter is not None
        number = self._runtime.step
        unsaid = NOTHING if self._watch is None else self._watch.unsaid()
        return PattonMetadata(number, self.adapter.step(scheduler_output, unsaid))

    def reset_cache(self) -> bool:
        """The prefix cache was reset: so is what the runtime kept for it."""
        assert self.adapter is not None
        self.adapter.lifecycle.forget_uncached()
        return True

    def get_num_new_matched_tokens(
        self, request: Any, num_computed_tokens: int
    ) -> tuple[int, bool]:
        """Nothing is cached here that vLLM does not cache itself."""
        return 0, False

    def update_state_after_alloc(
        self, request: Any, blocks: Any, num_external_tokens: int
    ) -> None:
        """Blocks are followed otherwise."""

    def request_finished_all_groups(
        self, request: Any, block_ids: tuple[list[int], ...]
    ) -> tuple[bool, dict[str, Any] | None]:
        """Never delays the free."""
        return False, None

    # --- worker -------------------------------------------------------------------

    def bind_connector_metadata(self, connector_metadata: KVConnectorMetadata) -> None:
        """A step begins: go on to it before its layers run."""
        super().bind_connector_metadata(connector_metadata)
        assert isinstance(connector_metadata, PattonMetadata)
        assert self.worker is not None
        self.worker.advance(connector_metadata.step, connector_metadata.events)

    def start_load_kv(self, forward_context: Any, **kwargs: Any) -> None:
        """Nothing is loaded."""

    def wait_for_layer_load(self, layer_name: str) -> None:
        """Nothing is loaded."""

    def save_kv_layer(
        self, layer_name: str, kv_layer: Any, attn_metadata: Any, **kwargs: Any
    ) -> None:
        """A layer has run: its streams are due."""
        assert self.worker is not None
        self.worker.emit()

    def wait_for_save(self) -> None:
        """Nothing is under way."""


def _runtime(
    config: VllmConfig,
    kv_cache: KVCacheConfig,
    options: Options,
    role: KVConnectorRole,
) -> Runtime:
    """A fresh runtime; only workers have a Commit Zone to keep (see `Lifecycle`)."""
    heads = config.model_config.get_num_attention_heads(config.parallel_config)
    layout = layout_of(
        kv_cache,
        query_heads=heads,
        max_model_len=config.model_config.max_model_len,
        options=options,
    )
    return Runtime.of(
        layout,
        blocks=kv_cache.num_blocks,
        choice=options.choice,
        adoption=options.adoption,
        commit_zone=options.commit_zone and role == KVConnectorRole.WORKER,
    )


def _refuse_unknown_positions(config: VllmConfig) -> None:
    """With both, where a step writes is known only when the one before has run."""
    if config.speculative_config and config.scheduler_config.async_scheduling:
        accepted = "false, together with speculative decoding"
        raise ConfigError(SOURCE, "async_scheduling", True, accepted)
