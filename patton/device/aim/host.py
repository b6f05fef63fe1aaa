"""The two hosts: how the lines of a trace reach the channels.

`line-per-cycle` is the simulator's: one line a cycle for all channels together, in
order. `port-per-channel` has a port for every channel that takes the lines addressing
it, one a cycle; lines for the host alone take no cycle of a port.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import attrs

from patton.device.aim.commands import Command
from patton.device.aim.controller import Controller
from patton.device.aim.groups import Groups
from patton.device.aim.trace import CFR_ACTIVATION, Instruction, Opcode

# The row that an activation function needs open, for function 0.
LOOK_UP_TABLE_ROW: Final = 1 << 29

AIM_COMMANDS: Final = {
    Opcode.WR_GB: Command.WRGB,
    Opcode.WR_BIAS: Command.WRMAC16,
    Opcode.MAC_ABK: Command.MAC16,
    Opcode.MAC_SBK: Command.MAC,
    Opcode.RD_MAC: Command.RDMAC16,
    Opcode.RD_AF: Command.RDAF16,
    Opcode.AF: Command.AF16,
    Opcode.EWMUL: Command.EWMUL16,
    Opcode.COPY_BKGB: Command.RDCP,
    Opcode.COPY_GBBK: Command.WRCP,
    Opcode.WR_ABK: Command.WRA16,
}

# By opcode, for speed. -1 where a line is no AiM request.
AIM_COMMAND: Final = tuple(int(AIM_COMMANDS.get(opcode, -1)) for opcode in Opcode)
BLOCKING: Final = tuple(op in {Opcode.RD_MAC, Opcode.RD_AF} for op in Opcode)
WRITES: Final = tuple(op in {Opcode.W_MEM, Opcode.WR_SBK} for op in Opcode)
BARRIER: Final = tuple(op in {Opcode.SYNC, Opcode.EOC} for op in Opcode)
ON_CHANNELS: Final = tuple(
    op in AIM_COMMANDS or "MEM" in op.name or "SBK" in op.name for op in Opcode
)


@attrs.define(eq=False)
class LineHost:
    """One line a cycle. retired: the cycle in which the last line was done with.

    per_channel: RD_MAC and RD_AF hold back later lines only for the channels they read.
    """

    groups: Groups
    per_channel: bool = False
    retired: int = 0
    activation: int = 0

    def run(self, trace: Sequence[Instruction]) -> int:
        """Run a trace that ends in EOC; the cycle in which that completed."""
        for line, instruction in enumerate(trace):
            opcode = instruction[0]
            if ON_CHANNELS[opcode] and instruction.mask and instruction.opsize:
                self._serve(instruction, line)
            elif BARRIER[opcode]:
                self._synchronise(line)
            else:
                self._serve_host(instruction)
        # Channels work through the last cycle, whether or not it addressed them.
        for controller in self.groups.controllers:
            controller.advance(self.retired)
        return self.retired

    def _serve(self, instruction: Instruction, line: int) -> None:
        """A line for the banks or registers of some channels."""
        groups = self.groups
        selected = groups.selections.get(instruction.mask)
        if selected is None:
            selected = groups.select(instruction.mask)
        start = self.retired + 1
        if self.per_channel:
            start = max(start, *(controller.port + 1 for controller in selected))
        blocking = BLOCKING[instruction.opcode]
        retired = start
        for controller in selected:
            until = self._offer(controller, instruction, start, line)
            if blocking:
                until = self._block(controller, until)
            if retired < until:  # noqa: PLR1730 - once per line and channel
                retired = until
        self.retired = retired
        if blocking and len(selected) > 1:
            groups.merge(selected, retired)

    def _block(self, controller: Controller, accepted: int) -> int:
        """The line retires when its result is there, or only holds up the channel."""
        if self.per_channel:
            controller.port = controller.done
            return accepted
        return controller.done

    def _offer(
        self, controller: Controller, instruction: Instruction, cycle: int, line: int
    ) -> int:
        """When a channel that is offered the line at `cycle` has accepted all of it."""
        opcode, opsize, _, bank, row = instruction[:5]
        command = AIM_COMMAND[opcode]
        if command < 0:
            if WRITES[opcode]:
                return controller.write(bank, row, cycle, line)
            return controller.read(bank, row, cycle, line)
        if opcode == Opcode.AF:
            row = LOOK_UP_TABLE_ROW + self.activation
        return controller.aim(command, opsize, bank, row, cycle, line)

    def _serve_host(self, instruction: Instruction) -> None:
        """A line that no channel sees; it takes its cycle in the queue."""
        self.retired += 1
        self._configure(instruction)

    def _configure(self, instruction: Instruction) -> None:
        is_write = instruction.opcode == Opcode.W_CFR
        if is_write and instruction.register == CFR_ACTIVATION:
            self.activation = instruction.value

    def _synchronise(self, line: int) -> None:
        """A SYNC or EOC: wait for all channels."""
        controllers = self.groups.controllers
        start = 1 + max(self.retired, *(controller.port for controller in controllers))
        self.retired = max(controller.sync(start, line) for controller in controllers)
        if len(controllers) > 1:
            self.groups.merge(list(controllers), self.retired)


@attrs.define(eq=False)
class PortHost(LineHost):
    """One line a cycle and channel; a result holds up only the channel's own port."""

    def _serve(self, instruction: Instruction, line: int) -> None:
        blocking = BLOCKING[instruction.opcode]
        for controller in self.groups.select(instruction.mask):
            until = self._offer(controller, instruction, controller.port + 1, line)
            controller.port = controller.done if blocking else until

    def _serve_host(self, instruction: Instruction) -> None:
        self._configure(instruction)

    def _synchronise(self, line: int) -> None:
        controllers = self.groups.controllers
        self.retired = max(
            controller.sync(controller.port + 1, line) for controller in controllers
        )
        for controller in controllers:
            controller.port = self.retired
        if len(controllers) > 1:
            self.groups.merge(list(controllers), self.retired)
