"""Command streams: how entries are counted, and their text form."""

from __future__ import annotations

from typing import Any

import attrs
import numpy as np
import pytest

from patton.commands import (
    COLUMNS,
    OPTIONAL_COLUMNS,
    Axes,
    Command,
    CommandStream,
    Frame,
    Loads,
    Op,
    Phase,
    Queries,
    ResultTable,
    Strides,
    Tokens,
)
from patton.errors import StreamError

FRAME = Frame(
    heads=8,
    heads_per_kv=4,
    groups=8,
    channels_per_head=4,
    folds=1,
    rows_per_plane=512,
    banks=16,
    lanes=16,
    bursts_per_row=64,
    head_dim=128,
)
DEFAULTS = {"channels": 1, "banks": 16, "count": 1}
ENTRIES: list[dict[str, int]] = [
    {"op": Op.ACT, "channels": 4, "bank": 2, "banks": 3, "row": 7},
    {"op": Op.WRGB, "channels": 4, "burst": 8, "count": 5, "reference": 3},
    {"op": Op.WRBIAS, "register": 1},
    {"op": Op.MACAB, "row": 7, "burst": 8, "count": 5, "register": 1},
    {"op": Op.RDMAC, "channels": 2, "register": 1, "reference": 6},
    {"op": Op.RDCP, "bank": 3, "banks": 1, "row": 7, "count": 2, "reference": 9},
    {"op": Op.WRCP, "bank": 3, "banks": 1, "row": 7, "count": 2, "reference": 9},
    {"op": Op.RD, "channels": 2, "banks": 3, "row": 7, "count": 2, "lanes": 0xFFFF},
    {"op": Op.WR, "channels": 2, "row": 7, "count": 2, "reference": -3, "lanes": 2**63},
    {"op": Op.RDAF, "register": 0},
    {"op": Op.MACSV, "row": 7, "count": 9, "register": 1, "reference": 8},
]


def ints(*values: int) -> Any:
    return np.array(values, np.int64)


def stream_of(entries: list[dict[str, int]], **fields: Any) -> CommandStream:
    columns = {
        name: np.array([e.get(name, DEFAULTS.get(name, 0)) for e in entries], kind)
        for name, kind in {**COLUMNS, **OPTIONAL_COLUMNS}.items()
    }
    return CommandStream(
        phase=Phase.COMMIT, step=3, frame=FRAME, **{**columns, **fields}
    )


def test_entries_count_their_commands() -> None:
    """Banks and bursts count where a command names one; channels never do."""
    stream = stream_of(ENTRIES)

    assert [1, 5, 1, 5, 1, 2, 2, 6, 32, 1, 9] == stream.command_counts().tolist()
    assert [
        0,
        1,
        6,
        7,
        12,
        13,
        15,
        17,
        23,
        55,
        56,
        65,
    ] == stream.command_offsets().tolist()
    assert {**dict.fromkeys(Op, 1), Op.WRGB: 5, Op.MACAB: 5} | {
        Op.RDCP: 2,
        Op.WRCP: 2,
        Op.RD: 6,
        Op.WR: 32,
        Op.MACSV: 9,
    } == stream.counts()
    assert len(ENTRIES) == len(stream)


def test_counts_leave_out_what_does_not_occur() -> None:
    """Kinds without commands are no keys."""
    assert {Op.ACT: 1} == stream_of(ENTRIES[:1]).counts()
    assert {} == stream_of([]).counts()


def test_activations_are_all_bank_equivalents() -> None:
    """Three of sixteen banks in four channels."""
    assert 12 / 16 == stream_of(ENTRIES).activations()


def test_payload_goes_to_loads_and_writes_of_the_host() -> None:
    """A WR takes a burst per channel, bank and burst, unless the device has them."""
    host, device = stream_of(ENTRIES), stream_of(ENTRIES, source="read-back")

    assert [0, 5, 0, 0, 0, 0, 0, 0, 64, 0, 0] == host.payload_bursts().tolist()
    assert [0, 0, 5, 5, 5, 5, 5, 5, 5, 69, 69, 69] == host.payload_offsets().tolist()
    assert 5 == device.payload_offsets()[-1]


def test_results_come_from_reads() -> None:
    """A row of values per channel of an RDMAC, and the bursts of an RD."""
    stream = stream_of(ENTRIES)

    assert [0, 0, 0, 0, 0, 2, 2, 2, 2, 2, 2, 2] == stream.mac_offsets().tolist()
    assert [0, 0, 0, 0, 0, 0, 0, 0, 12, 12, 12, 12] == stream.read_offsets().tolist()


