"""The entry points: names that a user may give to vLLM, and the platform of tests."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Any

CONNECTOR = "PattonConnector"
BACKEND = "PATTON"


def register() -> None:
    """Register connector and attention backend; may be called again.

    For the group `vllm.general_plugins`.
    """
    from vllm.distributed.kv_transfer.kv_connector.factory import KVConnectorFactory

    with suppress(ValueError):  # registered before
        KVConnectorFactory.register_connector(
            CONNECTOR, "patton.vllm.connector", CONNECTOR
        )
    attention_backend()


def attention_backend() -> Any:
    """PATTON in vLLM's AttentionBackendEnum, added where it is missing."""
    from vllm.v1.attention.backends.registry import AttentionBackendEnum

    if BACKEND in AttentionBackendEnum.__members__:
        return AttentionBackendEnum[BACKEND]
    member = AttentionBackendEnum.register(BACKEND, "patton.vllm.backend.PattonBackend")
    # A configuration reaches vLLM's processes before their plug-ins are loaded, and an
    # enumeration's member is sent as a value, which they would not know.
    member.__reduce_ex__ = _as_sent
    return member


def _as_sent(_: object) -> tuple[Any, tuple[()]]:
    return attention_backend, ()


def host_platform() -> str | None:
    """The class of `patton.vllm.platform` where the environment says PATTON_HOST=1.

    For the group `vllm.platform_plugins`, of which one at most may be active.
    """
    if os.environ.get("PATTON_HOST") != "1":
        return None
    return "patton.vllm.platform.HostPlatform"
