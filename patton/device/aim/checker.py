"""Protocol checker: whether timed commands keep the rules of the device.

It shares no code and no table with the timing model: it knows what commands do to rows
and mode from here, and distances from `data/constraints_gddr6_aim.txt`. It looks at
commands one by one and is meant for tests, not for speed.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

import attrs

from patton.device.aim.commands import Command, TimedCommand
from patton.device.aim.presets import data_text
from patton.device.aim.trace import CHANNELS, Instruction, Opcode
from patton.errors import DeviceConfigError

BANKS: Final = 16
BANKS_OF_GROUP: Final = 4

# With refresh, a channel must not go longer without than this; JEDEC lets a controller
# put off some refreshes, this one never needs to.
REFRESH_GAP: Final = {"pin": None, "head": None, "physical": 2 * 3906}

ONE_BANK: Final = {"ACT", "PRE", "RD", "WR", "MAC", "RDCP", "WRCP"}
IN_OPEN_ROW: Final = {"RD", "WR", "MAC", "RDCP", "WRCP"}
IN_OPEN_ROWS: Final = {"MAC16", "AF16", "EWMUL16", "WRA16"}
IN_REGISTER_MODE: Final = {"WRGB", "WRMAC16", "RDMAC16", "RDAF16"}
IN_EITHER_MODE: Final = {"TMOD", "REFab"}
CLOSED: Final = None

# What each request of a line must come to on every channel that it selects.
LAST_COMMANDS: Final = {
    Opcode.WR_GB: "WRGB",
    Opcode.WR_BIAS: "WRMAC16",
    Opcode.MAC_ABK: "MAC16",
    Opcode.MAC_SBK: "MAC",
    Opcode.RD_MAC: "RDMAC16",
    Opcode.RD_AF: "RDAF16",
    Opcode.AF: "AF16",
    Opcode.EWMUL: "EWMUL16",
    Opcode.COPY_BKGB: "RDCP",
    Opcode.COPY_GBBK: "WRCP",
    Opcode.WR_ABK: "WRA16",
    Opcode.WR_SBK: "WR",
    Opcode.W_MEM: "WR",
    Opcode.RD_SBK: "RD",
    Opcode.R_MEM: "RD",
}


class Constraint(NamedTuple):
    """`later` at least `cycles` after the `nth` last `earlier`, as far as `scope`."""

    scope: str
    earlier: str
    later: str
    cycles: int
    nth: int = 1


@attrs.frozen
class Violation:
    """A command that breaks a rule; index: of its entry in the list that was checked.

    rule: "distance", "bus", "bank", "row", "mode", "refresh"; detail: what is wrong.
    """

    index: int
    channel: int
    cycle: int
    command: str
    rule: str
    detail: str


def load_constraints(variant: str, text: str | None = None) -> list[Constraint]:
    """The constraints of a variant, from the shipped table or from a text like it."""
    found: list[Constraint] = []
    applies, scope = False, ""
    known = set()
    for line in (text or data_text("constraints_gddr6_aim.txt")).splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        if line.startswith("["):
            variants, _, scope = line.strip("[] ").partition(": ")
            known |= set(variants.split())
            applies = variant in variants.split()
        elif applies:
            found += _constraints(scope, line)
    if variant not in known:
        raise DeviceConfigError("checker", "variant", variant, ", ".join(sorted(known)))
    return found


def _constraints(scope: str, line: str) -> Iterator[Constraint]:
    earlier, _, followers = line.partition(":")
    name, _, nth = earlier.partition("/")
    for follower in followers.split(","):
        later, cycles = follower.split()
        yield Constraint(
            scope, Command[name].name, Command[later].name, int(cycles), int(nth or 1)
        )


def check(
    commands: Iterable[TimedCommand],
    *,
    variant: str = "head",
    constraints: Sequence[Constraint] | None = None,
    end: int | None = None,
) -> list[Violation]:
    """All violations in a list of timed commands, in its order; none if it keeps all.

    The commands of each channel must come in the order of their cycles. constraints:
    the shipped ones of the variant unless given. end: the last cycle of the run, up to
    which refresh must have kept pace.
    """
    rules = load_constraints(variant) if constraints is None else constraints
    by_later: dict[str, list[Constraint]] = {}
    for rule in rules:
        by_later.setdefault(rule.later, []).append(rule)
    gap = REFRESH_GAP[variant]
    channels = {c: _Channel(by_later, gap) for c in range(CHANNELS)}
    found = []
    for index, entry in enumerate(commands):
        if entry.channel not in channels:
            detail = f"channel {entry.channel} of {CHANNELS}"
            found.append(_violation(index, entry, entry.cycle, "bank", detail))
            continue
        channel = channels[entry.channel]
        for k in range(entry.times):
            cycle = entry.cycle + k * entry.stride
            for rule_name, detail in channel.take(entry, cycle):
                found.append(_violation(index, entry, cycle, rule_name, detail))
    if end is not None and gap is not None:
        for number, channel in channels.items():
            if end - channel.refreshed > gap:
                detail = f"none since cycle {channel.refreshed}"
                found.append(Violation(-1, number, end, "REFab", "refresh", detail))
    return found


def _violation(
    index: int, entry: TimedCommand, cycle: int, rule: str, detail: str
) -> Violation:
    return Violation(index, entry.channel, cycle, entry.command.name, rule, detail)


def missing_commands(
    trace: Iterable[Instruction], commands: Iterable[TimedCommand]
) -> dict[tuple[int, str], int]:
    """By channel and command: how many commands the trace asks for and never got.

    The simulator loses a write that is activated but not issued at the end, and answers
    reads without a command while any write waits.
    """
    wanted: Counter[tuple[int, str]] = Counter()
    for instruction in trace:
        if instruction.opcode in LAST_COMMANDS:
            command = LAST_COMMANDS[instruction.opcode]
            for channel in instruction.channels:
                wanted[channel, command] += instruction.opsize
    for entry in commands:
        if (entry.channel, entry.command.name) in wanted:
            wanted[entry.channel, entry.command.name] -= entry.times
    return {key: count for key, count in wanted.items() if count > 0}


class _Channel:
    """Rows, mode and past commands of one channel."""

    def __init__(self, rules: dict[str, list[Constraint]], gap: int | None) -> None:
        self.rules = rules
        self.gap = gap
        self.rows: list[int | None] = [CLOSED] * BANKS
        self.is_register_mode = False
        self.cycle = 0
        self.refreshed = 0
        # Cycles of past commands by command and place: a bank, its group, the channel.
        self.past: dict[tuple[str, str, int], deque[int]] = {}

    def take(self, entry: TimedCommand, cycle: int) -> Iterator[tuple[str, str]]:
        """The rules that a command breaks; it then counts as issued all the same."""
        name = entry.command.name
        if cycle <= self.cycle:
            yield "bus", f"the channel is at cycle {self.cycle} already"
        if name in ONE_BANK and not 0 <= entry.bank < BANKS:
            yield "bank", f"bank {entry.bank} of {BANKS}"
            return
        yield from self._check_distances(name, entry.bank, cycle)
        yield from self._check_mode(name)
        yield from self._check_rows(name, entry.bank, entry.row)
        if self.gap is not None and cycle - self.refreshed > self.gap:
            yield "refresh", f"none since cycle {self.refreshed}"
        self._record(name, entry.bank, entry.row, cycle)

    def _check_distances(
        self, name: str, bank: int, cycle: int
    ) -> Iterator[tuple[str, str]]:
        for rule in self.rules.get(name, []):
            place = _place(rule.scope, bank)
            past = self.past.get((rule.earlier, rule.scope, place))
            if past is None or len(past) < rule.nth:
                continue
            earliest = past[-rule.nth] + rule.cycles
            if cycle < earliest:
                yield "distance", f"{rule} allows cycle {earliest}"

    def _check_mode(self, name: str) -> Iterator[tuple[str, str]]:
        # Before a refresh rows are closed in either mode.
        if name in IN_EITHER_MODE or (name == "PREA" and self.gap is not None):
            return
        if (name in IN_REGISTER_MODE) != self.is_register_mode:
            yield "mode", f"register mode is {'on' if self.is_register_mode else 'off'}"

    def _check_rows(self, name: str, bank: int, row: int) -> Iterator[tuple[str, str]]:
        rows = self.rows
        if name == "ACT" and rows[bank] is not CLOSED:
            yield "row", f"bank {bank} has row {rows[bank]} open"
        elif name == "PRE" and rows[bank] is CLOSED:
            yield "row", f"bank {bank} is closed"
        elif name == "PREA" and all(open_row is CLOSED for open_row in rows):
            yield "row", "all banks are closed"
        elif name == "ACT16":
            others = [r for r in rows if r is not CLOSED and r != row]
            if others:
                yield "row", f"row {others[0]} is open"
            elif CLOSED not in rows:
                yield "row", "all banks are open"
        elif name in IN_OPEN_ROW and rows[bank] != row:
            yield "row", f"bank {bank} has row {rows[bank]} open"
        elif name in IN_OPEN_ROWS and any(open_row != row for open_row in rows):
            yield "row", f"row {row} is not open in all banks"
        elif name == "REFab" and any(open_row is not CLOSED for open_row in rows):
            yield "row", "a bank is open"

    def _record(self, name: str, bank: int, row: int, cycle: int) -> None:
        self.cycle = max(self.cycle, cycle)
        scopes = ("channel", "bank group", "bank") if name in ONE_BANK else ("channel",)
        for scope in scopes:
            key = (name, scope, _place(scope, bank))
            self.past.setdefault(key, deque(maxlen=4)).append(cycle)
        if name == "TMOD":
            self.is_register_mode = not self.is_register_mode
        elif name == "ACT":
            self.rows[bank] = row
        elif name == "PRE":
            self.rows[bank] = CLOSED
        elif name == "ACT16":
            self.rows = [row] * BANKS
        elif name in {"PREA", "WRA16"}:
            self.rows = [CLOSED] * BANKS
        elif name == "REFab":
            self.refreshed = cycle


def _place(scope: str, bank: int) -> int:
    if scope == "channel":
        return 0
    return bank if scope == "bank" else bank // BANKS_OF_GROUP
