"""Faults that serving engines had in public, as sequences of scheduler outputs.

Numbers are vLLM issues and pull requests unless another project is named. Each test
says what went wrong there and holds what happens here. Those that need vLLM itself
are in real/test_faults.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import attrs
import numpy as np
import pytest
from numpy.typing import NDArray

from patton.attention import run_layer
from patton.commands import Tokens
from patton.config import model_preset, tiny_device
from patton.errors import (
    LayoutError,
    OutOfPairsError,
    RequestError,
    UnwrittenHitError,
)
from patton.layout import Layout
from patton.runtime import Runtime
from patton.vllm.adapter import Adapter
from patton.vllm.geometry import layout_of
from patton.vllm.lifecycle import Lifecycle
from patton.vllm.options import Options
from patton.vllm.watch import NOTHING, Unsaid
from patton.vllm.worker import Worker
from tests.vllm.comparison import scheduling
from tests.vllm.pair import LAYOUT, Pair
from tests.vllm.said import new, output, running

NAN = 0x7FC0  # of BF16


def test_a_hit_on_what_a_dropped_step_should_have_written() -> None:
    """43569, 57580: blocks are hashed as they are scheduled, and stay so if the step
    drops their request: it comes back, hits them and reads what was never written.
    """
    pair = Pair.of()
    pair.admit("low", [1, 2, 3], 40)
    pair.step(Unsaid(taken=[4, 5]), preempted_req_ids={"low"})

    with pytest.raises(UnwrittenHitError) as error:
        pair.admit("low", [1, 2, 4, 6], 16, hit=48)
    assert ("low", 4, 2, 0) == attrs.astuple(error.value)


def test_such_a_hit_on_a_block_that_held_something_else() -> None:
    """The same, where the block was full of another request's tokens before."""
    pair = Pair.of()
    pair.admit("old", [4], 16)
    pair.step(finished_req_ids={"old"})
    pair.admit("low", [1, 2, 3], 40)
    pair.step(Unsaid(taken=[4]), preempted_req_ids={"low"})

    with pytest.raises(UnwrittenHitError, match="block 4 in step 4"):
        pair.admit("low", [1, 2, 4, 6], 16, hit=48)


def test_a_hit_on_a_block_that_this_step_does_not_fill() -> None:
    """The first half is written, the second was to be, and is not."""
    pair = Pair.of()
    pair.admit("writer", [1], 8)

    with pytest.raises(UnwrittenHitError) as error:
        pair.step(
            scheduled_new_reqs=[new("reader", [1, 2], 16)],
            num_scheduled_tokens={"reader": 4},
        )
    assert ("reader", 1, 1, 8) == attrs.astuple(error.value)


def test_freeing_a_block_twice_is_refused() -> None:
    """42571: one id twice in a list of blocks to free; the queue counted it twice."""
    pair = Pair.of()
    pair.admit("one", [1, 2], 32)
    lifecycle, before = pair.adapter.lifecycle, pair.runtime.snapshot()

    lifecycle.release("one", [1])
    once = pair.runtime.snapshot()
    with pytest.raises(RequestError, match="block 1"):
        lifecycle.release("one", [1])
    assert before != once == pair.runtime.snapshot()


def test_what_ended_may_be_said_again_or_never_have_been_heard_of() -> None:
    """SGLang 35270: a slot was freed twice, by two ways that did not know of each
    other. Here an id that holds nothing is no news.
    """
    pair = Pair.of()
    pair.admit("one", [1, 2], 20)
    pair.step(finished_req_ids={"one", "unknown"})
    before = pair.runtime.snapshot()
    pair.step(finished_req_ids={"one"}, preempted_req_ids={"unknown"})

    assert before["blocks"] == pair.runtime.snapshot()["blocks"]
    pair.runtime.check()


def test_room_is_not_made_out_of_the_hits() -> None:
    """44409, 33775: blocks were taken out of the queue for a request whose own hits,
    not yet referenced, were next in it.
    """
    device = attrs.evolve(tiny_device(), rows=8)
    layout = Layout.of(device, attrs.evolve(model_preset("tiny"), layers=1))
    runtime = scheduling(layout, 128, adoption=False)
    blocks = [SimpleNamespace(ref_cnt=0, block_hash=b) for b in range(128)]
    evicted: list[set[int]] = []
    pool = SimpleNamespace(blocks=blocks, evict_blocks=evicted.append)
    adapter = Adapter(Lifecycle.of(runtime, pool))
    size, most = layout.pair_blocks, layout.granules
    assert 2 * size <= most < 127
    cached, held = list(range(1, size + 1)), list(range(size + 1, most + 1))

    def admit(request: str, table: list[int], count: int, hit: int = 0) -> None:
        said = output(
            scheduled_new_reqs=[new(request, table, hit)],
            num_scheduled_tokens={request: count},
        )
        adapter.step(said, NOTHING)

    admit("cached", cached, 16 * size)
    adapter.step(output(finished_req_ids={"cached"}), NOTHING)
    admit("held", held, 16 * len(held))
    with pytest.raises(OutOfPairsError):
        admit("hits", [*cached, most + 1], 1, hit=16 * size)
    assert [] == evicted


