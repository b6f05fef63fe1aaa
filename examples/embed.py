"""Your own serving engine on PATTON, in one page: python examples/embed.py.

The engine decides which block belongs to which request. The runtime says where blocks
lie in PIM memory, generators turn that into command streams, and an executor runs them:
here the reference device, in your system the real one.
"""

import numpy as np
from numpy.typing import NDArray

import patton
from patton import Step
from patton.commands import Tokens
from patton.device import ReferenceDevice
from patton.elements import decode, encode

MODEL, BF16 = patton.model_preset("tiny"), patton.ElementType.BF16
layout = patton.Layout.of(patton.device_preset("tiny"), MODEL)  # where things may lie
runtime = patton.Runtime.of(layout)  # where they do lie
device = ReferenceDevice(layout.device)
BLOCK = layout.block_tokens
QUERY = (MODEL.kv_heads, MODEL.query_heads_per_kv, MODEL.head_dim)

# The engine's model would compute these: Key and Value [requests, tokens, heads, D].
# Requests 0 and 1 begin with the same prompt of one block.
rng = np.random.default_rng(0)
shape = (2, 60, MODEL.kv_heads, MODEL.head_dim)
keys, values = rng.uniform(-1, 1, (2, *shape)).astype(np.float32)
keys[1, :BLOCK], values[1, :BLOCK] = keys[0, :BLOCK], values[0, :BLOCK]


def execute(step: Step) -> None:
    """Place one engine step, run one layer of it, and check what it attends to."""
    plan = runtime.apply_step(step)  # a refused step raises and changes nothing
    placed = plan.place()
    names = np.array(placed.requests)  # streams number the requests of a step

    def stored(data: NDArray[np.float32], tokens: Tokens) -> NDArray[np.uint16]:
        return encode(data[names[tokens.request], tokens.position], BF16)

    queries = encode(rng.random((len(step.reads), *QUERY), np.float32), BF16)
    result = patton.run_layer(
        device,
        patton.generate_step(placed),
        layer=0,
        element=BF16,
        keys=lambda tokens: stored(keys, tokens),
        values=lambda tokens: stored(values, tokens),
        queries=queries,
    )
    runtime.publish(plan)  # from now on, blocks that it copied are read there
    assert result.outputs is not None
    for row, (request, start, end) in enumerate(step.reads):
        key, value = keys[request, start:end], values[request, start:end]
        scores = decode(queries[row], BF16).astype(float) @ key.transpose(1, 2, 0)
        weights = np.exp(scores / np.sqrt(MODEL.head_dim))
        expected = weights @ value.transpose(1, 0, 2) / weights.sum(-1, keepdims=True)
        error = np.abs(result.outputs[row] - expected).max() / np.abs(expected).max()
        assert error < 0.01, f"request {request}, positions {start} to {end}: {error}"


# Request 0 binds blocks 0 and 1 for its prompt of 20 tokens; the last of them asks.
execute(Step(grants=[(0, [], [0, 1])], writes=[(0, 0, 20)], reads=[(0, 0, 20)]))
# Request 1 shares block 0, binds block 2 and brings five tokens of its own.
execute(Step(grants=[(1, [0], [2])], writes=[(1, BLOCK, 5)], reads=[(1, 0, BLOCK + 5)]))
# Both decode, a token a step; where a block is full, each binds another.
length, free = {0: 20, 1: BLOCK + 5}, iter(range(3, layout.granules))
for _ in range(38):
    step = Step()
    step.grants = [(r, [], [next(free)]) for r, n in length.items() if n % BLOCK == 0]
    step.writes = [(r, n, 1) for r, n in length.items()]
    step.reads = [(r, 0, n + 1) for r, n in length.items()]
    execute(step)
    length = {r: n + 1 for r, n in length.items()}
print("78 attention outputs are right;", runtime.placement(2))
