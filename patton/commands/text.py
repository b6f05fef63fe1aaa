"""Text form of command streams: lossless, one line an entry, strictly parsed.

A line has one spelling only: what was read is written again and compared, so that a
mistyped or misplaced word is refused instead of guessed at. Lines that begin with `#`,
and empty ones, are comments.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, get_args

import attrs
import numpy as np

from patton.commands.tables import (
    COLUMNS,
    OPTIONAL_COLUMNS,
    Axes,
    Command,
    Frame,
    Loads,
    Op,
    Phase,
    Queries,
    ResultTable,
    Source,
    Strides,
    Tokens,
)
from patton.errors import StreamError

if TYPE_CHECKING:
    from patton.commands.stream import CommandStream

_NOTATION = """\
# Channels count from the head's first, rows from the plane's first; a+b is a run of b
# from a on. An entry without bank= is for all banks; other fields are left out where
# the command has no use for them.
# load: a+b@c are Global Buffer bursts that hold a vector's components from c on."""

_STRIDES = ("channel_stride", "bank_stride", "group_stride")
# Tables whose rows are numbers: field of the stream, class, columns, constants.
_TABLES: Sequence[tuple[str, Any, Sequence[str], Sequence[str]]] = (
    ("tokens", Tokens, ("request", "position"), ()),
    ("queries", Queries, ("request", "start", "end"), ()),
    ("results", ResultTable, ("query", "origin"), _STRIDES),
)
# What an entry shows in any case; the rest only where it differs from its default.
_SHOWN: Mapping[Op, Sequence[str]] = {
    Op.ACT: ("row",),
    Op.WRGB: ("burst", "reference"),
    Op.WRBIAS: ("register",),
    Op.MACAB: ("row", "burst", "register"),
    Op.RDMAC: ("register", "reference"),
    Op.RDAF: ("register", "reference"),
    Op.RDCP: ("row", "burst", "reference"),
    Op.WRCP: ("row", "burst", "reference"),
    Op.RD: ("row", "burst", "reference", "element", "lanes"),
    Op.WR: ("row", "burst", "reference", "element", "lanes", "fill"),
    Op.MACSV: ("row", "burst", "register", "reference"),
}
_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,19}")
_BITS = re.compile(r"0x[0-9a-f]{1,16}")
_RUN = re.compile(r"(.*)\+(.*)@(.*)")
_RUN_SIZE = {"channel": "channels", "bank": "banks", "burst": "count"}
_NO_FIELDS = ("op", *_RUN_SIZE.values())


def write(stream: CommandStream) -> str:
    """The stream as text; the comments at its head explain the notation."""
    head = {"phase": stream.phase, "step": stream.step, "source": stream.source}
    lines = [_line("patton-stream", version=1), _NOTATION, _line("stream", **head)]
    lines.append(_line("frame", **attrs.asdict(stream.frame)))
    if stream.axes is not None:
        token, element = (_join(stride) for stride in attrs.astuple(stream.axes))
        lines.append(_line("axes", token=token, element=element))
    for name, _, columns, constants in _TABLES:
        if getattr(stream, name) is not None:
            lines += _table_lines(getattr(stream, name), name, columns, constants)
    if stream.loads is not None:
        lines += _load_lines(stream.loads)
    optional = [name for name in OPTIONAL_COLUMNS if name in stream.columns()]
    lines.append(_line("entries", rows=len(stream), optional=_join(optional)))
    lines += [_entry_line(entry, stream.frame.banks) for entry in stream.commands()]
    return "\n".join(lines) + "\n"


def read(content: str) -> dict[str, Any]:
    """The fields of the stream that the text describes; raises StreamError."""
    lines = _Lines(content)
    lines.record("patton-stream", ["version"], accept={"version": ("1",)})
    accept = {"phase": list(Phase), "source": get_args(Source)}
    phase, step, source = lines.record("stream", ["phase", "step", "source"], accept)
    fields: dict[str, Any] = {
        "phase": Phase(phase),
        "step": lines.integer(step),
        "source": source,
    }
    sizes = lines.record("frame", [field.name for field in attrs.fields(Frame)])
    frame = Frame(*(lines.integer(size, 1) for size in sizes))
    if lines.due("axes"):
        axes = lines.record("axes", ["token", "element"])
        fields["axes"] = Axes(*(_strides(lines, stride) for stride in axes))
    for name, table, columns, constants in _TABLES:
        if lines.due(name):
            fields[name] = table(*_read_table(lines, name, columns, constants))
    if lines.due("loads"):
        fields["loads"] = _read_loads(lines)
    fields |= _read_entries(lines, frame.banks)
    lines.end()
    return {**fields, "frame": frame}


