"""`patton.engine` beside vLLM's own scheduler: the same in every step, or where not.

Both serve the same random requests: prompts that share prefixes, conversations whose
later turns find earlier ones, copies of one prompt at the same time, and turns that go
back behind what was said before. Pools are small, budgets smaller than prompts; now and
then some blocks lose their hash, as when pairs are evicted, or all do. After every step
everything is compared that a later step could depend on.

`python -m tests.vllm.real.equivalence [--steps N] [--seeds N]` counts differences.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import attrs
import numpy as np
from vllm.sampling_params import SamplingParams
from vllm.utils.hashing import sha256
from vllm.v1.core.kv_cache_utils import get_request_block_hasher, init_none_hash
from vllm.v1.outputs import ModelRunnerOutput
from vllm.v1.request import Request as RealRequest

from patton.engine.requests import Request, StepRecord
from patton.engine.scheduler import Scheduler
from patton.engine.tokens import ConversationTokens, prefix_base, private_base
from tests.vllm.real.serving import BLOCK, Serving, scheduler

PREFIX_TOKENS = (0, 20, 64)  # conversation i has the system prompt i modulo 3
CONVERSATIONS = 40
LIVE = 24  # requests that wait or run


@attrs.frozen
class Shape:
    """What a seed decides once: the pool, the limits and the lengths of requests."""

    blocks: int
    concurrency: int
    token_budget: int
    longest: int

    @classmethod
    def drawn(cls, random: Random) -> Shape:
        """From hardly more blocks than the longest request to more than all need."""
        longest = random.choice((200, 500, 1000))
        least = longest // BLOCK + 1
        return cls(
            blocks=random.randint(least, random.choice((2, 4, 10, 24)) * least),
            concurrency=random.choice((4, 8, 16)),
            token_budget=random.choice((24, 64, 256, 1024)),
            longest=longest,
        )


@attrs.define
class Tally:
    """What has happened, so that nothing is compared in vain; unit: one of each."""

    steps: int = 0
    requests: int = 0
    hit_blocks: int = 0
    new_blocks: int = 0
    evictions: int = 0
    preemptions: int = 0
    chunks: int = 0
    same_step_shares: int = 0
    forgotten: int = 0
    resets: int = 0

    def add(self, record: StepRecord) -> None:
        """Count one step."""
        self.steps += 1
        self.requests += sum(not a.readmitted for a in record.admissions)
        self.hit_blocks += sum(len(hits) for _, hits, _ in record.grants)
        self.new_blocks += sum(len(new) for *_, new in record.grants)
        self.evictions += len(record.evicted)
        self.preemptions += len(record.preempted)
        self.chunks += record.chunked
        self.same_step_shares += record.same_step_shares

    def plus(self, other: Tally) -> Tally:
        """Both together."""
        counts = attrs.asdict(other)
        return Tally(**{name: getattr(self, name) + counts[name] for name in counts})


@attrs.define(eq=False)
class Pair:
    """Both engines, fed alike. Ids of `patton.engine` are one less: no null block."""

    ours: Scheduler
    theirs: Any
    evicted: list[int]
    hasher: Any
    requests: dict[str, tuple[Request, Any]] = attrs.field(factory=dict)

    @classmethod
    def of(cls, shape: Shape, folder: Path) -> Pair:
        """Two engines of one shape; evictions of vLLM's pool are noted as they come."""
        ours = Scheduler.of(
            shape.blocks,
            block_tokens=BLOCK,
            concurrency=shape.concurrency,
            token_budget=shape.token_budget,
        )
        init_none_hash(sha256)
        theirs = scheduler(
            Serving(
                usable=shape.blocks,
                running=shape.concurrency,
                budget=shape.token_budget,
                max_len=shape.longest,
            ),
            folder,
        )
        evicted: list[int] = []
        pool = theirs.kv_cache_manager.block_pool
        evict = pool._maybe_evict_cached_block

        def noted(block: Any) -> bool:
            gone: bool = evict(block)
            if gone:
                evicted.append(block.block_id - 1)
            return gone

        pool._maybe_evict_cached_block = noted
        return cls(ours, theirs, evicted, get_request_block_hasher(BLOCK, sha256))

    def add(self, request: Request) -> None:
        """Queue a request in both."""
        prompt = request.tokens.token_identity(np.arange(request.prompt_tokens))
        name = str(request.id)
        twin = RealRequest(
            request_id=name,
            prompt_token_ids=prompt.tolist(),
            sampling_params=SamplingParams(
                max_tokens=request.output_tokens, ignore_eos=True
            ),
            pooling_params=None,
            block_hasher=self.hasher,
        )
        self.requests[name] = request, twin
        self.ours.add(request)
        self.theirs.add_request(twin)

    def disturb(self, random: Random, tally: Tally) -> None:
        """Some blocks of both lose their hash, seldom all that nobody holds."""
        ours, theirs = self.ours.pool, self.theirs.kv_cache_manager
        if random.random() < 0.02:
            blocks = {
                random.randrange(ours.blocks) for _ in range(random.randint(1, 9))
            }
            tally.forgotten += sum(ours.key[block] is not None for block in blocks)
            ours.evict_blocks(blocks)
            theirs.evict_blocks({block + 1 for block in blocks})
        if self.ours.is_idle or random.random() < 0.001:
            done = ours.reset()
            assert done is theirs.reset_prefix_cache()
            tally.resets += done

    def step(self, tally: Tally) -> list[str]:
        """One step of both; in words, where they differ."""
        self.evicted.clear()
        record = self.ours.schedule()
        output = self.theirs.schedule()
        differences = [
            f"{name}: {mine} here, {its} in vLLM"
            for name, mine, its in self._decisions(record, output)
            if mine != its
        ]
        tally.add(record)
        tokens = {
            str(row.id): int(row.tokens.token_identity(np.array([row.known]))[0])
            for row, start, count, _ in record.scheduled
            if row.known == start + count
        }
        ended = self.ours.complete(record)
        names = list(output.num_scheduled_tokens)
        result = ModelRunnerOutput(
            req_ids=names,
            req_id_to_index={name: index for index, name in enumerate(names)},
            sampled_token_ids=[[tokens[n]] if n in tokens else [] for n in names],
        )
        self.theirs.update_from_output(output, result)
        for request in ended:
            del self.requests[str(request.id)]
        differences += [
            f"after the step, {name}: {mine} here, {its} in vLLM"
            for name, mine, its in self._states()
            if mine != its
        ]
        return differences

    def _decisions(
        self, record: StepRecord, output: Any
    ) -> Iterator[tuple[str, Any, Any]]:
        """What the step is, once from each side."""
        counts = output.num_scheduled_tokens
        cached = output.scheduled_cached_reqs
        start = dict(zip(cached.req_ids, cached.num_computed_tokens, strict=True))
        blocks = dict(zip(cached.req_ids, cached.new_block_ids, strict=True))
        for new in output.scheduled_new_reqs:
            start[new.req_id], blocks[new.req_id] = (
                new.num_computed_tokens,
                new.block_ids,
            )
        yield (
            "scheduled",
            [(str(row.id), begin, count) for row, begin, count, _ in record.scheduled],
            [(name, start[name], count) for name, count in counts.items()],
        )
        yield (
            "granted",
            [(str(name), hits + new) for name, hits, new in record.grants],
            [
                (name, [block - 1 for block in blocks[name][0]])
                for name in counts
                if blocks[name] is not None and blocks[name][0]
            ],
        )
        preempted = output.preempted_req_ids or set()
        yield "preempted", {str(name) for name in record.preempted}, preempted
        yield "evicted", record.evicted, self.evicted

    def _states(self) -> Iterator[tuple[str, Any, Any]]:
        """All that later steps depend on, once from each side."""
        ours, theirs = self.ours, self.theirs
        pool, real = ours.pool, theirs.kv_cache_manager.block_pool
        yield (
            "running",
            [str(request.id) for request in ours.running],
            [request.request_id for request in theirs.running],
        )
        yield (
            "waiting",
            [str(request.id) for request in ours.waiting],
            [request.request_id for request in theirs.waiting],
        )
        yield (
            "free queue",
            pool.free_queue(),
            [b.block_id - 1 for b in real.free_block_queue.get_all_free_blocks()],
        )
        yield "references", pool.references, [b.ref_cnt for b in real.blocks[1:]]
        yield (
            "hashed blocks",
            [key is not None for key in pool.key],
            [block.block_hash is not None for block in real.blocks[1:]],
        )
        for name, (request, twin) in self.requests.items():
            table = theirs.kv_cache_manager.get_block_ids(name)[0]
            yield f"table of {name}", request.blocks, [block - 1 for block in table]
            yield (
                f"tokens of {name}",
                (request.known, request.computed),
                (twin.num_tokens, twin.num_computed_tokens),
            )


