"""The device one cycle at a time: a slow second model, written from the rules.

It steps every channel that a trace addresses, and one that it does not, through every
cycle, with the distances of the checker's table. It shares with the model under test
the reader and the names of commands only.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Sequence

import attrs

from patton.device.aim import Instruction, Opcode
from patton.device.aim.checker import LAST_COMMANDS, Constraint, load_constraints

SYNC = "SYNC"
QUEUE = 33
LATENCY = {"RD": 52, "WR": 8, "WRGB": 3, "WRMAC16": 3, "RDMAC16": 2, "RDAF16": 2}
LATENCY |= {"WRA16": 40}
REFRESH_INTERVAL = 3906
MODES = {"WRGB", "WRMAC16", "RDMAC16", "RDAF16"}
SINGLE = {"ACT", "PRE", "RD", "WR", "MAC", "RDCP", "WRCP"}
ALL_ROWS = {"MAC16", "AF16", "EWMUL16", "WRA16"}
AWAITED = {"RDMAC16", "RDAF16", SYNC}


@attrs.define(eq=False)
class Ask:
    """A request to one channel."""

    command: str
    bank: int
    row: int
    arrived: int = -1

    @property
    def is_memory(self) -> bool:
        return self.command in {"RD", "WR"}


class Dram:
    """Rows and past commands of a channel."""

    def __init__(self, rules: Sequence[Constraint], *, true_banks: bool) -> None:
        self.rules: dict[str, list[Constraint]] = {}
        for rule in rules:
            self.rules.setdefault(rule.later, []).append(rule)
        self.rows: list[int | None] = [None] * 16
        self.past: dict[tuple[str, str, int], deque[int]] = {}
        self.counts: Counter[str] = Counter()
        self.open = [False] * 16
        self.true_banks = true_banks

    def place(self, scope: str, bank: int) -> int:
        return {"channel": 0, "bank group": bank // 4, "bank": bank}[scope]

    def is_ready(self, command: str, bank: int, cycle: int) -> bool:
        for rule in self.rules.get(command, []):
            past = self.past.get(
                (rule.earlier, rule.scope, self.place(rule.scope, bank)), ()
            )
            if len(past) >= rule.nth and cycle < past[-rule.nth] + rule.cycles:
                return False
        return True

    def next_for(self, ask: Ask) -> str:
        if ask.command in SINGLE:
            row = self.rows[ask.bank]
            if row is None:
                return "ACT"
            return ask.command if row == ask.row else "PRE"
        if ask.command in ALL_ROWS:
            if any(row not in {None, ask.row} for row in self.rows):
                return "PREA"
            if None in self.rows:
                return "ACT16"
        return ask.command

    def issue(self, command: str, bank: int, row: int, cycle: int) -> None:
        self.counts[command] += 1
        scopes = (
            ("channel", "bank group", "bank") if command in SINGLE else ("channel",)
        )
        for scope in scopes:
            key = (command, scope, self.place(scope, bank))
            self.past.setdefault(key, deque(maxlen=4)).append(cycle)
        tracked = bank if self.true_banks else bank % 4
        if command == "ACT":
            self.rows[bank] = row
            self.open[tracked] = True
        elif command == "PRE":
            self.rows[bank] = None
            self.open[tracked] = False
        elif command == "ACT16":
            self.rows = [row] * 16
            self.open = [True] * 16
        elif command in {"PREA", "WRA16"}:
            self.rows = [None] * 16
            self.open = [False] * 16


class StepChannel:
    """A controller and its channel."""

    def __init__(self, variant: str) -> None:
        self.physical = variant == "physical"
        self.dram = Dram(load_constraints(variant), true_banks=self.physical)
        self.aim: deque[Ask] = deque()
        self.reads: list[Ask] = []
        self.writes: list[Ask] = []
        self.active: list[Ask] = []
        self.pending_reads: deque[tuple[int, Ask]] = deque()
        self.pending_writes: list[int] = []
        self.register_mode = False
        self.write_mode = False
        self.refresh_due = REFRESH_INTERVAL if self.physical else 1 << 60
        self.active_cycles = 0

    def send(self, ask: Ask, cycle: int) -> bool:
        if ask.is_memory:
            return self._send_memory(ask, cycle)
        waits = self.reads or self.writes or (self.physical and self.active)
        if waits or len(self.aim) >= QUEUE:
            return False
        self.aim.append(ask)
        return True

    def _send_memory(self, ask: Ask, cycle: int) -> bool:
        if self.aim:
            return False
        if ask.command == "RD" and self._is_forwarded(ask):
            self.pending_reads.append((cycle, ask))
            return True
        queue = self.reads if ask.command == "RD" else self.writes
        if len(queue) >= QUEUE:
            return False
        ask.arrived = cycle
        queue.append(ask)
        return True

    def _is_forwarded(self, read: Ask) -> bool:
        if not self.physical:
            return bool(self.writes)
        waiting = self.writes + [ask for ask in self.active if ask.command == "WR"]
        return any((w.bank, w.row) == (read.bank, read.row) for w in waiting)

    def tick(self, cycle: int) -> list[Ask]:
        """One cycle; the awaited requests that complete in it."""
        done = self._complete(cycle)
        if cycle >= self.refresh_due:
            self._refresh(cycle)
        else:
            self._serve(cycle)
        self.active_cycles += any(self.dram.open)
        return done

    def _complete(self, cycle: int) -> list[Ask]:
        done = []
        if self.pending_reads and self.pending_reads[0][0] <= cycle:
            ask = self.pending_reads[0][1]
            if ask.command != SYNC or not self.pending_writes:
                self.pending_reads.popleft()
                done = [ask] if ask.command in AWAITED else []
        self.pending_writes = [time for time in self.pending_writes if time > cycle]
        return done

    def _refresh(self, cycle: int) -> None:
        is_open = any(row is not None for row in self.dram.rows)
        command = "PREA" if is_open else "REFab"
        if self.dram.is_ready(command, -1, cycle):
            self.dram.issue(command, -1, -1, cycle)
            if not is_open:
                self.refresh_due += REFRESH_INTERVAL

    def _best(self, queue: Iterable[Ask], cycle: int) -> tuple[Ask, str] | None:
        found = [(ask, self.dram.next_for(ask)) for ask in queue]
        ready = [x for x in found if self.dram.is_ready(x[1], x[0].bank, cycle)]
        return min(ready, key=lambda x: x[0].arrived, default=None)

    def _serve(self, cycle: int) -> None:
        queue: list[Ask] | deque[Ask] = self.active
        choice = self._best(queue, cycle)
        if choice is None:
            if self.aim:
                queue = self.aim
                if queue[0].command == SYNC:
                    self.pending_reads.append((cycle, queue.popleft()))
                    return
                choice = self._best([queue[0]], cycle)
            else:
                self._set_write_mode()
                queue = self.writes if self.write_mode else self.reads
                choice = self._best(queue, cycle)
        if choice is None:
            return
        ask, command = choice
        if command == "PRE" and any(other.bank == ask.bank for other in self.active):
            return
        if (ask.command in MODES) != self.register_mode:
            self.dram.issue("TMOD", -1, -1, cycle)
            self.register_mode = not self.register_mode
            return
        self.dram.issue(command, ask.bank, ask.row, cycle)
        if command == ask.command:
            queue.remove(ask)
            time = cycle + LATENCY.get(command, 1)
            if command == "RD" or command in AWAITED:
                self.pending_reads.append((time, ask))
            else:
                self.pending_writes.append(time)
        elif command == "ACT" and ask.is_memory:
            queue.remove(ask)
            self.active.append(ask)

    def _set_write_mode(self) -> None:
        if not self.write_mode:
            self.write_mode = len(self.writes) > 25.6 or not self.reads
        elif len(self.writes) < 6.4 and self.reads:
            self.write_mode = False


class Port:
    """What hands lines to some channels, one a cycle, in order."""

    def __init__(
        self, channels: dict[int, StepChannel], *, waits_for_all: bool
    ) -> None:
        self.channels = channels
        self.waits_for_all = waits_for_all
        self.lines: deque[list[tuple[int, Ask]]] = deque()
        self.left_over: dict[int, deque[Ask]] = {c: deque() for c in channels}
        self.outstanding: Counter[int] = Counter()
        self.head_awaits: set[Ask] = set()

    def step(self, cycle: int) -> None:
        """Offer what was refused, or the next line."""
        had_left = any(self.left_over.values())
        for channel, asks in self.left_over.items():
            while asks and self.channels[channel].send(asks[0], cycle):
                asks.popleft()
        if self.head_awaits:
            return
        if had_left:
            if not any(self.left_over.values()):
                self.lines.popleft()
            return
        if self.lines:
            self._decode(self.lines[0], cycle)

    def _decode(self, asks: list[tuple[int, Ask]], cycle: int) -> None:
        if any(self.outstanding[channel] for channel, _ in asks):
            return
        for channel, ask in asks:
            queue = self.left_over[channel]
            if queue or not self.channels[channel].send(ask, cycle):
                queue.append(ask)
            if ask.command == SYNC or (ask.command in AWAITED and self.waits_for_all):
                self.head_awaits.add(ask)
            elif ask.command in AWAITED:
                self.outstanding[channel] += 1
        if not self.head_awaits and not any(self.left_over.values()):
            self.lines.popleft()

    def complete(self, channel: int, ask: Ask) -> None:
        if ask in self.head_awaits:
            self.head_awaits.remove(ask)
            if not self.head_awaits:
                self.lines.popleft()
        else:
            self.outstanding[channel] -= 1


@attrs.frozen
class StepResult:
    cycles: int
    commands: dict[int, dict[str, int]]
    active_cycles: dict[int, int]


def asks_of(
    instruction: Instruction, channels: Iterable[int], activation: int
) -> list[tuple[int, Ask]]:
    """The requests of a line, in the order in which they are offered."""
    if instruction.opcode in {Opcode.SYNC, Opcode.EOC}:
        return [(channel, Ask(SYNC, -1, -1)) for channel in channels]
    if instruction.opcode not in LAST_COMMANDS:
        return []
    command = LAST_COMMANDS[instruction.opcode]
    bank = instruction.bank if command in SINGLE else -1
    row = instruction.row if command != "AF16" else (1 << 29) + activation
    return [
        (channel, Ask(command, bank, row))
        for _ in range(instruction.opsize)
        for channel in instruction.channels
    ]


def step_through(
    trace: Sequence[Instruction], variant: str, *, ports: bool = False
) -> StepResult:
    """Run a trace cycle by cycle, with one port for all channels or one for each."""
    used = {channel for line in trace for channel in line.channels}
    idle = next((channel for channel in range(32) if channel not in used), None)
    numbers = sorted(used if idle is None else used | {idle})
    channels = {number: StepChannel(variant) for number in numbers}
    groups = [[number] for number in numbers] if ports else [numbers]
    hosts = [
        Port(
            {number: channels[number] for number in group},
            waits_for_all=ports or variant != "physical",
        )
        for group in groups
    ]
    activation = 0
    for line in trace:
        if line.opcode == Opcode.W_CFR and line.register == 2:
            activation = line.value
        asks = asks_of(line, numbers, activation)
        for host in hosts:
            own = [(c, ask) for c, ask in asks if c in host.channels]
            if own or not ports:
                host.lines.append(own)
    return _run(hosts, channels)


def _run(hosts: list[Port], channels: dict[int, StepChannel]) -> StepResult:
    cycle = 0
    at_barrier: set[int] = set()
    owner = {number: host for host in hosts for number in host.channels}
    while any(host.lines for host in hosts):
        cycle += 1
        for host in hosts:
            host.step(cycle)
        done = [(n, ask) for n, ch in channels.items() for ask in ch.tick(cycle)]
        for number, ask in done:
            if ask.command == SYNC and len(hosts) > 1:
                at_barrier.add(number)
            else:
                owner[number].complete(number, ask)
        if len(at_barrier) == len(hosts):
            at_barrier.clear()
            for host in hosts:
                for ask in list(host.head_awaits):
                    host.complete(-1, ask)
    return StepResult(
        cycle,
        {n: dict(c.dram.counts) for n, c in channels.items() if c.dram.counts},
        {n: c.active_cycles for n, c in channels.items()},
    )
