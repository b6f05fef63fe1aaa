"""The vocabulary of command streams, and the tables that say what their data mean.

With these tables operands, reduction and provenance need no address map: a stream alone
says which token, element or score every burst of it stands for.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum, StrEnum
from typing import Literal, NamedTuple, TypeAlias

import attrs
import numpy as np
from numpy.typing import NDArray

Ints: TypeAlias = NDArray[np.int64]
Source: TypeAlias = Literal["host", "read-back", "copy"]

COLUMNS: Mapping[str, type[np.generic]] = {
    "op": np.uint8,
    "channel": np.uint16,
    "channels": np.uint16,
    "bank": np.uint8,
    "banks": np.uint8,
    "row": np.uint32,
    "burst": np.uint16,
    "count": np.uint16,
    "register": np.uint8,
    "reference": np.int32,
}
OPTIONAL_COLUMNS: Mapping[str, type[np.generic]] = {
    "element": np.int32,
    "lanes": np.uint64,
    "fill": np.bool_,
}


class Op(IntEnum):
    """Kinds of commands (Paper 2.2), and RD and WR of a bank."""

    ACT = 0  # open a row in some banks, closing what was open there
    WRGB = 1  # host bursts -> Global Buffer
    WRBIAS = 2  # set a result register of every bank to zero
    MACAB = 3  # every bank: bank burst b times Global Buffer burst b, into a register
    RDMAC = 4  # read a result register of every bank, which leaves it undefined
    RDAF = 5  # read the outputs of the activation function; no generator emits it
    RDCP = 6  # bursts of one bank -> Global Buffer
    WRCP = 7  # Global Buffer -> bursts of one bank
    RD = 8  # bank burst -> host
    WR = 9  # host -> bank burst, whole or in single lanes
    MACSV = 10  # outer product, of modified units only (`patton.systems.outer`)


class Phase(StrEnum):
    """What a stream of an engine step is for."""

    KEY_WRITE = "key-write"
    VALUE_WRITE = "value-write"
    COMMIT = "commit"
    QK = "qk"
    SV = "sv"
    PARTIAL = "partial"
    READ_KEY = "read-key"
    READ_VALUE = "read-value"


@attrs.frozen
class Frame:
    """How a stream, which speaks of one head and one plane, covers a whole layer.

    Head h runs on channels `(h % groups) * channels_per_head + channel` and rows
    `(layer * folds + h // groups) * rows_per_plane + row`: one command goes to all
    channel groups at once, and the stream is run once per fold. head_dim is in
    elements; elements beyond it are padding, zero when written and of no meaning in
    results.
    """

    heads: int
    heads_per_kv: int
    groups: int
    channels_per_head: int
    folds: int
    rows_per_plane: int
    banks: int
    lanes: int
    bursts_per_row: int
    head_dim: int


class Strides(NamedTuple):
    """What one step along each dimension of an entry's rectangle adds to an index."""

    channel: int
    bank: int
    burst: int
    lane: int


@attrs.frozen
class Axes:
    """Which datum lies where in the rectangle of a WR or RD entry.

    At (channel offset, bank offset, burst offset, absolute lane) lies element
    `element + strides` of token `reference + strides`; a token is an index into the
    stream's `Tokens`. `reference` speaks of lane 0 and may so be negative.
    """

    token: Strides
    element: Strides


@attrs.frozen(eq=False)
class Tokens:
    """The tokens that a stream writes or reads [tokens].

    request: index into the step's requests; position: in that request.
    """

    request: Ints
    position: Ints


@attrs.frozen(eq=False)
class Queries:
    """The query tokens of the step [queries]; each sees positions [start, end).

    request: index into the step's requests.
    """

    request: Ints
    start: Ints
    end: Ints


@attrs.frozen(eq=False)
class Loads:
    """What Global Buffer loads carry: a pattern of runs of bursts (CSR by ptr).

    Reference r of a WRGB means pattern `r // heads_per_kv` of the query head
    `query[pattern] * heads_per_kv + r % heads_per_kv`. Run k of a pattern says: buffer
    bursts [burst, burst + count) hold components `origin + lanes * i + lane`, i from 0.
    QK: components of the query, zero from head_dim on. SV and PARTIAL: the weights by
    absolute token position, zero outside the query's visible range.
    """

    query: Ints  # [patterns]
    ptr: Ints  # [patterns + 1]
    burst: Ints  # [runs], like the following
    count: Ints
    origin: Ints


@attrs.frozen(eq=False)
class ResultTable:
    """What the values of RDMAC entries are.

    Reference r means in the k-th channel of the entry group `r // heads_per_kv + k *
    group_stride`, of the query head `query[group] * heads_per_kv + r % heads_per_kv`:
    one command may read channels that work for different queries. The value of bank b
    there is component `origin[group] + k * channel_stride + b * bank_stride`. QK: the
    score of that token position, to be dropped outside the visible range. SV and
    PARTIAL: a summand of that output element, to be dropped from head_dim on; summands
    of an element are added in stream order.
    """

    query: Ints  # [groups]
    origin: Ints  # [groups]
    channel_stride: int
    bank_stride: int
    group_stride: int = 0


@attrs.frozen
class Command:
    """One entry of a stream in readable form; the fields as in `CommandStream`."""

    op: Op
    channel: int
    channels: int
    bank: int
    banks: int
    row: int
    burst: int
    count: int
    register: int
    reference: int
    element: int | None = None
    lanes: int | None = None
    fill: bool | None = None

    def __str__(self) -> str:
        words = [
            self.op.name,
            f"channel={self.channel}+{self.channels}",
            f"bank={self.bank}+{self.banks}",
            f"row={self.row}",
            f"burst={self.burst}+{self.count}",
            f"register={self.register}",
            f"reference={self.reference}",
        ]
        if self.element is not None:
            words.append(f"element={self.element}")
        if self.lanes is not None and self.fill is not None:
            words.append(f"lanes={self.lanes:#x} fill={self.fill:d}")
        return " ".join(words)
