"""Instructions of the simulator's trace format, their limits, and the writer.

The format has no column and no lane operand. What a command stream knows of them
stands in a comment line of its own before the instruction, in the form
`# patton: burst=8 lanes=0x00ff`; the simulator skips it, the reader gives it back.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import IntEnum
from pathlib import Path
from typing import Final, NamedTuple

CHANNELS: Final = 32
BANKS: Final = 16
FULL_MASK: Final = (1 << CHANNELS) - 1
NOTE: Final = "patton:"

Note = tuple[tuple[str, str], ...]


class Opcode(IntEnum):
    """What an instruction does; `W_MEM` is the line `W MEM`, `WR_GB` is `AiM WR_GB`."""

    WR_GB = 0
    WR_BIAS = 1
    MAC_ABK = 2
    MAC_SBK = 3
    RD_MAC = 4
    RD_AF = 5
    AF = 6
    EWMUL = 7
    COPY_BKGB = 8
    COPY_GBBK = 9
    WR_ABK = 10
    WR_SBK = 11
    RD_SBK = 12
    W_MEM = 13
    R_MEM = 14
    SYNC = 15
    EOC = 16
    EWADD = 17
    W_GPR = 18
    R_GPR = 19
    W_CFR = 20
    R_CFR = 21


# The operands of each line after its opcode, in the order of the format.
OPERANDS: Final[dict[Opcode, tuple[str, ...]]] = {
    Opcode.WR_GB: ("opsize", "gpr", "mask"),
    Opcode.WR_BIAS: ("gpr", "mask"),
    Opcode.MAC_ABK: ("opsize", "mask", "row"),
    Opcode.MAC_SBK: ("opsize", "mask", "bank", "row"),
    Opcode.RD_MAC: ("gpr", "mask"),
    Opcode.RD_AF: ("gpr", "mask"),
    Opcode.AF: ("mask",),
    Opcode.EWMUL: ("opsize", "mask", "row"),
    Opcode.EWADD: ("opsize", "gpr", "second_gpr"),
    Opcode.COPY_BKGB: ("opsize", "mask", "bank", "row"),
    Opcode.COPY_GBBK: ("opsize", "mask", "bank", "row"),
    Opcode.WR_SBK: ("gpr", "mask", "bank", "row"),
    Opcode.RD_SBK: ("gpr", "mask", "bank", "row"),
    Opcode.WR_ABK: ("gpr", "mask", "row"),
    Opcode.SYNC: (),
    Opcode.EOC: (),
    Opcode.W_MEM: ("channel", "bank", "row"),
    Opcode.R_MEM: ("channel", "bank", "row"),
    Opcode.W_GPR: ("gpr",),
    Opcode.R_GPR: ("gpr",),
    Opcode.W_CFR: ("register", "value"),
    Opcode.R_CFR: ("register", "value"),
}

# The largest value of an operand that the simulator can hold or lets pass.
LAST: Final[dict[str, int]] = {
    "opsize": (1 << 31) - 1,
    "gpr": (1 << 63) - 1,
    "second_gpr": (1 << 63) - 1,
    "mask": (1 << 63) - 1,
    "channel": CHANNELS - 1,
    "bank": BANKS - 1,
    "row": (1 << 31) - 1,
    "register": 2,
    "value": (1 << 15) - 1,
}

# Of the three configuration registers (0: source of the MAC's vector, 1: bank groups of
# EWMUL, 2: activation function) only the last has an effect on timing.
CFR_ACTIVATION: Final = 2


class Instruction(NamedTuple):
    """One line of a trace; operands that it does not have keep their defaults.

    opsize: consecutive bursts from the first of the row; mask: bit i selects channel
    31 - i; W_MEM and R_MEM, which name one channel, set its bit. note: what the
    comment before the line says, as (key, value) pairs.
    """

    opcode: Opcode
    opsize: int = 1
    mask: int = 0
    bank: int = 0
    row: int = 0
    gpr: int = 0
    second_gpr: int = 0
    register: int = 0
    value: int = 0
    note: Note = ()

    @property
    def channels(self) -> tuple[int, ...]:
        """The channels that it addresses, ascending."""
        return channels_of(self.mask)

    @property
    def channel(self) -> int:
        """The channel of an instruction that addresses one."""
        (channel,) = self.channels
        return channel

    def noted(self, key: str, default: int) -> int:
        """A number from the comment, such as "burst" or "lanes"."""
        return int(dict(self.note).get(key, str(default)), 0)


def mask_of(channels: Iterable[int]) -> int:
    """The mask that selects these channels: channel 0 is the highest of 32 bits."""
    mask = 0
    for channel in channels:
        if not 0 <= channel < CHANNELS:
            raise ValueError(f"channel {channel} of {CHANNELS}")
        mask |= 1 << CHANNELS - 1 - channel
    return mask


def channels_of(mask: int) -> tuple[int, ...]:
    """The channels that a mask selects, ascending; inverse of `mask_of`."""
    mask = normal_mask(mask)
    return tuple(c for c in range(CHANNELS) if mask >> CHANNELS - 1 - c & 1)


def normal_mask(mask: int) -> int:
    """A mask of 32 bits: the simulator lets bits beyond stand for the highest."""
    low = mask & FULL_MASK
    return low if low == mask else low | 1 << CHANNELS - 1


def format_line(instruction: Instruction) -> str:
    """The line of an instruction, without its note."""
    opcode = instruction.opcode
    first, _, second = opcode.name.partition("_")
    words = [first, second] if first in {"W", "R"} else ["AiM", opcode.name]
    for operand in OPERANDS[opcode]:
        value = getattr(instruction, operand)
        words.append(f"0x{value:08x}" if operand == "mask" else str(value))
    return " ".join(words)


def format_lines(instructions: Iterable[Instruction]) -> Iterator[str]:
    """The lines of a trace, notes as comments before their instruction."""
    for instruction in instructions:
        if instruction.note:
            pairs = (f"{key}={value}" for key, value in instruction.note)
            yield " ".join(("#", NOTE, *pairs))
        yield format_line(instruction)


def format_trace(instructions: Iterable[Instruction]) -> str:
    """The text of a trace; an EOC is added at the end if there is none."""
    lines = list(format_lines(instructions))
    end = format_line(Instruction(Opcode.EOC))
    if not lines or lines[-1] != end:
        lines.append(end)
    return "\n".join(lines) + "\n"


def write_trace(instructions: Iterable[Instruction], path: str | Path) -> None:
    """Write a trace that the simulator accepts: ends in EOC and a newline."""
    Path(path).write_text(format_trace(instructions), encoding="ascii", newline="\n")