class _Lines:
    """The lines of a text that are no comments, taken one after another."""

    def __init__(self, content: str) -> None:
        every = content.split("\n")
        self._ahead = [
            (number, line)
            for number, line in enumerate(every, 1)
            if line and not line.startswith("#")
        ]
        self._ahead.append((len(every), ""))
        self._ahead.reverse()
        self._number = 0

    def due(self, keyword: str) -> bool:
        """Whether the next line begins with this word."""
        return self._ahead[-1][1].split(" ")[0] == keyword

    def take(self, accepted: str) -> str:
        """The next line; refused at the end of the text."""
        self._number, line = self._ahead[-1]
        if len(self._ahead) == 1:
            self.refuse("the text ends", accepted)
        self._ahead.pop()
        return line

    def record(
        self,
        keyword: str,
        names: Sequence[str],
        accept: Mapping[str, Sequence[str]] | None = None,
    ) -> list[str]:
        """The values of a line `keyword name=value ...` with exactly these names."""
        accepted = _line(keyword, **dict.fromkeys(names, "..."))
        words = self.take(accepted).split(" ")
        pairs = [word.partition("=") for word in words[1:]]
        if words[0] != keyword or [name for name, _, _ in pairs] != list(names):
            self.refuse(" ".join(words), accepted)
        for name, _, value in pairs:
            if accept and value not in accept.get(name, (value,)):
                self.refuse(f"{name} is {value!r}", " or ".join(accept[name]))
        return [value for _, _, value in pairs]

    def integer(self, word: str, low: int = -(2**63), high: int = 2**63 - 1) -> int:
        """The number that a word of the line last taken spells."""
        if not _INTEGER.fullmatch(word) or not low <= int(word) <= high:
            self.refuse(repr(word), f"a decimal number from {low} to {high}")
        return int(word)

    def end(self) -> None:
        """Refuse anything that follows."""
        if len(self._ahead) > 1:
            self._number, line = self._ahead[-1]
            self.refuse(line, "the end of the text")

    def refuse(self, problem: str, accepted: str) -> NoReturn:
        """Raise the error about the line last taken."""
        raise StreamError(self._number, problem, accepted)


# --- tables ---------------------------------------------------------------------


def _table_lines(
    table: Any, name: str, columns: Sequence[str], constants: Sequence[str]
) -> Iterator[str]:
    lists = [getattr(table, column).tolist() for column in columns]
    values = {constant: getattr(table, constant) for constant in constants}
    yield _line(name, rows=len(lists[0]), **values)
    for row in zip(*lists, strict=True):
        yield _line("-", **dict(zip(columns, row, strict=True)))


def _read_table(
    lines: _Lines, name: str, columns: Sequence[str], constants: Sequence[str]
) -> list[Any]:
    word, *words = lines.record(name, ["rows", *constants])
    size, values = lines.integer(word, 0), [lines.integer(word) for word in words]
    rows = [
        [lines.integer(word) for word in lines.record("-", columns)]
        for _ in range(size)
    ]
    table = np.array(rows, np.int64).reshape(size, len(columns))
    return [*table.T.copy(), *values]


def _load_lines(loads: Loads) -> Iterator[str]:
    yield _line("loads", rows=len(loads.query))
    columns = (column.tolist() for column in (loads.burst, loads.count, loads.origin))
    runs = [f"{b}+{n}@{origin}" for b, n, origin in zip(*columns, strict=True)]
    ptr = loads.ptr.tolist()
    for pattern, query in enumerate(loads.query.tolist()):
        yield _line("-", query=query, runs=_join(runs[ptr[pattern] : ptr[pattern + 1]]))


