"""A campaign whose pieces are done by the workers of a Dask scheduler."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fuzz import campaign
from fuzz.__main__ import main

distributed = pytest.importorskip(
    "distributed", reason="the extra `cluster` is not installed"
)


@pytest.fixture(scope="module")
def scheduler() -> Iterator[Any]:
    """A scheduler with two workers of one thread each, on this machine alone."""
    with distributed.LocalCluster(
        n_workers=2,
        threads_per_worker=1,
        host="127.0.0.1",
        dashboard_address=None,
    ) as cluster:
        yield cluster


def test_a_campaign_runs_on_a_cluster(scheduler: Any, tmp_path: Path) -> None:
    """Pieces of several targets, each with a seed of its own, and all in the ledger."""
    ledger = tmp_path / "ledger.jsonl"
    targets = ["--target", "touched", "--target", "maps"]
    address = ["--cluster", scheduler.scheduler_address]
    arguments = ["campaign", "--minutes", "0.02", "--ledger", str(ledger)]

    assert main([*arguments, *targets, *address]) == 0
    rows = [json.loads(line) for line in ledger.read_text().splitlines()]
    assert {"touched", "maps"} == {row["target"] for row in rows}
    assert all(row["steps"] > 0 and row["failure"] is None for row in rows)
    assert campaign.next_seed(ledger) == 1 + rows[-1]["seed"]


def test_outcomes_are_those_of_this_machine(scheduler: Any) -> None:
    """A piece that ends with its steps and not with its time is the same anywhere."""
    pieces = [("maps", seed, 0.0) for seed in range(3)]
    there = [*campaign.clustered(pieces, scheduler.scheduler_address)]
    here = [*campaign.local(pieces, 1)]

    assert [(o.target, o.seed, o.failure) for o in there] == [
        (o.target, o.seed, o.failure) for o in here
    ]


def test_a_scheduler_that_is_not_there_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """By its address, after some seconds, and not by waiting for ever."""
    monkeypatch.setattr(campaign, "CONNECT_SECONDS", 0.5)
    with pytest.raises(OSError, match=re.escape("127.0.0.1:1")):
        [*campaign.clustered([("maps", 0, 0.0)], "tcp://127.0.0.1:1")]
