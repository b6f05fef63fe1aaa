"""The device as the definition of itself: one command, one channel at a time.

Slow and obvious: `patton.device.batched` must come to the same bits.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from patton.commands import CommandStream, Frame, Op
from patton.config import DeviceConfig
from patton.device import rules
from patton.device.memory import BankMemory, Bits, mask_of_all
from patton.device.numerics import burst_sum
from patton.device.rules import Single
from patton.elements import decode, encode
from patton.executor import Payload, Results


class PlainDevice:
    """A PIM device that obeys a stream command by command, channel by channel.

    memory: the banks' cells, which outlast streams; all else starts undefined in every
    stream (Paper 2.1, 2.2). Raises DeviceConfigError for elements without arithmetic.
    """

    def __init__(self, device: DeviceConfig) -> None:
        rules.check_device(device)
        self.device = device
        self.memory = BankMemory(device)
        self._steps: dict[int, int] = {}

    def run(
        self,
        stream: CommandStream,
        payload: Payload,
        *,
        layer: int = 0,
        stop: int | None = None,
    ) -> Results:
        """Execute a stream for all heads of one layer; see `patton.executor.Executor`.

        Raises ProtocolError, FrameError or PayloadError before anything has changed.
        """
        rules.check_arguments(stream, payload, layer, stop)
        rules.check_step(stream, layer, self._steps.get(layer))
        rules.check_frame(stream, self.device, layer)
        rules.check_payload(stream, payload)
        violation = rules.first_violation(stream, self.device)
        if violation is not None:
            raise violation
        self._steps[layer] = stream.step
        run = _Run(self.memory, stream, payload, layer)
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            run.execute(stop)
        return run.results


class _Channel:
    """What one channel of a head holds while a stream runs, beside its banks' cells."""

    def __init__(self, device: DeviceConfig, head: int, number: int) -> None:
        self.head = head
        self.number = number
        width, lanes = device.bursts_per_row, device.lanes
        self.buffer = np.zeros((width, lanes), np.uint16)
        self.buffer_written = np.zeros(width, mask_of_all(lanes).dtype)
        registers = device.result_registers, device.banks
        self.sums = np.zeros(registers, np.float32)
        self.sums_written = np.zeros(registers, np.bool_)