def _read_loads(lines: _Lines) -> Loads:
    (size,) = lines.record("loads", ["rows"])
    queries, ptr = [], [0]
    runs: list[list[int]] = []
    for _ in range(lines.integer(size, 0)):
        query, words = lines.record("-", ["query", "runs"])
        queries.append(lines.integer(query))
        for word in words.split(",") if words else ():
            if not (match := _RUN.fullmatch(word)):
                lines.refuse(repr(word), "first+count@origin")
            runs.append([lines.integer(number) for number in match.groups()])
        ptr.append(len(runs))
    burst, count, origin = np.array(runs, np.int64).reshape(len(runs), 3).T.copy()
    return Loads(
        np.array(queries, np.int64), np.array(ptr, np.int64), burst, count, origin
    )


def _strides(lines: _Lines, words: str) -> Strides:
    numbers = [lines.integer(word) for word in words.split(",")]
    if len(numbers) != len(Strides._fields):
        lines.refuse(repr(words), ",".join(Strides._fields))
    return Strides(*numbers)


# --- entries --------------------------------------------------------------------


def _entry_line(entry: Command, banks: int) -> str:
    """The canonical line of an entry in a stream for so many banks."""
    shown = _SHOWN[entry.op]
    words = [entry.op.name, f"channel={entry.channel}+{entry.channels}"]
    if (entry.bank, entry.banks) != (0, banks):
        words.append(f"bank={entry.bank}+{entry.banks}")
    if entry.row or "row" in shown:
        words.append(f"row={entry.row}")
    if (entry.burst, entry.count) != (0, 1) or "burst" in shown:
        words.append(f"burst={entry.burst}+{entry.count}")
    for name in ("register", "reference", "element"):
        value = getattr(entry, name)
        if value or (value is not None and name in shown):
            words.append(f"{name}={value}")
    if entry.lanes or (entry.lanes is not None and "lanes" in shown):
        words.append(f"lanes={entry.lanes:#x}")
    if entry.fill or (entry.fill is not None and "fill" in shown):
        words.append(f"fill={entry.fill:d}")
    return " ".join(words)


def _read_entries(lines: _Lines, banks: int) -> dict[str, Any]:
    size, names = lines.record("entries", ["rows", "optional"])
    optional = [name for name in OPTIONAL_COLUMNS if name in names.split(",")]
    if _join(optional) != names:
        lines.refuse(repr(names), f"some of {_join(tuple(OPTIONAL_COLUMNS))} in order")
    types = {**COLUMNS, **{name: OPTIONAL_COLUMNS[name] for name in optional}}
    limits = {name: _limits_of(kind) for name, kind in types.items()}
    all_banks = lines.integer(str(banks), *limits["banks"])
    defaults = dict.fromkeys(types, 0) | {"count": 1, "banks": all_banks}
    rows = [_read_entry(lines, limits, defaults) for _ in range(lines.integer(size, 0))]
    columns = zip(*rows, strict=True) if rows else [()] * len(types)
    pairs = zip(types.items(), columns, strict=True)
    return {name: np.array(column, kind) for (name, kind), column in pairs}


def _read_entry(
    lines: _Lines, limits: Mapping[str, tuple[int, int]], defaults: Mapping[str, int]
) -> list[int]:
    """The columns of the next entry; limits: least and most of each column."""
    line = lines.take("an entry")
    name, *words = line.split(" ")
    if name not in Op.__members__:
        lines.refuse(repr(name), _join(tuple(Op.__members__)))
    values = {**defaults, "op": int(Op[name])}
    for word in words:
        field, _, value = word.partition("=")
        first, _, size = value.partition("+")
        if field not in limits or field in _NO_FIELDS:
            lines.refuse(repr(word), "a field of the stream's entries")
        if field in _RUN_SIZE:
            column = _RUN_SIZE[field]
            values[column] = lines.integer(size, *limits[column])
        if _BITS.fullmatch(first):
            first = str(int(first, 16))
        values[field] = lines.integer(first, *limits[field])
    entry = Command(**{**values, "op": Op[name]})  # type: ignore[arg-type]
    canonical = _entry_line(entry, defaults["banks"])
    if canonical != line:
        lines.refuse(line, canonical)
    return list(values.values())


def _limits_of(kind: type[np.generic]) -> tuple[int, int]:
    if issubclass(kind, np.bool_):
        return 0, 1
    limits = np.iinfo(np.dtype(kind))
    return int(limits.min), int(limits.max)


def _line(keyword: str, **fields: object) -> str:
    return " ".join([keyword, *(f"{name}={value}" for name, value in fields.items())])


def _join(items: Sequence[object]) -> str:
    return ",".join(str(item) for item in items)
