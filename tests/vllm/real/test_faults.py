"""Public faults as vLLM itself runs into them, and what the plug-in makes of them.

Numbers are vLLM issues and pull requests. Sequences that need no vLLM: ../test_faults.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import attrs
import pytest

pytest.importorskip("vllm.v1.core.sched.scheduler", reason="needs the extra vllm")

from vllm.sampling_params import SamplingParams
from vllm.v1.request import Request

from patton.errors import UnwrittenHitError
from tests.vllm.comparison import differences
from tests.vllm.real.serving import Served, Serving
from tests.vllm.real.truth import Truth

SOURCES = pytest.mark.parametrize("gated", [False, True], ids=["outputs", "gate"])


def ask(
    served: Served, name: str, prompt: list[int], answer: int, **options: Any
) -> None:
    request = Request(
        request_id=name,
        prompt_token_ids=prompt,
        sampling_params=SamplingParams(max_tokens=answer, ignore_eos=True),
        pooling_params=None,
        block_hasher=served.chats.hasher,
        **options,
    )
    served.scheduler.add_request(request)


def idle(tmp_path: Path, **changes: Any) -> Served:
    """An engine that nobody asks anything yet."""
    serving = Serving(open=0, connector={"device": "tiny"}, max_len=512)
    return Served.of(attrs.evolve(serving, **changes), tmp_path)


def drop_a_step(served: Served) -> None:
    """43569, 57580: a request is scheduled, its blocks are hashed, and it is preempted
    for another in the same step; later it hits blocks that were never written.
    """
    source = random.Random(1)

    def tokens(count: int) -> list[int]:
        return [source.randrange(30_000) for _ in range(count)]

    ask(served, "low", tokens(328), 4, priority=10)
    for step, _ in enumerate(served.steps(40)):
        if step == 1:
            ask(served, "high", tokens(30), 12, priority=0)
        if not served.scheduler.has_unfinished_requests():
            return


def pressed(tmp_path: Path, gated: bool, **options: str) -> Served:
    """Blocks for a prompt and a bit, chunks of 40 tokens, priorities."""
    served = idle(
        tmp_path,
        usable=23,
        budget=64,
        running=8,
        policy="priority",
        gated=gated,
        connector={"device": "tiny", **options},
    )
    served.scheduler.scheduler_config.long_prefill_token_threshold = 40
    return served


@SOURCES
def test_a_hit_on_what_was_never_written_is_refused(
    tmp_path: Path, gated: bool
) -> None:
    """The error names the request, the block and the step."""
    with pytest.raises(UnwrittenHitError, match="'low' hits block"):
        drop_a_step(pressed(tmp_path, gated))


def test_or_the_gate_takes_it_out_of_the_cache(tmp_path: Path) -> None:
    """As soon as the step is dropped; everybody ends, and nothing is wrong."""
    served = pressed(tmp_path, gated=True, unwritten="withdraw")
    drop_a_step(served)

    assert not served.scheduler.has_unfinished_requests()
    assert served.scheduler.connector.adapter.lifecycle.withdrawn > 0


@SOURCES
def test_tenants_share_nothing(tmp_path: Path, gated: bool) -> None:
    """17045, 39082: two salts, equal tokens; placement looks at no content."""
    served = idle(tmp_path, gated=gated)
    prompt = list(range(100))
    for name in ("ours", "theirs"):
        ask(served, name, prompt, 8, cache_salt=name)
    ask(served, "ours again", prompt, 8, cache_salt="ours")
    for _ in served.steps(2):
        pass
    held = served.scheduler.connector.runtime.placements.requests
    tables = {name: set(request.blocks) for name, request in held.items()}

    assert tables["ours"].isdisjoint(tables["theirs"])
    assert 6 == len(tables["ours"] & tables["ours again"])


@SOURCES
def test_a_copy_outlives_the_other(tmp_path: Path, gated: bool) -> None:
    """48933, 55092: one hash in two blocks; one goes, the other is still hit."""
    served = idle(tmp_path, gated=gated)
    ask(served, "first", list(range(32)), 1)
    for _ in served.steps(2):
        pass
    ask(served, "again", list(range(32)), 1)  # its last block is computed anew
    for _ in served.steps(2):
        pass
    pool = served.pool
    (copies,) = [
        list(blocks)
        for blocks in pool.cached_block_hash_to_block._cache.values()
        if isinstance(blocks, dict)
    ]
    pool.evict_blocks({copies[0]})
    ask(served, "hits", list(range(40)), 4)
    truth, lifecycle = Truth.of(served), served.scheduler.connector.adapter.lifecycle
    for output in served.steps(2):
        found = truth.follow(output)
        found.levels[:] = served.scheduler.connector.runtime.placements.written
        assert [] == list(differences(lifecycle, found))

    placement = served.scheduler.connector.runtime.placement(copies[1])
    assert placement is not None
    assert 16 == placement.written


@SOURCES
def test_a_reset_forgets_everything(tmp_path: Path, gated: bool) -> None:
    """After it the runtime keeps nothing that nobody can hit any more."""
    served = idle(tmp_path, gated=gated)
    ask(served, "one", list(range(100)), 4)
    for _ in served.steps(6):
        pass
    runtime = served.scheduler.connector.runtime
    assert list(runtime.placements.bound_blocks())
    assert served.scheduler.reset_prefix_cache(reset_connector=True)
    for _ in served.steps(1):
        pass

    assert [] == list(runtime.placements.bound_blocks())
    assert runtime.layout.pairs == runtime.free_pairs