class _Run:
    """One run of one stream over one layer."""

    def __init__(
        self, memory: BankMemory, stream: CommandStream, payload: Payload, layer: int
    ) -> None:
        self.memory = memory
        self.device = memory.device
        self.stream = stream
        self.payload = payload
        self.layer = layer
        self.first_payload = stream.payload_offsets()
        self.first_mac = stream.mac_offsets()
        self.first_read = stream.read_offsets()
        self.results = Results.empty(stream)
        self.base_row = 0

    def execute(self, stop: int | None) -> None:
        """All commands of all folds, up to the one to stop before."""
        frame = self.stream.frame
        total = int(self.stream.command_offsets()[-1])
        for fold in range(frame.folds):
            plane = self.layer * frame.folds + fold
            self.base_row = plane * frame.rows_per_plane
            channels = list(self._channels(frame, fold))
            for single in rules.single_commands(self.stream):
                if stop is not None and fold * total + single.number >= stop:
                    return
                for group in channels:
                    for offset, number in enumerate(single.channels):
                        self._obey(single, offset, group[number])

    def _channels(self, frame: Frame, fold: int) -> Iterator[list[_Channel]]:
        """The channels of each head that this fold holds."""
        for head in range(fold * frame.groups, (fold + 1) * frame.groups):
            if head < frame.heads:
                first = head % frame.groups * frame.channels_per_head
                numbers = range(first, first + frame.channels_per_head)
                yield [_Channel(self.device, head, number) for number in numbers]

    def _obey(self, single: Single, offset: int, channel: _Channel) -> None:
        """One command in one channel, the `offset`-th of the command's channels."""
        op, register = single.whole.op, single.whole.register
        if op == Op.MACAB:
            self._multiply(single, channel)
        elif op == Op.WRGB:
            place = int(self.first_payload[single.entry]) + single.place
            channel.buffer[single.buffer] = self._host_burst(place, channel.head)
            channel.buffer_written[single.buffer] = self.memory.full_mask
        elif op == Op.WRBIAS:
            channel.sums[register] = 0
            channel.sums_written[register] = True
        elif op == Op.RDMAC:
            row = int(self.first_mac[single.entry]) + offset
            sums = encode(channel.sums[register], self.device.element)
            self.results.mac[row, channel.head] = sums
            self.results.mac_written[row, channel.head] = channel.sums_written[register]
        elif op == Op.RDCP:
            bits, written = self._bank_burst(single, channel)
            channel.buffer[single.buffer] = bits
            channel.buffer_written[single.buffer] = written
        elif op == Op.WRCP:
            bits = channel.buffer[single.buffer]
            written = channel.buffer_written[single.buffer]
            self._write(single, channel, bits, self.memory.full_mask, written)
        elif op == Op.RD:
            self._host_read(single, offset, channel)
        elif op == Op.WR:
            self._host_write(single, offset, channel)
        # ACT opens a row and RDAF does not occur: both are the protocol's business.

    def _multiply(self, single: Single, channel: _Channel) -> None:
        """MACAB: the burst of every bank times the Global Buffer's, accumulated."""
        burst, register = single.burst, single.whole.register
        row = self.base_row + single.whole.row
        data, masks = self.memory.slab(channel.number, row)
        element = self.device.element
        banks = decode(np.ascontiguousarray(data[:, burst].T), element)
        operand = decode(channel.buffer[burst], element)
        channel.sums[register] += burst_sum(banks, operand[:, None])
        written = masks[:, burst] & channel.buffer_written[burst]
        channel.sums_written[register] &= written == self.memory.full_mask

    def _host_read(self, single: Single, offset: int, channel: _Channel) -> None:
        """RD: the bits, and which lanes of them were ever written."""
        place = self._place(int(self.first_read[single.entry]), single, offset)
        bits, written = self._bank_burst(single, channel)
        self.results.read[place, channel.head] = bits
        self.results.read_written[place, channel.head] = self.memory.flags(written)

    def _host_write(self, single: Single, offset: int, channel: _Channel) -> None:
        """WR: chosen lanes from the host or from what it read; the others filled."""
        full = self.memory.full_mask
        lanes = full.dtype.type(single.whole.lanes or 0)
        if self.stream.source == "read-back":
            place = self._place(single.whole.reference, single, offset)
            bits = self.results.read[place, channel.head].copy()
            flags = self.results.read_written[place, channel.head]
            written = full.dtype.type(sum(1 << i for i in np.flatnonzero(flags)))
        else:
            start = int(self.first_payload[single.entry])
            place = self._place(start, single, offset)
            bits, written = self._host_burst(place, channel.head).copy(), full
        if single.whole.fill:
            bits[~self.memory.flags(lanes)] = 0
            written, lanes = written | ~lanes, full
        self._write(single, channel, bits, lanes, written)

    def _host_burst(self, place: int, head: int) -> Bits:
        burst: Bits = self.payload.table[self.payload.index[place], head]
        return burst

    def _place(self, start: int, single: Single, offset: int) -> int:
        """Where the burst of one channel is, if those of the entry begin at `start`."""
        per_channel = single.whole.banks * single.whole.count
        return start + offset * per_channel + single.place

    def _bank_burst(
        self, single: Single, channel: _Channel
    ) -> tuple[Bits, np.unsignedinteger]:
        row = self.base_row + single.whole.row
        return self.memory.read(channel.number, single.bank, row, single.burst)

    def _write(
        self,
        single: Single,
        channel: _Channel,
        bits: Bits,
        lanes: np.unsignedinteger,
        written: np.unsignedinteger,
    ) -> None:
        row = self.base_row + single.whole.row
        place = channel.number, single.bank, row, single.burst
        self.memory.write(place, bits, lanes, written)
