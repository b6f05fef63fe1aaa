"""In how many parts SV makes its sums: the clause CMD-RUNS.

That each sum has exactly its terms is for the validator (`patton.device.provenance`),
which does not ask how many accumulators it takes.
"""

from __future__ import annotations

from patton.commands import CommandStream, Op
from patton.commit_zone import NO_SLOT
from patton.steps import PlacedStep


def accumulators(stream: CommandStream | None, op: Op) -> int:
    """Accumulators, over all channels, that commands of a kind set up or read."""
    return 0 if stream is None else int(stream.channels[stream.op == op].sum())


def runs_due(placed: PlacedStep) -> int:
    """What SV needs: one for each row of each Value Row Set that a query sees.

    That is on every channel of the set's stripe, and for each query head.
    """
    layout = placed.layout
    queries = (placed.read_request, placed.read_start, placed.read_end)
    rows = zip(*(column.tolist() for column in queries), strict=True)
    sets = sum(len(_sets_seen(placed, *query)) for query in rows)
    each = layout.rows_per_value * layout.value_channels
    return sets * each * layout.model.query_heads_per_kv


def _sets_seen(
    placed: PlacedStep, request: int, start: int, end: int
) -> set[tuple[int, int]]:
    """Value Row Sets and stripes in which a query sees a block."""
    layout, tables = placed.layout, placed.tables
    first = int(tables.ptr[request])
    found: set[tuple[int, int]] = set()
    size = layout.block_tokens
    for index in range(start // size, -(-end // size)):
        granule = int(tables.granule[first + index])
        if granule >= 0 and tables.slot[first + index] == NO_SLOT:
            place, stripe = divmod(granule, layout.stripes)
            found.add((place // layout.values_per_set, stripe))
    return found