def test_a_step_in_flight_writes_where_it_was_planned() -> None:
    """45357, vllm-ascend 14055: a request ends while a newer step writes for it, and
    its block is another's by then. Planned two ahead, every step is as planned at
    once.
    """
    said = [
        output(
            scheduled_new_reqs=[new("first", [1], 0)],
            num_scheduled_tokens={"first": 14},
        ),
        output(
            scheduled_cached_reqs=running(("first", 14, ())),
            num_scheduled_tokens={"first": 1},
        ),
        output(
            finished_req_ids={"first"},
            scheduled_new_reqs=[new("second", [1], 0)],
            num_scheduled_tokens={"second": 9},
        ),
    ]
    adapter = Adapter(Lifecycle.of(scheduling(LAYOUT, 64)))
    ahead = [adapter.step(each, NOTHING) for each in said]
    late = Worker.of(Runtime.of(LAYOUT, blocks=64), Options())
    pair = Pair.of()
    for number, (each, events) in enumerate(zip(said, ahead, strict=True)):
        late.advance(number, events)
        at_once = pair.step(**vars(each))
        assert late.current is not None
        for name in ("write_granule", "write_slot", "write_start", "write_count"):
            assert (
                getattr(at_once, name).tolist()
                == getattr(late.current.placed, name).tolist()
            )
    second = late.runtime.placement(1)
    assert second is not None
    assert (2, 9) == (second.epoch, second.written)


def test_drafts_that_fill_a_block_do_not_commit_it() -> None:
    """12415, 18668: a block counted as full by position, with drafts in it that were
    rejected: positions 13 to 15 are written again after 15 was.
    """
    pair = Pair.of()

    def speculate(first: int) -> Any:
        return pair.step(
            scheduled_cached_reqs=running(("one", first, (2,) if first == 12 else ())),
            num_scheduled_tokens={"one": 5},
            scheduled_spec_decode_tokens={"one": [7, 7, 7, 7]},
        )

    pair.admit("one", [1], 12)
    commits = [len(speculate(first).commit_slot) for first in (12, 13, 14, 19)]

    # 12 to 16 all but one rejected, then 13 to 17, then 14 to 18 accepted.
    assert [0, 0, 0, 1] == commits
    assert 16 == pair.runtime.placements.confirmed[1]
    assert 8 == pair.runtime.placements.written[2]


def bits(data: Callable[[str, NDArray[np.int64]], int], pair: Pair) -> Any:
    """Elements of tokens, all alike in a token, as a function of request and place."""

    def of(tokens: Tokens) -> NDArray[np.uint16]:
        assert pair.worker.current is not None
        names = pair.worker.current.placed.requests
        model = LAYOUT.model
        shape = (len(tokens.position), model.kv_heads, model.head_dim)
        values = np.empty(shape, np.uint16)
        for row, (index, at) in enumerate(
            zip(tokens.request.tolist(), tokens.position.tolist(), strict=True)
        ):
            values[row] = data(str(names[index]), at)
        return values

    return of


@pytest.mark.parametrize("tokens", [16, 5], ids=["full", "in its slot"])
def test_what_a_block_held_before_never_reaches_a_result(tokens: int) -> None:
    """flash-attention 2374, vLLM 50283: unused places of a block that is used again
    held NaN, and nought times NaN is NaN.
    """
    pair = Pair.of(check="data")
    element, one = LAYOUT.device.element, 0x3F80

    def run() -> NDArray[np.float32] | None:
        worker = pair.worker
        assert worker.current is not None
        assert worker.executor is not None
        reads = len(worker.current.placed.read_request)
        model = LAYOUT.model
        queries = np.full(
            (reads, model.kv_heads, model.query_heads_per_kv, model.head_dim),
            one,
            np.uint16,
        )
        values = bits(lambda name, _: NAN if name == "poison" else one, pair)
        result = run_layer(
            worker.executor,
            worker.current.streams,
            layer=0,
            element=element,
            keys=values,
            values=values,
            queries=queries,
        )
        return result.outputs

    pair.admit("poison", [1], tokens)
    run()
    pair.step(
        finished_req_ids={"poison"},
        scheduled_new_reqs=[new("clean", [1], 0)],
        num_scheduled_tokens={"clean": 3},
    )
    run()
    pair.go_on("clean", 3)
    outputs = run()

    assert outputs is not None
    assert (outputs == 1.0).all()


