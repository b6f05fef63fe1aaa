"""Which waiting request gets the command bus of a channel, and when.

The rules are those of the public simulator, cycle by cycle:
- activated reads and writes first, the best of them if its next command is ready;
- else the head of the AiM queue, strictly in order;
- else reads or writes, whichever the write mode says, ready ones before older ones;
- a PRE is dropped, and its cycle lost, while an activated request waits on the bank;
- a request that needs register access on or off gets a TMOD in place of the command
  that was ready for it.
This model jumps from command to command. What becomes of a request once the host has
offered it is decided here; when the host may offer it, in `controller`. Comparisons
stand in the place of `max` where calls to it would show in the time taken.
"""

# ruff: noqa: FURB136, PLR1730

from __future__ import annotations

from typing import Final

import attrs

from patton.device.aim.channel import (
    ACT,
    CLOSED,
    NEVER,
    NO_REFRESH,
    PRE,
    PREA,
    REFAB,
    WR,
    Channel,
)
from patton.device.aim.commands import BANK_COMMANDS, COMMANDS, Command
from patton.errors import StalledTraceError

# arrival cycle, bank, row, command, line
Request = tuple[int, int, int, int, int]

NO_REQUEST: Final[Request] = (NEVER, -1, CLOSED, WR, -1)

# In the place of a request's command: SYNC or EOC, which issue none.
SYNC: Final = -1

COMPLETES_AS_READ: Final = tuple(
    Command(command).name in {"RD", "RDMAC16", "RDAF16"} for command in range(COMMANDS)
)

# What an event of the model was, if any.
NOTHING: Final = 0
OTHER: Final = 1
HEAD_LEFT: Final = 2

FOREVER: Final = NEVER - 1


