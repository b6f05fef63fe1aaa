"""The entry point of `vllm.general_plugins`: names that a user may give to vLLM."""

from __future__ import annotations

from contextlib import suppress

CONNECTOR = "PattonConnector"


def register() -> None:
    """Register the connector; may be called again."""
    from vllm.distributed.kv_transfer.kv_connector.factory import KVConnectorFactory

    with suppress(ValueError):  # registered before
        KVConnectorFactory.register_connector(
            CONNECTOR, "patton.vllm.connector", CONNECTOR
        )
