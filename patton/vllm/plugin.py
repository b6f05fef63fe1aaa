"""The entry points: names that a user may give to vLLM, and the platform of tests."""

from __future__ import annotations

import os
from contextlib import suppress

CONNECTOR = "PattonConnector"
BACKEND = "PATTON"


def register() -> None:
    """Register connector and attention backend; may be called again.

    For the group `vllm.general_plugins`.
    """
    from vllm.distributed.kv_transfer.kv_connector.factory import KVConnectorFactory
    from vllm.v1.attention.backends.registry import AttentionBackendEnum

    with suppress(ValueError):  # registered before
        KVConnectorFactory.register_connector(
            CONNECTOR, "patton.vllm.connector", CONNECTOR
        )
    with suppress(ValueError):
        AttentionBackendEnum.register(BACKEND, "patton.vllm.backend.PattonBackend")


def host_platform() -> str | None:
    """The class of `patton.vllm.platform` where the environment says PATTON_HOST=1.

    For the group `vllm.platform_plugins`, of which one at most may be active.
    """
    if os.environ.get("PATTON_HOST") != "1":
        return None
    return "patton.vllm.platform.HostPlatform"
