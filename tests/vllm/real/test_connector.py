"""How vLLM finds the connector, what it refuses, and what it sends to workers."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import attrs
import pytest

pytest.importorskip("vllm.v1.core.sched.scheduler", reason="needs the extra vllm")

from vllm.config import KVTransferConfig
from vllm.distributed.kv_transfer.kv_connector.factory import KVConnectorFactory

from patton.errors import ConfigError, UnwrittenHitError
from patton.runtime import Runtime
from patton.vllm import plugin
from patton.vllm.connector import PattonConnector, PattonMetadata
from patton.vllm.worker import Worker
from tests.vllm.comparison import but_for_slots
from tests.vllm.real import serving
from tests.vllm.real.serving import BLOCK, CONNECTOR, Served, Serving

TINY = {"device": "tiny"}


def test_the_plugin_registers_the_name_again_and_again() -> None:
    """The entry point is called in every process, sometimes twice."""
    plugin.register()
    plugin.register()
    config = KVTransferConfig(kv_connector="PattonConnector", kv_role="kv_both")

    assert PattonConnector is KVConnectorFactory.get_connector_class(config)


def test_the_module_path_does_without_the_plugin() -> None:
    config = KVTransferConfig(**CONNECTOR)

    assert PattonConnector is KVConnectorFactory.get_connector_class(config)
    assert KVConnectorFactory.supports_hma_config(config)


def test_it_delays_and_loads_nothing(tmp_path: Path) -> None:
    """VLLM behaves with the connector as without."""
    said = []
    for connector in (None, TINY):
        served = Served.of(Serving(usable=90, connector=connector), tmp_path)
        said.append([dict(o.num_scheduled_tokens) for o in served.steps(300)])

    assert said[0] == said[1]


def test_wrong_options_stop_the_engine_at_the_start(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="kv_connector_extra_config: devise"):
        Served.of(Serving(connector={"devise": "tiny"}), tmp_path)


def test_a_context_that_does_not_fit_is_refused(tmp_path: Path) -> None:
    options = {"device": "tiny", "capacity_gib": 0.0013}
    with pytest.raises(ConfigError, match="max_model_len is 8000; accepted: at most"):
        Served.of(Serving(max_len=8000, connector=options), tmp_path)


def test_speculation_two_steps_deep_is_refused(tmp_path: Path) -> None:
    """Where a step writes would be known only after the one before has run."""
    serving = Serving(drafts=3, connector=TINY)
    served = Served.of(attrs.evolve(serving, connector=None), tmp_path)
    config = served.scheduler.vllm_config
    config.scheduler_config.async_scheduling = True
    config.kv_transfer_config = KVTransferConfig(
        **CONNECTOR, kv_connector_extra_config=TINY
    )
    with pytest.raises(ConfigError, match="async_scheduling is True"):
        PattonConnector(config, None, served.scheduler.kv_cache_config)


class Elsewhere(PattonConnector):
    """A connector that says of a block of every prompt that it will load it."""

    def bind_kv_cache_manager(self, kv_cache_manager: Any) -> None:
        """It follows nothing."""

    def build_connector_meta(self, scheduler_output: Any) -> Any:
        """It sends nothing."""

    def get_num_new_matched_tokens(self, *_: Any) -> tuple[int, bool]:
        return BLOCK, False


def test_tokens_that_another_connector_loads_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beside others it follows what vLLM computes; what they load was never written."""
    several = {"kv_connector": "MultiConnector", "kv_role": "kv_both"}
    monkeypatch.setattr(serving, "CONNECTOR", several)
    ours = {**CONNECTOR, "kv_connector_extra_config": TINY}
    theirs = {**ours, "kv_connector": "Elsewhere", "kv_connector_module_path": __name__}
    with_others = Serving(connector={"connectors": [ours, theirs]})
    steps = Served.of(with_others, tmp_path).steps(20)

    with pytest.raises(UnwrittenHitError, match="request-1"):
        next(steps)


def test_metadata_survive_the_way_to_another_process(tmp_path: Path) -> None:
    """Pickled, they lead a worker to the same state."""
    served = Served.of(Serving(connector=TINY, gated=True), tmp_path)
    connector = served.scheduler.connector
    fresh = Runtime.of(connector.runtime.layout, blocks=served.serving.usable + 1)
    worker = Worker.of(fresh, connector.options)
    for output in served.steps(60):
        sent = pickle.dumps(output.kv_connector_metadata)
        metadata = pickle.loads(sent)  # noqa: S301  (our own)
        assert isinstance(metadata, PattonMetadata)
        worker.advance(metadata.step, metadata.events)
        assert len(sent) < 20_000
    assert but_for_slots(connector.runtime) == but_for_slots(worker.runtime)
    worker.emit()
    assert worker.commands > 0