def test_commands_are_readable() -> None:
    """The view has the fields of the columns, in Python's own types."""
    command = list(stream_of(ENTRIES).commands())[8]

    assert command == Command(
        Op.WR, 0, 2, 0, 16, 7, 0, 2, 0, -3, element=0, lanes=2**63, fill=False
    )
    assert str(command) == (
        "WR channel=0+2 bank=0+16 row=7 burst=0+2 register=0 reference=-3 "
        "element=0 lanes=0x8000000000000000 fill=0"
    )
    bare = attrs.evolve(command, element=None, lanes=None, fill=None)
    assert str(bare).endswith("reference=-3")


# --- text -----------------------------------------------------------------------

TABLES: dict[str, Any] = {
    "axes": Axes(Strides(0, 1, 0, 0), Strides(0, 0, 16, 1)),
    "tokens": Tokens(ints(0, 0), ints(17, 18)),
    "queries": Queries(ints(0), ints(2), ints(19)),
    "results": ResultTable(ints(0, 0), ints(0, 64), 16, 1),
    "loads": Loads(
        ints(0, 0, 0), ints(0, 2, 2, 3), ints(8, 12, 0), ints(4, 1, 64), ints(0, 64, 5)
    ),
}
TEXT = """\
patton-stream version=1
stream phase=commit step=3 source=host
frame heads=8 heads_per_kv=4 groups=8 channels_per_head=4 folds=1 rows_per_plane=512 \
banks=16 lanes=16 bursts_per_row=64 head_dim=128
axes token=0,1,0,0 element=0,0,16,1
tokens rows=2
- request=0 position=17
- request=0 position=18
queries rows=1
- request=0 start=2 end=19
results rows=2 channel_stride=16 bank_stride=1 group_stride=0
- query=0 origin=0
- query=0 origin=64
loads rows=3
- query=0 runs=8+4@0,12+1@64
- query=0 runs=
- query=0 runs=0+64@5
entries rows=11 optional=element,lanes,fill
ACT channel=0+4 bank=2+3 row=7
WRGB channel=0+4 burst=8+5 reference=3
WRBIAS channel=0+1 register=1
MACAB channel=0+1 row=7 burst=8+5 register=1
RDMAC channel=0+2 register=1 reference=6
RDCP channel=0+1 bank=3+1 row=7 burst=0+2 reference=9
WRCP channel=0+1 bank=3+1 row=7 burst=0+2 reference=9
RD channel=0+2 bank=0+3 row=7 burst=0+2 reference=0 element=0 lanes=0xffff
WR channel=0+2 row=7 burst=0+2 reference=-3 element=0 lanes=0x8000000000000000 fill=0
RDAF channel=0+1 register=0 reference=0
MACSV channel=0+1 row=7 burst=0+9 register=1 reference=8
"""


def bare(text: str) -> str:
    """Without comments."""
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    return "\n".join(lines) + "\n"


def assert_same(one: Any, other: Any) -> None:
    """Equal in every value, type and missing part."""
    assert type(one) is type(other)
    if isinstance(one, np.ndarray):
        assert (one.dtype, one.tolist()) == (other.dtype, other.tolist())
    elif attrs.has(type(one)):
        for field in attrs.fields(type(one)):
            assert_same(getattr(one, field.name), getattr(other, field.name))
    else:
        assert one == other


def test_text_is_readable() -> None:
    """Tables first, then a line an entry, with what the entry has a use for."""
    assert TEXT == bare(stream_of(ENTRIES, **TABLES).to_text())


def test_text_loses_nothing() -> None:
    """Whatever a stream holds, also fields that a command has no use for."""
    rng = np.random.default_rng(1)
    full = stream_of(ENTRIES, **TABLES)
    wild: dict[str, Any] = {}
    for name, column in full.columns().items():
        size = column.dtype.itemsize
        wild[name] = np.frombuffer(rng.bytes(200 * size), f"u{size}").astype(
            column.dtype
        )
    wild["op"] %= len(Op)
    for name, column in wild.items():  # some at their defaults
        column[::3] = full.columns()[name][0]
    without: dict[str, Any] = dict.fromkeys((*OPTIONAL_COLUMNS, "axes"))
    for stream in (
        full,
        stream_of([]),
        attrs.evolve(full, **wild),
        attrs.evolve(full, source="read-back", fill=None),
        attrs.evolve(full, **without),
    ):
        text = stream.to_text()

        assert_same(stream, CommandStream.from_text(text))
        assert text == CommandStream.from_text(text).to_text()


