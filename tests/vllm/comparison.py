"""Whether the runtime knows exactly what is true of vLLM's blocks."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from patton.vllm.lifecycle import Lifecycle


def differences(
    lifecycle: Lifecycle,
    tables: Mapping[str, Sequence[int]],
    references: Mapping[int, int],
    levels: Mapping[int, int],
    cached: Collection[int],
) -> Iterator[str]:
    """Every way in which the runtime's state is not the pool's, in words.

    tables: request -> block ids, 0 for one given up; references: of blocks that are
    held; levels: block -> tokens written, of held and cached ones.
    """
    state = lifecycle.runtime.placements
    known = {
        str(request): [0] * lifecycle.leading.get(str(request), 0)
        + [max(block, 0) for block in held.blocks]
        for request, held in state.requests.items()
    }
    for request in known.keys() | tables.keys():
        table, told = list(tables.get(request, ())), known.get(request, [])
        if table != told:
            yield f"table of {request}: {told}, in the pool {table}"
    for block, found in enumerate(state.references):
        true = references.get(block, 0)
        if found != true:
            yield f"references of block {block}: {found}, in the pool {true}"
        held = true or block in cached
        if held and state.written[block] != levels[block]:
            yield f"level of block {block}: {state.written[block]}, not {levels[block]}"
