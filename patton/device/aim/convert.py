"""From command streams to the simulator's trace format: what a layer really sends.

A stream speaks of one head; a trace addresses all channels of a layer, so the mask of
a line covers every head of a fold, and the stream is sent once per fold. Rows become
those of the device. The simulator opens rows by itself, so ACT entries have no line:
they and everything else that the format cannot say stand in notes (`notes`), from which
`recover` makes the same stream again.

Limits of the format: 32 channels of 16 banks; bursts count from the first of a row, but
timing knows no columns, so only the note is affected; no result registers, so a device
with several is timed as if the lines named them. WR_ABK is not used for Values:
it writes one lane of each bank, but the write that opens a burst must fill all of it.

Operands of a multicast command resolve per head and channel. "shared" sends one line to
all of them ("across groups, only the data differ"), "split" one line for each operand
that the host sends: a Global Buffer load per head, a write per head and channel.
Results are not operands: a multicast read returns a burst from every channel.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, Literal, get_args

import attrs

from patton.commands import CommandStream, Frame, Op
from patton.device.aim.notes import act_word, entry_note, header_note
from patton.device.aim.trace import (
    BANKS,
    CHANNELS,
    LAST,
    Instruction,
    Opcode,
    mask_of,
)
from patton.errors import FrameError

Operands = Literal["shared", "split"]
OPERAND_WAYS: Final[tuple[Operands, ...]] = get_args(Operands)

OPCODES: Final = {
    Op.WRGB: Opcode.WR_GB,
    Op.WRBIAS: Opcode.WR_BIAS,
    Op.MACAB: Opcode.MAC_ABK,
    Op.RDMAC: Opcode.RD_MAC,
    Op.RDAF: Opcode.RD_AF,
    Op.RDCP: Opcode.COPY_BKGB,
    Op.WRCP: Opcode.COPY_GBBK,
    Op.RD: Opcode.RD_SBK,
    Op.WR: Opcode.WR_SBK,
    Op.MACSV: Opcode.MAC_ABK,  # takes a burst of every bank at the same rate
}
NAMES_ROW: Final = frozenset({Op.MACAB, Op.MACSV, Op.RDCP, Op.WRCP, Op.RD, Op.WR})
COPIES: Final = frozenset({Op.RDCP, Op.WRCP})
BANK_BY_BANK: Final = frozenset({Op.RD, Op.WR})

SYNC: Final = Instruction(Opcode.SYNC)

# The simulator's SYNC and EOC do not wait for a write whose row was just activated: at
# the end it would be lost. Host lines take a cycle each, and as many as it can need
# (nRCDWR + nCWL + nBL, and some more for a few at once) let it come to its end.
SETTLING: Final = (SYNC, *(Instruction(Opcode.W_GPR),) * 44)


@attrs.frozen
class Conversion:
    """Lines for a layer, and for each the index of the entry it serves, else -1."""

    instructions: list[Instruction]
    entries: list[int]


def convert(
    stream: CommandStream, *, layer: int = 0, operands: Operands = "shared"
) -> Conversion:
    """The lines that carry out a stream on a layer, without notes and EOC.

    Where data come back to be written, a SYNC waits for them. Raises FrameError for
    what the format cannot address.
    """
    check_frame(stream.frame, layer, operands)
    names = ("op", "channel", "channels", "bank", "banks", "row", "count")
    keys = list(zip(*(getattr(stream, name).tolist() for name in names), strict=True))
    writes = stream.op == Op.WR
    awaited = int(writes.argmax()) if stream.source == "read-back" else -1
    found = Conversion([], [])
    instructions, entries = found.instructions, found.entries
    for fold in range(stream.frame.folds):
        sender = Sender.of(stream.frame, layer, fold, operands)
        # Streams repeat the same lines for every query head.
        known: dict[tuple[int, ...], list[Instruction]] = {}
        for index, key in enumerate(keys):
            lines = known.get(key)
            if lines is None:
                lines = known[key] = sender.lines(*key)
            if index == awaited and writes[index]:
                instructions.append(SYNC)
                entries.append(-1)
            instructions += lines
            entries += [index] * len(lines)
    return found


def stream_trace(
    stream: CommandStream,
    *,
    layer: int = 0,
    operands: Operands = "shared",
    notes: bool = True,
) -> list[Instruction]:
    """As `convert`, the lines alone; from those with notes `recover` makes the stream.

    The notes stand in the first fold.
    """
    found = convert(stream, layer=layer, operands=operands)
    if not notes:
        return found.instructions
    frame, lines = stream.frame, list(found.instructions)
    base = layer * frame.folds * frame.rows_per_plane
    first: dict[int, int] = {}
    for place, served in enumerate(found.entries):
        first.setdefault(served, place)
    ahead: list[tuple[str, str]] = list(header_note(stream, layer, operands))
    acts: list[str] = []
    for index, entry in enumerate(stream.commands()):
        if entry.op == Op.ACT:
            acts.append(act_word(entry))
            continue
        line = lines[first[index]]
        if acts:
            ahead.append(("act", ",".join(acts)))
        note = (*ahead, *entry_note(frame, entry, line, base))
        lines[first[index]] = line._replace(note=note)
        ahead, acts = [], []
    if acts:
        ahead.append(("act", ",".join(acts)))
    if ahead:
        lines.append(SYNC._replace(note=tuple(ahead)))
    return lines


def layer_trace(
    streams: Iterable[CommandStream],
    *,
    layer: int = 0,
    operands: Operands = "shared",
    notes: bool = True,
) -> Iterator[Instruction]:
    """Streams one after the other, each complete before the next begins."""
    for stream in streams:
        yield from stream_trace(stream, layer=layer, operands=operands, notes=notes)
        yield from SETTLING if (stream.op == Op.WR).any() else (SYNC,)


def check_frame(frame: Frame, layer: int, operands: str) -> None:
    """Raises FrameError if traces cannot address all of what the frame covers."""
    channels = frame.groups * frame.channels_per_head
    last = (layer + 1) * frame.folds * frame.rows_per_plane - 1
    least = min(frame.heads, frame.groups, frame.folds, frame.rows_per_plane)
    if least < 1:
        raise FrameError("sizes", frame, "sizes from 1")
    if operands not in OPERAND_WAYS:
        raise FrameError("operands", operands, " or ".join(OPERAND_WAYS))
    if channels > CHANNELS:
        raise FrameError("channels", channels, f"at most {CHANNELS} in a trace")
    if frame.banks != BANKS:
        raise FrameError("banks", frame.banks, f"{BANKS}, as traces address them")
    if layer < 0 or last > LAST["row"]:
        raise FrameError("layer", layer, f"0 and up, with rows to {LAST['row']}")


def heads_of_fold(frame: Frame, fold: int) -> int:
    """Channel groups that a fold uses; the last one may leave some idle."""
    return min(frame.groups, frame.heads - fold * frame.groups)


@attrs.frozen
class Sender:
    """Entries to lines of one fold. heads: of the fold; base: its first row."""

    frame: Frame
    heads: int
    base: int
    split: bool

    @classmethod
    def of(cls, frame: Frame, layer: int, fold: int, operands: str) -> Sender:
        """For a fold of a layer."""
        base = (layer * frame.folds + fold) * frame.rows_per_plane
        return cls(frame, heads_of_fold(frame, fold), base, operands == "split")

    def lines(
        self,
        op: int,
        channel: int,
        channels: int,
        bank: int,
        banks: int,
        row: int,
        count: int,
    ) -> list[Instruction]:
        """The lines of an entry; none of an ACT."""
        if op == Op.ACT:
            return []
        kind = Op(op)
        opcode = OPCODES[kind]
        masks = self._masks(kind, channel, channels)
        row = self.base + row if kind in NAMES_ROW else 0
        if kind in BANK_BY_BANK:
            return [
                Instruction(opcode, 1, mask, place, row)
                for place in range(bank, bank + banks)
                for _ in range(count)
                for mask in masks
            ]
        bank = bank if kind in COPIES else 0
        return [Instruction(opcode, count, mask, bank, row) for mask in masks]

    def _masks(self, op: Op, channel: int, channels: int) -> list[int]:
        """The channels of each line: all heads at once, or those of one operand."""
        width = self.frame.channels_per_head
        by_head = [
            [head * width + channel + k for k in range(channels)]
            for head in range(self.heads)
        ]
        if self.split and op == Op.WRGB:
            return [mask_of(channels) for channels in by_head]
        each = [channel for channels in by_head for channel in channels]
        if self.split and op == Op.WR:
            return [mask_of((channel,)) for channel in each]
        return [mask_of(each)]