def requests_of(shape: Shape, random: Random) -> Iterator[Request]:
    """Random turns of a few conversations, without end."""
    said = dict.fromkeys(range(CONVERSATIONS), 0)
    number = 0
    while True:
        talk = random.randrange(CONVERSATIONS)
        prefix = PREFIX_TOKENS[talk % len(PREFIX_TOKENS)]
        # As a rule a turn goes on; some go back, some begin anew in the same place.
        base = random.choice((said[talk], said[talk], random.randint(0, said[talk]), 0))
        prompt = max(base, prefix) + random.randint(1, shape.longest // 4)
        output = random.randint(1, shape.longest // 4)
        if prompt + output > shape.longest:
            said[talk] = 0
            continue
        tokens = ConversationTokens(private_base(talk), prefix_base(prefix), prefix)
        for _ in range(random.choice((1, 1, 1, 2))):
            yield Request.of(number, prompt, output, tokens, block_tokens=BLOCK)
            number += 1
        said[talk] = prompt + output


def compare(seed: int, steps: int) -> tuple[list[str], Tally]:
    """The first differences of `steps` steps, and what happened until then.

    After a difference nothing that follows would mean anything.
    """
    random = Random(seed)
    shape, tally = Shape.drawn(random), Tally()
    with TemporaryDirectory() as folder:
        pair = Pair.of(shape, Path(folder))
    source = requests_of(shape, random)
    pausing = False
    for step in range(steps):
        pausing = not pair.ours.is_idle and (pausing or random.random() < 0.002)
        while not pausing and len(pair.requests) < LIVE and random.random() < 0.7:
            pair.add(next(source))
        pair.disturb(random, tally)
        differences = pair.step(tally)
        if differences:
            where = f"seed {seed}, step {step}, {shape}"
            return [f"{where}: {text}" for text in differences], tally
    return [], tally


def main(arguments: list[str] | None = None) -> int:
    """Compare many seeds; 1 if any differs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=20_000, help="of each seed")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    options = parser.parse_args(arguments)
    total, differing = Tally(), 0
    for seed in range(options.first, options.first + options.seeds):
        differences, tally = compare(seed, options.steps)
        total = total.plus(tally)
        differing += bool(differences)
        print(f"seed {seed}:", differences[:3] or "equal", tally, flush=True)
    print(f"{differing} of {options.seeds} seeds differ;", total)
    return int(differing > 0)


if __name__ == "__main__":
    sys.exit(main())