@attrs.define(eq=False)
class Scheduler(Channel):
    """Requests of the channels in `mask` and their order; times in cycles.

    now: everything up to this cycle has happened. active: activated reads and writes.
    contested: AiM requests have issued since, and may have closed rows of `active`.
    next_event: no command issues before it unless a request arrives, 0 if that is not
    known; only found while no reads wait. read_done, write_done: when the last pending
    read and write complete. late: completions of reads issued behind a SYNC that has
    not completed. done: when the last blocking request completed.
    """

    now: int = 0
    reads: list[Request] = attrs.field(factory=list)
    writes: list[Request] = attrs.field(factory=list)
    active: list[Request] = attrs.field(factory=list)
    contested: bool = False
    write_mode: bool = False
    next_event: int = 0
    read_done: int = 0
    write_done: int = 0
    late: list[int] | None = None
    done: int = 0

    def advance(self, to: int) -> None:
        """Let everything up to and including cycle `to` happen."""
        if self.writes or self.reads or self.active:
            if self._only_writes():
                self._advance_writes(to)
            else:
                self.next_event = 0
                while self._event(to) != NOTHING:
                    pass
        elif self.refresh_due < NO_REFRESH:
            while self._event(to) != NOTHING:
                pass
        else:
            self.next_event = NEVER
            self.contested = False
        if self.now < to:
            self.now = to
            self.write_mode = self.write_mode or not self.reads

    def _step(self, line: int) -> int:
        """One event, for want of which `line` waits; the cycle after it."""
        if self._only_writes():
            self._advance_writes(max(self.now + 1, self.next_event))
        elif self._event(FOREVER) == NOTHING:
            raise self._stalled(line)
        return self.now + 1

    def _stalled(self, line: int) -> StalledTraceError:
        return StalledTraceError(line, self.first_channel, self.now)

    # --- a line of AiM requests, with nothing activated before it ----------------

    def _run(self, command: int, count: int, bank: int, row: int, line: int) -> int:
        """Issue requests of a line up to `count`, or to the next refresh; how many."""
        timing = self.timing
        register_mode = timing.register[command]
        while True:
            step = self.next_command(command, bank, row)
            cycle = self.first_cycle(step, bank)
            if cycle <= self.now:
                cycle = self.now + 1
            if cycle >= self.refresh_due:
                self._maintain(FOREVER)
            elif register_mode != self.register_mode:
                self.switch_mode(cycle, line)
                self.now = cycle
            elif step == command:
                break
            else:
                self.now = self.issue(step, bank, row, cycle, 1, line)
        if self.refresh_due < NO_REFRESH:
            before = self.refresh_due - 1 - cycle
            count = min(count, before // timing.stride[command] + 1)
        self.now = self.issue(command, bank, row, cycle, count, line)
        self._complete(command)
        return count

    def _complete(self, command: int) -> None:
        """The last command of a request has issued now; note when it completes."""
        cycle = self.now + self.timing.latency[command]
        if not COMPLETES_AS_READ[command]:
            if cycle > self.write_done:
                self.write_done = cycle
        elif self.late is not None:
            self.late.append(cycle)
        else:
            # Reads complete in order, one a cycle.
            self.done = self.read_done = max(self.read_done + 1, cycle)

    def _maintain(self, limit: int) -> int:
        """A refresh is due: close all banks, then refresh; one command of these."""
        is_open = any(row != CLOSED for row in self.rows)
        command = PREA if is_open else REFAB
        cycle = max(self.first_cycle(command, -1), self.now + 1, self.refresh_due)
        if cycle > limit:
            return NOTHING
        if is_open:
            self.issue(PREA, -1, CLOSED, cycle, 1, -1)
        else:
            self.refresh(cycle)
        self.now = cycle
        return OTHER

    # --- one event at a time, for all that waits ---------------------------------

    def _event(self, limit: int, head: Request | None = None) -> int:
        """Go to the next command that issues, not beyond `limit`; what it was.

        head: the request at the head of the AiM queue. HEAD_LEFT if it has issued its
        last command. With `limit` FOREVER and a head, there is always an event.
        """
        cycle, command, index, queue = self._choose(self.now + 1, head)
        if cycle >= self.refresh_due:
            return self._maintain(limit)
        if cycle > limit:
            return NOTHING
        request = queue[index]
        if command == PRE and self._is_claimed(request[1]):
            return self._lose_cycles(cycle, limit, head)
        self.now = cycle
        if request[3] == SYNC:
            return HEAD_LEFT
        return self._carry_out(command, index, queue, is_head=request is head)

    def _choose(
        self, start: int, head: Request | None
    ) -> tuple[int, int, int, list[Request]]:
        """The next command from `start` on: cycle, command, and place of its request.

        The cycle is NEVER if no request waits.
        """
        queue = self.active
        cycle, command, index = self._best(queue, start)
        if cycle > start:
            if head is None:
                waiting = self._queue_in_turn()
                other = self._best(waiting, start)
            else:
                waiting = [head]
                other = self._next_of_head(head, start)
            if other[0] < cycle:
                queue, (cycle, command, index) = waiting, other
        return cycle, command, index, queue

    def _carry_out(
        self, command: int, index: int, queue: list[Request], *, is_head: bool
    ) -> int:
        """Issue a command now, or the TMOD that its request needs first."""
        request = queue[index]
        _, bank, row, final, line = request
        if self.timing.register[final] != self.register_mode:
            self.switch_mode(self.now, line)
            return OTHER
        self.issue(command, bank, row, self.now, 1, line)
        if command == final:
            self._complete(command)
            if is_head:
                return HEAD_LEFT
            del queue[index]
        elif command == ACT and not is_head and queue is not self.active:
            self.active.append(request)
            del queue[index]
        return OTHER

    def _best(self, queue: list[Request], start: int) -> tuple[int, int, int]:
        """Of reads or writes: when the first is ready from `start` on, for what, which.

        Of those that are ready in the same cycle it is the one that arrived first.
        """
        rows, ready, bank_ready = self.rows, self.ready, self.bank_ready
        floor = max(start, self.hold)
        best, command, chosen, arrival = NEVER, 0, 0, NEVER
        for index, (arrived, bank, row, final, _) in enumerate(queue):
            open_row = rows[bank]
            step = final if open_row == row else ACT if open_row == CLOSED else PRE
            cycle, in_bank = floor, bank_ready[bank * BANK_COMMANDS + step]
            if cycle < in_bank:
                cycle = in_bank
            if cycle < ready[step]:
                cycle = ready[step]
            if cycle < best or (cycle == best and arrived < arrival):
                best, command, chosen, arrival = cycle, step, index, arrived
        return best, command, chosen

    def _next_of_head(self, head: Request, start: int) -> tuple[int, int, int]:
        _, bank, row, final, _ = head
        if final == SYNC:
            return start, SYNC, 0
        step = self.next_command(final, bank, row)
        return max(self.first_cycle(step, bank), start), step, 0

    def _queue_in_turn(self) -> list[Request]:
        """The reads or the writes, after a look at how many wait."""
        queued = len(self.writes)
        if not self.write_mode:
            self.write_mode = queued > self.timing.write_high or not self.reads
        elif queued < self.timing.write_low and self.reads:
            self.write_mode = False
        return self.writes if self.write_mode else self.reads

    def _is_claimed(self, bank: int) -> bool:
        """Whether an activated request waits on the bank."""
        for request in self.active:  # noqa: SIM110 - any() takes twice as long
            if request[1] == bank:
                return True
        return False

    def _lose_cycles(self, cycle: int, limit: int, head: Request | None) -> int:
        """A PRE was dropped at `cycle`: go to where the choice may be another."""
        waiting = [*self.active, *(self.writes if self.write_mode else self.reads)]
        changes = [self._best([request], cycle)[0] for request in waiting]
        if head is not None:
            changes.append(self._next_of_head(head, cycle)[0])
        changes.append(self.refresh_due)
        change = min(change for change in changes if change > cycle)
        if change > limit:
            if head is not None:
                raise self._stalled(head[4])
            return NOTHING
        self.now = change - 1
        return OTHER

    # --- the same for writes alone, where random traffic spends its time ----------

    def _only_writes(self) -> bool:
        return not (
            self.reads
            or self.register_mode
            or (self.contested and self.active)
            or self.refresh_due < NO_REFRESH
        )

    # Not in smaller functions: the calls would take half as long again.
    def _advance_writes(self, to: int) -> None:  # noqa: C901, PLR0912, PLR0915
        """As `advance`, if only writes are queued and the activated need no ACT."""
        rows, ready, bank_ready = self.rows, self.ready, self.bank_ready
        active, writes = self.active, self.writes
        while self.now < to:
            if self.next_event > to:
                self.now = to
                self.write_mode = True
                return
            start = self.now + 1
            floor = start if start > self.hold else self.hold
            best, chosen, command, arrival = NEVER, NO_REQUEST, WR, NEVER
            for request in active:
                cycle, step = floor, request[3]
                in_bank = bank_ready[request[1] * BANK_COMMANDS + step]
                if cycle < in_bank:
                    cycle = in_bank
                if cycle < ready[step]:
                    cycle = ready[step]
                if cycle < best or (cycle == best and request[0] < arrival):
                    best, chosen, command, arrival = cycle, request, step, request[0]
            queue = active
            if best > start:
                self.write_mode = True
                for request in writes:
                    _, bank, row, _, _ = request
                    open_row = rows[bank]
                    step = WR if open_row == row else ACT if open_row == CLOSED else PRE
                    cycle, in_bank = floor, bank_ready[bank * BANK_COMMANDS + step]
                    if cycle < in_bank:
                        cycle = in_bank
                    if cycle < ready[step]:
                        cycle = ready[step]
                    if cycle < best:
                        best, chosen, command, queue = cycle, request, step, writes
                        if cycle == floor:
                            break
            if best > to:
                self.next_event = best
                continue
            _, bank, row, _, line = chosen
            if command == PRE and self._is_claimed(bank):
                if self._event(to) == NOTHING:
                    self.now = to
                self.next_event = 0
                continue
            self.now = best
            self.issue_in_bank(command, bank, row, best)
            if self.log is not None:
                self.log.append((best, command, bank, row, 1, line))
            if command == ACT:
                active.append(chosen)
                queue.remove(chosen)
            elif command != PRE:
                self._complete(command)
                queue.remove(chosen)