def test_equal_content_in_two_blocks_has_two_places() -> None:
    """12621, GHSA-rm76-4mrf-v9r8: wrong data for equal hashes. Placement knows ids
    only; no output of the scheduler carries a hash.
    """
    pair = Pair.of()
    pair.admit("one", [1], 16)
    pair.admit("same prompt", [2], 16)
    granule = pair.runtime.placements.granule

    assert granule[1] != granule[2]


def test_evicting_one_copy_leaves_the_other() -> None:
    """48933, 55092: a removal was said of a hash that lived on in another block."""
    pair = Pair.of()
    pair.admit("one", [1], 16)
    pair.admit("copy", [2], 16)
    pair.step(finished_req_ids={"one", "copy"})
    pair.admit("other", [1], 4)
    pair.admit("hits the copy", [2, 3], 4, hit=16)

    assert 2 == pair.runtime.placements.references[1] + 1
    assert 16 == pair.runtime.placements.written[2]


def test_evictions_one_by_one_free_no_pair() -> None:
    """Kvcached 359: memory pinned by single cached blocks all over. A pair is free
    when its last block goes, and counts what it holds.
    """
    pair, size = Pair.of(), LAYOUT.pair_blocks
    for name, first in (("a", 1), ("b", size + 1)):
        pair.admit(name, list(range(first, first + size)), 16 * size)
    pair.step(finished_req_ids={"a", "b"})
    runtime, free = pair.runtime, pair.runtime.free_pairs
    lifecycle = pair.adapter.lifecycle
    for block in range(1, size):
        lifecycle.forget([block, block + size])
        assert runtime.free_pairs == free
        runtime.check()
    lifecycle.forget([size, 2 * size])

    assert free + 2 == runtime.free_pairs


def test_a_commit_moves_the_data_and_not_the_block() -> None:
    """TensorRT-LLM 12834, 8830: an id used as an index after its data had moved."""
    pair = Pair.of()
    pair.admit("one", [1], 15)
    before = pair.go_on("one", 15).tables
    after = pair.go_on("one", 16, blocks=(2,)).tables

    assert before.granule[0] == after.granule[0]
    assert before.slot[0] >= 0
    assert -1 == after.slot[0]


@pytest.mark.parametrize("block_tokens", [1, 8, 16, 24, 32, 48, 64, 128])
def test_block_sizes(block_tokens: int) -> None:
    """42510: an engine's block that the kernels cannot take crashed late."""
    spec = type("FullAttentionSpec", (), {})()
    spec.block_size, spec.num_kv_heads, spec.head_size = block_tokens, 8, 128
    group = SimpleNamespace(layer_names=["layer"], kv_cache_spec=spec)
    config = SimpleNamespace(kv_cache_groups=[group])

    def layout() -> Layout:
        return layout_of(config, query_heads=32, max_model_len=4096, options=Options())

    if block_tokens % 16:
        with pytest.raises(LayoutError, match=r"block_tokens is .* a multiple of 16"):
            layout()
    else:
        assert block_tokens == layout().block_tokens


def test_a_twin_hits_what_its_step_writes() -> None:
    """29387: a hit in the step that computes the block. All writes of a layer come
    first, and only the scheduler's order tells who writes.
    """
    pair = Pair.of()
    twins = [new("first", [1, 2], 0), new("twin", [1, 3], 16)]
    pair.step(
        scheduled_new_reqs=twins[::-1],
        num_scheduled_tokens={"first": 20, "twin": 1},
    )
    assert pair.worker.current is not None
    phases = [stream.phase for stream in pair.worker.current.streams.present()]
    assert phases == sorted(phases, key=lambda phase: "write" not in phase)

    with pytest.raises(UnwrittenHitError, match="'twin' hits block 1 in step 0"):
        Pair.of().step(
            scheduled_new_reqs=twins,
            num_scheduled_tokens={"twin": 1, "first": 20},
        )


def test_a_name_used_again_while_a_commit_is_due() -> None:
    """The data of a commit are asked for by name and position: they must be clear."""
    pair = Pair.of()
    pair.admit("one", [1], 12)
    pair.step(
        scheduled_cached_reqs=running(("one", 12, (2,))),
        num_scheduled_tokens={"one": 5},
        scheduled_spec_decode_tokens={"one": [7, 7, 7, 7]},
    )
    with pytest.raises(RequestError, match="block 1, of an earlier one of this name"):
        pair.step(
            Unsaid(verified={"one": 17}),
            finished_req_ids={"one"},
            scheduled_new_reqs=[new("one", [3], 0)],
            num_scheduled_tokens={"one": 4},
        )
