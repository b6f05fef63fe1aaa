"""The DRAM side of a channel: open rows, when which command may issue, what was issued.

A `Channel` stands for all channels that have seen the same, selected by its mask. It
does not choose commands; `scheduler` does. Comparisons stand in the place of `max` in
what runs once per command: a call to it takes several times as long.
"""

# ruff: noqa: FURB136, PLR1730

from __future__ import annotations

from typing import Final

import attrs

from patton.device.aim.commands import (
    ALL_BANK_ROW_COMMANDS,
    BANK_COMMANDS,
    COMMANDS,
    Command,
)
from patton.device.aim.timing import Timing
from patton.device.aim.trace import CHANNELS

# Plain integers: the model handles them hundreds of thousands of times a second.
ACT: Final = int(Command.ACT)
PRE: Final = int(Command.PRE)
RD: Final = int(Command.RD)
WR: Final = int(Command.WR)
PREA: Final = int(Command.PREA)
ACT16: Final = int(Command.ACT16)
WRA16: Final = int(Command.WRA16)
TMOD: Final = int(Command.TMOD)
REFAB: Final = int(Command.REFab)

MOVES_ROWS: Final = tuple(
    command in {PREA, ACT16, WRA16} for command in range(COMMANDS)
)
NEEDS_ALL_BANKS: Final = tuple(
    command in ALL_BANK_ROW_COMMANDS for command in range(COMMANDS)
)

CLOSED: Final = -1
NEVER: Final = 1 << 62
NO_REFRESH: Final = 2 * NEVER

# first cycle, command, bank, row, count, line
LogEntry = tuple[int, int, int, int, int, int]


@attrs.define(eq=False)
class Channel:
    """Banks and command bus of the channels in `mask`.

    ready[c]: first cycle for command c as far as the whole channel is concerned;
    bank_ready[bank x BANK_COMMANDS + c]: as far as its bank is; hold: first cycle for
    any command. unsettled: last issue of single-bank commands that `ready` does not yet
    reflect for commands on all banks. open_bits, open_since, active_cycles: the count
    of cycles with an open bank. log: what was issued, None if not wanted.
    """

    timing: Timing
    mask: int
    rows: list[int]
    ready: list[int]
    bank_ready: list[int]
    counts: list[int]
    unsettled: dict[int, int] = attrs.field(factory=dict)
    hold: int = 0
    register_mode: bool = False
    open_bits: int = 0
    open_since: int = 0
    active_cycles: int = 0
    recent_acts: tuple[int, ...] = ()
    refresh_due: int = NO_REFRESH
    log: list[LogEntry] | None = None

    @property
    def first_channel(self) -> int:
        """The lowest of the channels that it stands for; bit 31 is channel 0."""
        return CHANNELS - self.mask.bit_length()

    def first_cycle(self, command: int, bank: int) -> int:
        """The first cycle in which the constraints let `command` issue."""
        if command < BANK_COMMANDS:
            cycle = self.ready[command]
            in_bank = self.bank_ready[bank * BANK_COMMANDS + command]
            if cycle < in_bank:
                cycle = in_bank
        else:
            if self.unsettled:
                self.settle()
            cycle = self.ready[command]
        return cycle if cycle > self.hold else self.hold

    def settle(self) -> None:
        """Bring `ready` up to date for commands on all banks.

        Only the last issue of a single-bank command counts, and traffic to single banks
        does not ask: so this is not done with each of them.
        """
        ready = self.ready
        for command, last in self.unsettled.items():
            for later, cycles in self.timing.deferred[command]:
                if ready[later] < last + cycles:
                    ready[later] = last + cycles
        self.unsettled.clear()

    def next_command(self, command: int, bank: int, row: int) -> int:
        """The command that brings `command` on `bank` and `row` one step closer."""
        rows = self.rows
        if command < BANK_COMMANDS:
            if rows[bank] == row:
                return command
            return ACT if rows[bank] == CLOSED else PRE
        if not NEEDS_ALL_BANKS[command]:
            return command
        banks = len(rows)
        open_rightly = rows.count(row)
        if open_rightly == banks:
            return command
        return ACT16 if open_rightly + rows.count(CLOSED) == banks else PREA

    def issue(
        self, command: int, bank: int, row: int, first: int, count: int, line: int
    ) -> int:
        """Issue `count` commands back to back from cycle `first` on; the last cycle."""
        last = first + self.timing.stride[command] * (count - 1)
        if command < BANK_COMMANDS:
            self.issue_in_bank(command, bank, row, last)
            self.counts[command] += count - 1
        else:
            self.counts[command] += count
            ready = self.ready
            for later, cycles in self.timing.channel[command]:
                if ready[later] < last + cycles:
                    ready[later] = last + cycles
            if MOVES_ROWS[command]:
                self._move_all_rows(command, row, last)
        if self.log is not None:
            self.log.append((first, command, bank, row, count, line))
        return last

    def issue_in_bank(self, command: int, bank: int, row: int, cycle: int) -> None:
        """Let a single-bank command take effect; it is not logged."""
        timing = self.timing
        self.counts[command] += 1
        self.unsettled[command] = cycle
        ready = self.ready
        for later, cycles in timing.channel[command]:
            if ready[later] < cycle + cycles:
                ready[later] = cycle + cycles
        ready = self.bank_ready
        for index, cycles in timing.bank[command][bank]:
            if ready[index] < cycle + cycles:
                ready[index] = cycle + cycles
        if command == ACT:
            self.rows[bank] = row
            if not self.open_bits:
                self.open_since = cycle
            self.open_bits |= timing.tracked_bit[bank]
            if timing.activate_window is not None:
                self._note_act(cycle, *timing.activate_window)
        elif command == PRE:
            self.rows[bank] = CLOSED
            self._close(self.open_bits & ~timing.tracked_bit[bank], cycle)

    def switch_mode(self, cycle: int, line: int) -> None:
        """Issue TMOD: register access on if it was off, off if it was on."""
        self.counts[TMOD] += 1
        if self.log is not None:
            self.log.append((cycle, TMOD, -1, CLOSED, 1, line))
        self.register_mode = not self.register_mode
        self.hold = cycle + self.timing.hold[TMOD]

    def refresh(self, cycle: int) -> None:
        """Issue REFab; the next is due a refresh interval after this one was."""
        self.issue(REFAB, -1, CLOSED, cycle, 1, -1)
        self.hold = cycle + self.timing.hold[REFAB]
        self.refresh_due += self.timing.parameters["nREFI"]

    def _move_all_rows(self, command: int, row: int, cycle: int) -> None:
        banks = len(self.rows)
        if command == ACT16:
            self.rows = [row] * banks
            if not self.open_bits:
                self.open_since = cycle
            self.open_bits = (1 << banks) - 1
        else:
            self.rows = [CLOSED] * banks
            self._close(0, cycle)

    def _close(self, still_open: int, cycle: int) -> None:
        """Banks are closed; a cycle counts by what is open at its end."""
        if self.open_bits and not still_open:
            self.active_cycles += cycle - self.open_since
        self.open_bits = still_open

    def _note_act(self, cycle: int, acts: int, cycles: int) -> None:
        self.recent_acts = (*self.recent_acts[1 - acts :], cycle)
        if len(self.recent_acts) == acts:
            bound = self.recent_acts[0] + cycles
            self.ready[ACT] = max(self.ready[ACT], bound)

    def active_until(self, end: int) -> int:
        """Cycles up to and including `end` in which a bank was open."""
        return self.active_cycles + (end + 1 - self.open_since if self.open_bits else 0)
