"""The queues of a channel towards the host: what is accepted, and when.

AiM requests are accepted only while no read and no write waits, and the reverse. So the
model may run ahead of the host through a line of AiM requests: nothing that the host
sends later can come before them.
"""

from __future__ import annotations

from typing import Final

import attrs

from patton.device.aim.channel import CLOSED, RD, WR
from patton.device.aim.scheduler import FOREVER, HEAD_LEFT, SYNC, Request, Scheduler

# Far more than the activated requests can need; more means that none gets ahead.
LIVELOCK_EVENTS: Final = 10_000


@attrs.define(eq=False)
class Controller(Scheduler):
    """A channel as the host sees it, or several that have gone through the same.

    departures: when the last `departed` AiM requests left the queue, as (first, count,
    stride); aim_done: when the queue emptied; port: when the last line retired, for a
    host that keeps a port for every channel.
    """

    departures: list[tuple[int, int, int]] = attrs.field(factory=list)
    departed: int = 0
    aim_done: int = -1
    port: int = 0

    def aim(
        self, command: int, count: int, bank: int, row: int, cycle: int, line: int
    ) -> int:
        """Offer `count` requests of an AiM line at `cycle`; when the last is accepted.

        They are carried out to the end. For RDMAC16 and RDAF16, `done` is then the
        cycle in which the host gets the result.
        """
        accepted = offered = self._accepts_aim(cycle, line)
        head = (offered, bank, row, command, line)
        while count and self.active:
            self._until_head_leaves(head)
            accepted = self._depart(self.now, 1, 1, offered)
            count -= 1
        while count:
            issued = self._run(command, count, bank, row, line)
            stride = self.timing.stride[command]
            first = self.now - stride * (issued - 1)
            accepted = self._depart(first, issued, stride, offered)
            count -= issued
        self.contested = bool(self.active)
        self.aim_done = self.now
        return accepted

    def sync(self, cycle: int, line: int) -> int:
        """Offer a SYNC or EOC at `cycle`; when it has completed."""
        offered = self._accepts_aim(cycle, line)
        self._until_head_leaves((offered, -1, CLOSED, SYNC, line))
        self._depart(self.now, 1, 1, offered)
        self.aim_done = self.now
        # Activated writes may issue before it completes, and it waits for those too.
        self.late = []
        done = max(self.now, self.read_done, self.write_done) + 1
        self.advance(done - 1)
        while self.write_done >= done:
            done = self.write_done + 1
            self.advance(done - 1)
        self.done = self.read_done = done
        for completion in self.late:
            self.read_done = max(self.read_done + 1, completion)
        self.late = None
        return done

    def _until_head_leaves(self, head: Request) -> None:
        """Go to where the AiM request at the head issues its last command.

        With a tRAS too short for a write to come between, head and activated requests
        may close each other's rows for ever, in the simulator as here.
        """
        for _ in range(LIVELOCK_EVENTS):
            if self._event(FOREVER, head) == HEAD_LEFT:
                return
        raise self._stalled(head[4])

    def write(self, bank: int, row: int, cycle: int, line: int) -> int:
        """Offer a write at `cycle`; when it is accepted."""
        accepted = self._accepts_memory(cycle)
        while len(self.writes) >= self.timing.queue:
            accepted = self._step(line)
        self.writes.append((accepted, bank, row, WR, line))
        self.next_event = min(self.next_event, accepted)
        return accepted

    def read(self, bank: int, row: int, cycle: int, line: int) -> int:
        """Offer a read at `cycle`; when it is accepted."""
        accepted = self._accepts_memory(cycle)
        if self._forwards(bank, row):
            self.read_done = max(self.read_done + 1, accepted)
            return accepted
        self.next_event = 0
        while len(self.reads) >= self.timing.queue:
            accepted = self._step(line)
        self.reads.append((accepted, bank, row, RD, line))
        return accepted

    def _accepts_aim(self, cycle: int, line: int) -> int:
        """When an AiM request offered at `cycle` finds reads and writes gone."""
        if self.writes or self.reads or self.active or self.refresh_due < cycle:
            self.advance(cycle - 1)
            waits_for_activated = self.timing.variant.wait_for_activated
            while self.writes or self.reads or (waits_for_activated and self.active):
                cycle = max(cycle, self._step(line))
        if self.now < cycle - 1:
            self.now = cycle - 1
            self.write_mode = True
        self.next_event = 0
        return cycle

    def _accepts_memory(self, cycle: int) -> int:
        """When a read or write offered at `cycle` finds AiM requests gone."""
        if cycle <= self.aim_done:
            cycle = self.aim_done + 1
        if self.next_event < cycle:
            self.advance(cycle - 1)
        elif self.now < cycle - 1:
            self.now = cycle - 1
            self.write_mode = True
        return cycle

    def _forwards(self, bank: int, row: int) -> bool:
        """Whether a queued write answers a read, so that no RD is issued.

        The simulator compares addresses that it never sets: any write will do.
        """
        if not self.timing.variant.forward_same_row_only:
            return bool(self.writes)
        return any(
            request[1:4] == (bank, row, WR) for request in (*self.writes, *self.active)
        )

    def _depart(self, first: int, count: int, stride: int, offered: int) -> int:
        """Note that requests left the queue; when the last of them had got in.

        That is one cycle after the request that stood a queue's length before it left.
        """
        departures = self.departures
        departures.append((first, count, stride))
        self.departed += count
        surplus = self.departed - self.timing.queue
        if surplus <= 0:
            return offered
        self.departed = self.timing.queue
        left = 0
        while surplus:
            first, count, stride = departures[0]
            if count <= surplus:
                left = first + stride * (count - 1)
                del departures[0]
                surplus -= count
            else:
                left = first + stride * (surplus - 1)
                departures[0] = (first + stride * surplus, count - surplus, stride)
                surplus = 0
        return max(offered, left + 1)
