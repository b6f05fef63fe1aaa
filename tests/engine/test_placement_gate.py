"""Making room in a placement with pairs, and the engine on a real runtime.

`Pairs` is a placement of the simplest kind, in which every answer can be worked out by
hand; the runtime itself is checked at every step by the second half.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random

import attrs
import pytest

from patton.config import device_preset, model_preset
from patton.engine.placement_gate import Eviction
from patton.engine.requests import Request, StepRecord
from patton.engine.scheduler import Scheduler
from patton.engine.tokens import ConversationTokens, prefix_base, private_base
from patton.errors import ConfigError, RequestTooLargeError
from patton.layout import Layout
from patton.runtime import Runtime
from patton.steps import Step

EVICTIONS: tuple[Eviction, ...] = ("pairs", "queue", "lru")


@attrs.define
class Pairs:
    """Pairs of `size` places, without adoption; a request fills one after another.

    told: every event, in order.
    """

    size: int
    pairs: list[list[int]]
    owner: list[int | None]
    references: dict[int, int] = attrs.field(factory=dict)
    tables: dict[int, list[int]] = attrs.field(factory=dict)
    partial: set[int] = attrs.field(factory=set)
    told: list[tuple[str, int]] = attrs.field(factory=list)

    @classmethod
    def of(cls, count: int, size: int) -> Pairs:
        return cls(size, [[] for _ in range(count)], [None] * count)

    def share(self, request: int, block: int) -> None:
        self.told.append(("share", block))
        assert any(block in pair for pair in self.pairs)
        self.references[block] = self.references.get(block, 0) + 1
        self.tables.setdefault(request, []).append(block)

    def bind(self, request: int, block: int) -> None:
        self.told.append(("bind", block))
        assert not any(block in pair for pair in self.pairs)
        room = [
            index
            for index, pair in enumerate(self.pairs)
            if self.owner[index] == request and len(pair) < self.size
        ]
        index = (room or [self.pairs.index([])])[0]
        self.owner[index] = request
        self.pairs[index].append(block)
        self.references[block] = 1
        self.tables.setdefault(request, []).append(block)

    def evict(self, block: int) -> None:
        self.told.append(("evict", block))
        assert not self.references.get(block)
        pair = next(pair for pair in self.pairs if block in pair)
        pair.remove(block)

    def finish(self, request: int) -> None:
        self.told.append(("finish", request))
        for block in self.tables.pop(request):
            self.references[block] -= 1
        self.owner = [None if owner == request else owner for owner in self.owner]
        for pair in self.pairs:
            pair[:] = [b for b in pair if self.references[b] or b not in self.partial]

    def bindable(self, request: int, shares: Sequence[int] = ()) -> int:  # noqa: ARG002
        own = [
            self.size - len(pair)
            for index, pair in enumerate(self.pairs)
            if pair and self.owner[index] == request
        ]
        return sum(own) + self.size * self.pairs.count([])

    def eviction_candidates(self) -> Iterator[int]:
        for index, pair in enumerate(self.pairs):
            referenced = any(self.references[block] for block in pair)
            if pair and self.owner[index] is None and not referenced:
                yield index

    def blocks_of_pair(self, pair: int) -> Sequence[int]:
        return list(reversed(self.pairs[pair]))

    @property
    def evictable_pairs(self) -> int:
        return len(list(self.eviction_candidates()))


@attrs.define
class Bench:
    """A scheduler on `Pairs`; a block is partial until its request has filled it."""

    pairs: Pairs
    scheduler: Scheduler

    @classmethod
    def of(cls, count: int, size: int, eviction: Eviction = "pairs") -> Bench:
        pairs = Pairs.of(count, size)
        scheduler = Scheduler.of(
            count * size,
            placement=pairs,
            pair_blocks=size,
            eviction=eviction,
        )
        return cls(pairs, scheduler)

    def add(
        self, number: int, prompt: int, output: int, conversation: int = -1
    ) -> None:
        owner = number if conversation < 0 else conversation
        tokens = ConversationTokens(private_base(owner))
        self.scheduler.add(Request.of(number, prompt, output, tokens))

    def step(self) -> StepRecord:
        self.pairs.told.clear()
        record = self.scheduler.schedule()
        for request, start, count, _ in record.scheduled:
            for index, block in enumerate(request.blocks):
                full = (index + 1) * 16 <= start + count
                (self.pairs.partial.discard if full else self.pairs.partial.add)(block)
        self.scheduler.complete(record)
        return record


def filled(eviction: Eviction = "pairs") -> Bench:
    """Three pairs of four: 0 and 1 hold three cached blocks each, 2 is free.

    Conversations 0 and 1 are cached, in blocks 0, 1, 2 and 3, 4, 5.
    """
    bench = Bench.of(3, 4, eviction)
    for number in range(2):
        bench.add(number, 48, 1)
        bench.step()
    assert [[0, 1, 2], [3, 4, 5], []] == bench.pairs.pairs
    return bench


def test_room_is_taken_before_anything_is_evicted() -> None:
    """Four blocks fit the free pair."""
    bench = filled()
    bench.add(2, 64, 1)
    record = bench.step()

    assert [] == record.evicted
    assert [("bind", block) for block in (6, 7, 8, 9)] == bench.pairs.told[:4]


def test_a_whole_pair_is_evicted_from_its_highest_place() -> None:
    """Five blocks: the oldest pair goes, its ids are not the next ones by age only."""
    bench = filled()
    bench.add(2, 80, 1)
    record = bench.step()

    assert [2, 1, 0] == record.evicted
    assert [(2, [], [0, 1, 2, 6, 7])] == record.grants
    assert [("evict", 2), ("evict", 1), ("evict", 0)] == bench.pairs.told[:3]


def test_block_by_block_in_the_order_of_the_queue() -> None:
    """`lru` stops as soon as a pair has fallen empty."""
    bench = filled("lru")
    bench.add(2, 80, 1)

    assert [2, 1, 0] == bench.step().evicted


def test_block_by_block_may_cost_other_pairs_first() -> None:
    """Conversation 0 was used last, so that 1 goes, though 0 has fewer blocks."""
    bench = filled("lru")
    bench.add(2, 33, 1, conversation=0)
    bench.step()  # blocks 0 and 1 are hit, a partial third block comes and goes
    bench.add(3, 80, 1)

    # By age: 2 (of conversation 0, not hit), 5, 4, 3, and then pair 1 is empty.
    assert [2, 5, 4, 3] == bench.step().evicted


def waiting(count: int, *conversations: int) -> Bench:
    """Three full pairs of cached conversations, the first `count` of them evictable.

    Behind a request of four new blocks the conversations wait, in this order.
    """
    bench = Bench.of(count, 4, "queue")
    for number in range(count):
        bench.add(number, 64, 1)
        bench.step()
    bench.scheduler.concurrency = 1
    bench.add(10, 64, 1)
    for place, conversation in enumerate(conversations):
        bench.add(11 + place, 65, 1, conversation=conversation)
    return bench


@pytest.mark.parametrize(
    ("queue", "victim"),
    [
        ((), 0),  # nobody waits: the oldest
        ((0,), 1),  # the oldest that nobody waits for
        ((0, 1), 2),
        ((2, 0, 1), 1),  # all are wanted: the one wanted last
        ((0, 1, 2), 2),
        ((1, 2, 0, 1), 0),  # the first request that waits for it counts
    ],
)
def test_what_the_queue_will_hit_is_evicted_last(
    queue: tuple[int, ...], victim: int
) -> None:
    """Four new blocks take a whole pair of those that are needed latest."""
    bench = waiting(3, *queue)
    record = bench.step()

    assert [4 * victim + i for i in (3, 2, 1, 0)] == record.evicted


def test_of_one_conversation_the_tail_goes_first() -> None:
    """Two pairs that the same request waits for, the prefix in the older one."""
    bench = Bench.of(2, 4, "queue")
    bench.add(0, 128, 1)
    bench.step()
    bench.scheduler.concurrency = 1
    bench.add(1, 64, 1)
    bench.add(2, 128, 1, conversation=0)

    assert [7, 6, 5, 4] == bench.step().evicted


def test_nothing_is_evicted_for_a_request_that_would_not_fit() -> None:
    """0 runs and owns a pair; a request of nine blocks of eight waits."""
    bench = Bench.of(3, 4)
    bench.add(0, 48, 1)
    bench.step()
    bench.add(1, 17, 9)
    bench.step()
    bench.add(2, 8 * 16 + 1, 2)
    record = bench.step()

    assert [] == record.evicted
    assert [1] == [request.id for request, *_ in record.scheduled]
    assert [[0, 1, 2], [3, 4], []] == bench.pairs.pairs


def test_the_first_chunk_evicts_only_what_it_needs() -> None:
    """The whole prompt of 9 blocks could be placed; 4 of them fit the free pair now."""
    bench = filled()
    bench.scheduler.token_budget = 64
    bench.add(2, 9 * 16, 1)

    assert [] == bench.step().evicted
    assert [2, 1, 0] == bench.step().evicted


def test_a_pair_with_a_hit_is_not_evicted() -> None:
    """Conversation 0 goes on with 3 hits and 5 new blocks: pair 1 makes room."""
    bench = filled()
    bench.add(2, 8 * 16, 1, conversation=0)
    record = bench.step()

    assert [5, 4, 3] == record.evicted
    assert [(2, [0, 1, 2], [3, 4, 5, 6, 7])] == record.grants


def test_alone_a_request_gives_up_its_own_hits_rather_than_wait_for_ever() -> None:
    """Its 3 hits hold a pair that it cannot fill; without them 12 blocks fit."""
    bench = filled()
    bench.add(2, 12 * 16, 1, conversation=0)
    record = bench.step()

    assert [0] == [admission.hit_tokens for admission in record.admissions]
    assert [5, 4, 3, 2, 1, 0] == sorted(record.evicted, reverse=True)
    assert 12 == len(record.grants[0][2])


def test_alone_and_larger_than_the_placement() -> None:
    """Ids for 13 blocks, places for 12."""
    pairs = Pairs.of(3, 4)
    scheduler = Scheduler.of(
        20,
        placement=pairs,
        pair_blocks=4,
    )
    scheduler.add(Request.of(0, 13 * 16, 1, ConversationTokens(private_base(0))))
    with pytest.raises(RequestTooLargeError) as caught:
        scheduler.schedule()

    assert (0, 13, 12) == attrs.astuple(caught.value)
    assert 0 == scheduler.steps


def test_a_running_request_preempts_the_last_one_for_a_pair() -> None:
    """0 and 1 own the two pairs; when 0 wants a second one, 1 must go."""
    bench = Bench.of(2, 4)
    bench.add(0, 63, 9)
    bench.add(1, 20, 9)
    bench.step()
    bench.step()
    record = bench.step()

    assert [1] == record.preempted
    # Its partial block fell from the placement; the full one was evicted.
    assert [4] == record.evicted
    assert [("finish", 1), ("evict", 4), ("bind", 4)] == bench.pairs.told[:3]


@pytest.mark.parametrize(
    ("eviction", "pair_blocks", "match"),
    [("fifo", 4, "fifo"), ("lru", 0, "pair_blocks")],
)
def test_a_gate_knows_its_policies(
    eviction: Eviction, pair_blocks: int, match: str
) -> None:
    """An unknown policy or an impossible pair is refused."""
    with pytest.raises(ConfigError, match=match):
        Scheduler.of(
            4,
            placement=Pairs.of(1, 4),
            pair_blocks=pair_blocks,
            eviction=eviction,
        )


def runtime(pair_blocks: int, rows: int, *, adoption: bool) -> Runtime:
    device = attrs.evolve(device_preset("tiny"), rows=rows)
    layout = Layout.of(device, model_preset("tiny"), pair_blocks=pair_blocks)
    return Runtime.of(layout, adoption=adoption)


@pytest.mark.parametrize("eviction", EVICTIONS)
@pytest.mark.parametrize("adoption", [False, True])
@pytest.mark.parametrize(("pair_blocks", "rows"), [(1, 12), (3, 14), (4, 16), (16, 20)])
def test_the_engine_never_asks_a_runtime_for_what_it_refuses(
    pair_blocks: int, rows: int, adoption: bool, eviction: Eviction
) -> None:
    """Random chats on a small device: all end, and runtime and pool agree throughout.

    The runtime raises on any event out of order, on a shared block that stays
    unwritten, and when it has no pair left.
    """
    random = Random(pair_blocks)
    placed = runtime(pair_blocks, rows, adoption=adoption)
    blocks = placed.layout.granules
    scheduler = Scheduler.of(
        blocks,
        concurrency=6,
        token_budget=100,
        placement=placed,
        pair_blocks=pair_blocks,
        eviction=eviction,
    )
    history = [random.choice((0, 40)) for _ in range(9)]
    preempted = evicted = steps = 0
    for number in range(140):
        conversation = random.randrange(9)
        prompt = history[conversation] + random.randint(1, 60)
        output = random.randint(1, 50)
        if (prompt + output) * 2 > blocks * 16:
            history[conversation] = prompt = 40
        tokens = ConversationTokens(private_base(conversation), prefix_base(0), 40)
        scheduler.add(Request.of(number, prompt, output, tokens))
        history[conversation] = prompt + output
    while not scheduler.is_idle:
        record = scheduler.schedule()
        writes = [(request.id, start, n) for request, start, n, _ in record.scheduled]
        placed.publish(placed.apply_step(Step(writes=writes)))
        scheduler.complete(record)
        steps += 1
        assert steps < 10_000  # nobody waits for ever
        preempted += len(record.preempted)
        evicted += len(record.evicted)
        if steps % 7 == 0:
            agree(scheduler, placed)

    agree(scheduler, placed)
    assert preempted
    assert evicted


def agree(scheduler: Scheduler, placed: Runtime) -> None:
    placed.check()
    assert [] == scheduler.pool.check()
    cached = {b for b, key in enumerate(scheduler.pool.key) if key is not None}
    held = {b for b, count in enumerate(scheduler.pool.references) if count}
    ids = range(scheduler.pool.blocks)
    assert cached | held == {b for b in ids if placed.placement(b) is not None}