def test_comments_and_empty_lines_are_passed_over() -> None:
    """They may stand anywhere, and count as lines."""
    text = "# hello\n\n" + TEXT.replace("MACAB", "# the product\nMACAB")
    assert_same(CommandStream.from_text(TEXT), CommandStream.from_text(text))

    with pytest.raises(StreamError) as caught:
        CommandStream.from_text(text.replace("RDAF", "RDAFF"))
    assert text.splitlines().index("RDAF channel=0+1 register=0 reference=0") + 1 == (
        caught.value.line
    )


@pytest.mark.parametrize(
    ("found", "replacement", "line", "accepted"),
    [
        ("version=1", "version=2", 1, "1"),
        ("patton-stream", "stream", 1, "patton-stream version=..."),
        ("phase=commit", "phase=commits", 2, "qk"),
        ("step=3", "step=x", 2, "decimal number"),
        ("step=3", "step=03", 2, "decimal number"),
        ("step=3", "step=" + "9" * 5000, 2, "decimal number"),
        ("step=3 source=host", "source=host step=3", 2, "stream phase=..."),
        ("source=host", "source=hosts", 2, "read-back"),
        ("heads=8 ", "heads=0 ", 3, "from 1 to"),
        ("banks=16", "banks=300", 17, "from 0 to 255"),
        ("heads=8 ", "", 3, "frame heads=..."),
        ("token=0,1,0,0", "token=0,1,0", 4, "channel,bank,burst,lane"),
        ("position=18", "position=18 ", 7, "- request=... position=..."),
        ("- request=0 position=18\n", "", 7, "- request=... position=..."),
        ("tokens rows=2", "tokens rows=1", 7, "entries rows=... optional=..."),
        ("tokens rows=2", "tokens rows=-1", 5, "from 0"),
        ("8+4@0", "8+4", 14, "first+count@origin"),
        ("8+4@0", "8+4@", 14, "decimal number"),
        ("element,lanes,fill", "lanes,element,fill", 17, "element,lanes,fill"),
        ("rows=11", "rows=10", 28, "the end of the text"),
        ("rows=11", "rows=12", 29, "an entry"),
        ("MACAB", "MAC", 21, "ACT,WRGB,WRBIAS,MACAB"),
        ("burst=8+5 register=1", "register=1 burst=8+5", 21, "burst=8+5 register=1"),
        ("burst=8+5 register=1", "burst=8 register=1", 21, "decimal number"),
        ("WRBIAS channel=0+1", "WRBIAS channel=0+1 row=0", 20, "WRBIAS channel=0+1 "),
        ("register=1 reference=6", "register=256 reference=6", 22, "from 0 to 255"),
        ("register=1 reference=6", "op=1 reference=6", 22, "a field"),
        ("register=1 reference=6", "channels=1 reference=6", 22, "a field"),
        ("lanes=0xffff", "lanes=65535", 25, "lanes=0xffff"),
        ("lanes=0xffff", "lanes=0xFFFF", 25, "decimal number"),
        ("fill=0", "fill=2", 26, "from 0 to 1"),
        ("reference=-3", "reference=-3 reference=-3", 26, "reference=-3 element=0"),
        ("optional=element,lanes,fill", "optional=element,lanes", 26, "a field"),
    ],
)
def test_parser_guesses_nothing(
    found: str, replacement: str, line: int, accepted: str
) -> None:
    """A text that is not as it would be written is refused, with its line."""
    text = TEXT.replace(found, replacement, 1)
    assert text != TEXT

    with pytest.raises(StreamError) as caught:
        CommandStream.from_text(text)

    assert line == caught.value.line
    assert accepted in caught.value.accepted
    assert str(caught.value).startswith(f"line {line}: ")


def test_every_truncation_is_refused() -> None:
    """Wherever a text is cut, at a line or inside one, the parser notices."""
    for end in range(len(TEXT) - 1):
        with pytest.raises(StreamError):
            CommandStream.from_text(TEXT[:end])


def test_any_damage_is_refused_or_read_as_it_stands() -> None:
    """A changed character never ends in another error, nor in another text."""
    rng = np.random.default_rng(2)
    for _ in range(3000):
        place = int(rng.integers(len(TEXT)))
        letter = str(rng.choice(list("0123456789abcdefxR-+=@,# \n\x00\u0663")))
        text = TEXT[:place] + letter + TEXT[place + int(rng.integers(2)) :]
        try:
            stream = CommandStream.from_text(text)
        except StreamError:
            continue
        assert bare(stream.to_text()).splitlines() == [
            line for line in bare(text).splitlines() if line
        ]
