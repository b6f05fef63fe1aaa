"""The DRAM commands of an AiM channel: the vocabulary of traces, timing and checker.

Only names and sets; what a command costs is data of a preset, what it does to a bank
is said by the timing model and, independently, by the checker.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final, NamedTuple


class Command(IntEnum):
    """One command on a channel's command bus, named as the public simulator does.

    Those that address a single bank come first: their numbers index the per-bank
    tables of the timing model. A name ending in 16 works on all banks at once.
    """

    ACT = 0
    PRE = 1
    RD = 2
    WR = 3
    MAC = 4
    RDCP = 5
    WRCP = 6
    PREA = 7
    ACT16 = 8
    MAC16 = 9
    AF16 = 10
    EWMUL16 = 11
    WRGB = 12
    RDMAC16 = 13
    RDAF16 = 14
    WRMAC16 = 15
    WRA16 = 16
    TMOD = 17
    REFab = 18


COMMANDS: Final = len(Command)
BANK_COMMANDS: Final = 7

# A channel must be switched to register access for these, and back for all others.
REGISTER_COMMANDS: Final = frozenset(
    {Command.WRGB, Command.WRMAC16, Command.RDMAC16, Command.RDAF16}
)

# They need one row open in all banks of the channel.
ALL_BANK_ROW_COMMANDS: Final = frozenset(
    {Command.MAC16, Command.AF16, Command.EWMUL16, Command.WRA16}
)


class TimedCommand(NamedTuple):
    """`times` commands of one kind on one channel, the first at `cycle`.

    Further ones follow every `stride` cycles. bank and row are -1 where the command
    has none; `line` is the index of the trace instruction that it serves, -1 if none.
    """

    cycle: int
    channel: int
    command: Command
    bank: int = -1
    row: int = -1
    times: int = 1
    stride: int = 1
    line: int = -1
