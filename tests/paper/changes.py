"""Changes of the code that the tests of the paper must notice; see `breaking`.

Of the address map, of the shapes of a layout, of presets and of streams; those of the
runtime are in `fuzz.bugs`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import attrs
import numpy as np

from patton import config, generate, layout, runtime
from patton.addresses import Address
from patton.commands import CommandStream, Op
from patton.device import aim

Wrong = Callable[..., Any]


@attrs.frozen
class Change:
    """Of something in a module, a class or a dictionary, while it is `planted`."""

    name: str
    owner: Any
    key: str
    wrong: Callable[[Any], Any]

    @contextmanager
    def planted(self) -> Iterator[None]:
        """Within, it is so."""
        inside = isinstance(self.owner, dict)
        old = self.owner[self.key] if inside else vars(self.owner)[self.key]
        given = old.__func__ if isinstance(old, classmethod) else old
        self._put(self.wrong(given))
        try:
            yield
        finally:
            self._put(old)

    def _put(self, value: Any) -> None:
        if isinstance(self.owner, dict):
            self.owner[self.key] = value
        else:
            setattr(self.owner, self.key, value)


# --- the address map and the shapes of a layout ---------------------------------------


def moved(change: Callable[[Address, Any], Address]) -> Callable[[Wrong], Wrong]:
    """An address function whose result is changed."""
    return lambda old: lambda m, *place: change(old(m, *place), m)


def shaped(**fields: Callable[[Any], Any]) -> Callable[[Wrong], Wrong]:
    """Shapes of which some fields are changed."""

    def wrong(old: Wrong) -> Wrong:
        def shapes(*arguments: Any) -> Any:
            found = old(*arguments)
            new = {
                name: change(getattr(found, name)) for name, change in fields.items()
            }
            return attrs.evolve(found, **new)

        return shapes

    return wrong


ADDRESSES: Any = layout._ADDRESS_OF

PLACES = [
    Change(
        "tokens of a Key in the next bank",
        *(ADDRESSES, "key"),
        moved(lambda a, m: a._replace(bank=(a.bank + 1) % m.banks)),
    ),
    Change(
        "elements of a Key leave a column free",
        *(ADDRESSES, "key"),
        moved(lambda a, _: a._replace(burst=2 * a.burst)),
    ),
    Change(
        "Keys on one channel",
        *(ADDRESSES, "key"),
        moved(
            lambda a, m: a._replace(channel=a.channel - a.channel % m.channels_per_head)
        ),
    ),
    Change(
        "tokens of a Value in other lanes",
        *(ADDRESSES, "value"),
        moved(lambda a, m: a._replace(lane=m.lanes - 1 - a.lane)),
    ),
    Change(
        "a column free between Values",
        *(ADDRESSES, "value"),
        moved(lambda a, _: a._replace(burst=2 * a.burst)),
    ),
    Change(
        "parts of a Value in one row",
        *(ADDRESSES, "value"),
        moved(
            lambda a, m: a._replace(row=a.row - (a.row - m.key_rows) % m.rows_per_value)
        ),
    ),
    Change(
        "parts of a slot in rows of their own",
        *(ADDRESSES, "slot"),
        moved(lambda a, _: a._replace(row=a.row + a.burst % 2)),
    ),
    Change(
        "slots leave a column free",
        *(ADDRESSES, "slot"),
        moved(lambda a, _: a._replace(burst=2 * a.burst)),
    ),
    Change(
        "a slot less in a row", layout, "_shapes", shaped(slots_per_row=lambda n: n - 1)
    ),
    Change(
        "a Key less in a row", layout, "_shapes", shaped(keys_per_row=lambda n: n - 1)
    ),
    Change(
        "any block is accepted",
        layout,
        "_check_block_tokens",
        lambda _: lambda *_: None,
    ),
    Change(
        "pairs of twice as many blocks",
        *(layout.Layout, "of"),
        lambda old: classmethod(
            lambda cls, *a, **k: old(cls, *a, **({"pair_blocks": 32} | k))
        ),
    ),
    Change(
        "channels of more banks",
        *(config.DEVICE_PRESETS, "ddr5"),
        lambda old: lambda: attrs.evolve(old(), banks=64),
    ),
]


# --- streams --------------------------------------------------------------------------


def edited(**columns: Callable[[CommandStream, Any], Any]) -> Callable[[Wrong], Wrong]:
    """A generator whose streams have some columns changed."""

    def wrong(old: Wrong) -> Wrong:
        def stream_of(*arguments: Any) -> CommandStream | None:
            stream: CommandStream | None = old(*arguments)
            if stream is None:
                return None
            new: dict[str, Any] = {}
            for name, change in columns.items():
                column = getattr(stream, name)
                new[name] = change(stream, column).astype(column.dtype)
            return attrs.evolve(stream, **new)

        return stream_of

    return wrong


def without(op: Op) -> Callable[[Wrong], Wrong]:
    """A generator that leaves out every other command of a kind."""

    def wrong(old: Wrong) -> Wrong:
        def stream_of(*arguments: Any) -> CommandStream | None:
            stream: CommandStream | None = old(*arguments)
            if stream is None:
                return None
            found = np.flatnonzero(stream.op == op)
            kept = np.delete(np.arange(len(stream)), found[1::2])
            columns: dict[str, Any] = {n: c[kept] for n, c in stream.columns().items()}
            return attrs.evolve(stream, **columns)

        return stream_of

    return wrong


def only_at(
    op: Op, change: Callable[[Any], Any]
) -> Callable[[CommandStream, Any], Any]:
    """A column changed at the commands of a kind."""
    return lambda stream, column: np.where(stream.op == op, change(column), column)


STREAMS = [
    Change("score_stream: half of its set-ups", generate, "score_stream",
           without(Op.WRBIAS)),
    Change("value_stream: half of its set-ups", generate, "value_stream",
           without(Op.WRBIAS)),
    Change("score_stream: products of half the banks", generate, "score_stream",
           edited(banks=only_at(Op.MACAB, lambda n: n // 2))),
    Change("score_stream: loads one column on", generate, "score_stream",
           edited(burst=only_at(Op.WRGB, lambda n: n + 1))),
    Change("value_stream: loads one column on", generate, "value_stream",
           edited(burst=only_at(Op.WRGB, lambda n: n + 1))),
    Change("value_writes: half of the rows", generate, "value_writes", without(Op.ACT)),
    Change("value_writes: half of the parts", generate, "value_writes", without(Op.WR)),
]  # fmt: skip


# --- runtime and timing ---------------------------------------------------------------

OTHERS = [
    Change("rows of half the size", config, "aim_gddr6",
           lambda old: lambda: attrs.evolve(old(), row_bytes=1024)),
    Change("writes are forgotten", runtime, "check_writes",
           lambda old: lambda state, step, ends: old(state, step, ends)[:0]),
    Change("the simulator is a cycle late", aim, "simulate",
           lambda old: lambda trace: attrs.evolve(
               found := old(trace), cycles=found.cycles + 2)),
]  # fmt: skip

CHANGES = {change.name: change for change in (*PLACES, *STREAMS, *OTHERS)}
