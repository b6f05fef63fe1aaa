"""What every executor returns for what it did not execute."""

from __future__ import annotations

from patton.commands import Op, Phase
from patton.executor import Results
from tests.core.hand_made import ALL_LANES, KEY_AXES, entry, stream


def test_empty_results_have_the_shapes_and_types_of_results() -> None:
    entries = [
        entry(Op.RDMAC, channels=2),
        entry(Op.RD, bank=1, banks=3, count=2, lanes=ALL_LANES),
    ]
    empty = Results.empty(stream(Phase.READ_KEY, entries, axes=KEY_AXES))
    found = [
        (each.dtype.name, each.shape)
        for each in (empty.mac, empty.mac_written, empty.read, empty.read_written)
    ]

    assert found == [
        ("uint16", (2, 3, 4)),
        ("bool", (2, 3, 4)),
        ("uint16", (6, 3, 8)),
        ("bool", (6, 3, 8)),
    ]
