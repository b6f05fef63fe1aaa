"""A modified processing unit: outer products with Values that are written whole.

AiM's unit multiplies a burst of a bank with a burst of the Global Buffer and adds up
the sixteen products. The one of AttenPIM and L3 multiplies a burst, sixteen elements of
one token's Value, with a single weight and keeps sixteen sums: a token's Value can so
lie in whole bursts and be written without masks, and a sum goes on over any rows.

MACSV, for burst b of a row: bank k belongs to part `k // banks_per_head` of a bundle of
heads; its weight is element `reference * lanes + part * tokens_per_row + b //
token_bursts` of the Global Buffer; lane l is added to register `(b % token_bursts) *
lanes + l`. All registers are cleared and read one by one, as WRBIAS and RDMAC do it.
"""

from __future__ import annotations

import attrs
import numpy as np

from patton.commands import CommandStream, Op
from patton.config import DeviceConfig
from patton.device import ReferenceDevice, protocol, rules
from patton.device.cells import Flags, last_before, spread
from patton.device.memory import Bits
from patton.elements import decode, encode
from patton.errors import DeviceConfigError, ProtocolError
from patton.executor import Payload, Results
from patton.layout import Layout
from patton.steps import Ints


@attrs.frozen
class OuterUnit:
    """How a head's Values lie in the banks of a channel.

    parts: heads side by side in the banks; token_bursts: of a token in each bank of its
    head; lanes, banks, bursts_per_row: of the device.
    """

    parts: int
    token_bursts: int
    lanes: int
    banks: int
    bursts_per_row: int

    @classmethod
    def of(cls, name: str, layout: Layout, token_bursts: int) -> OuterUnit:
        """A unit for the heads of a model. Raises DeviceConfigError."""
        device, model = layout.device, layout.model
        banks = -(-layout.key_bursts // token_bursts)
        parts = device.banks // banks
        whole = layout.key_bursts == banks * token_bursts
        whole = whole and model.head_dim == layout.key_bursts * device.lanes
        whole = whole and device.banks == banks * parts and layout.folds == 1
        if not whole or model.kv_heads % max(1, parts):
            value = f"{model.kv_heads} heads of {model.head_dim} elements"
            accepted = f"whole bundles of heads in {device.banks} banks"
            raise DeviceConfigError(name, "model", value, accepted)
        geometry = device.lanes, device.banks, device.bursts_per_row
        return cls(parts, token_bursts, *geometry)

    @property
    def banks_per_head(self) -> int:
        """Banks over which a token's Value is spread."""
        return self.banks // self.parts

    @property
    def registers(self) -> int:
        """Result registers of a bank."""
        return self.token_bursts * self.lanes

    @property
    def tokens_per_row(self) -> int:
        """Tokens of a row of a channel, in all parts."""
        return self.bursts_per_row // self.token_bursts

    @property
    def row_weights(self) -> int:
        """Global Buffer bursts that hold the weights of a whole row, for all parts."""
        return self.parts * self.tokens_per_row // self.lanes

    def modified(self, device: DeviceConfig) -> DeviceConfig:
        """The device with the registers of this unit."""
        return attrs.evolve(device, result_registers=self.registers)


class OuterDevice:
    """A `ReferenceDevice` whose banks have an outer-product unit beside their own.

    Products are exact in FP32, sums are FP32 in the order of bursts, and rounded to an
    element once, when they are read. Raises DeviceConfigError.
    """

    def __init__(self, device: DeviceConfig, unit: OuterUnit) -> None:
        self.inner, self.unit, self.device = ReferenceDevice(device), unit, device
        self._steps: dict[int, int] = {}

    def run(
        self,
        stream: CommandStream,
        payload: Payload,
        *,
        layer: int = 0,
        stop: int | None = None,
    ) -> Results:
        """See `patton.executor.Executor`."""
        if not (stream.op == Op.MACSV).any():
            return self.inner.run(stream, payload, layer=layer, stop=stop)
        rules.check_step(stream, layer, self._steps.get(layer))
        rules.check_frame(stream, self.device, layer)
        rules.check_payload(stream, payload)
        check_outer(stream, self.device, self.unit)
        self._steps[layer] = stream.step
        run = _Run(self, stream, payload, layer)
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            run.execute(stop)
        return run.results


class _Run:
    """One stream; arrays [heads, channels, ...] of all channels of the frame."""

    def __init__(
        self, device: OuterDevice, stream: CommandStream, payload: Payload, layer: int
    ) -> None:
        self.memory, self.unit = device.inner.memory, device.unit
        self.stream, self.payload = stream, payload
        self.element = device.device.element
        frame, unit = stream.frame, device.unit
        self.base = layer * frame.folds * frame.rows_per_plane
        size = frame.heads, frame.channels_per_head
        self.buffer = np.zeros((*size, unit.bursts_per_row * unit.lanes), np.float32)
        self.sums = np.zeros((*size, unit.registers, unit.banks), np.float32)
        self.whole = np.zeros(self.sums.shape, np.bool_)
        self.results = Results.empty(stream)

    def execute(self, stop: int | None) -> None:
        """All entries; results of commands from `stop` on are not returned."""
        number, row = self.stream.command_offsets(), self.stream.mac_offsets()
        first = self.stream.payload_offsets()
        for entry, command in enumerate(self.stream.commands()):
            channels = slice(command.channel, command.channel + command.channels)
            if command.op == Op.WRGB:
                index = self.payload.index[first[entry] : first[entry + 1]]
                loaded = self.payload.table[index].swapaxes(0, 1)
                start = command.burst * self.unit.lanes
                weights = decode(loaded.reshape(len(loaded), 1, -1), self.element)
                self.buffer[:, channels, start : start + weights.shape[2]] = weights
            elif command.op == Op.WRBIAS:
                self.sums[:, channels, command.register] = 0
                self.whole[:, channels, command.register] = True
            elif command.op == Op.MACSV:
                for burst in range(command.burst, command.burst + command.count):
                    self._multiply(channels, command.row, burst, command.reference)
            elif command.op == Op.RDMAC and (stop is None or number[entry] < stop):
                sums = self.sums[:, channels, command.register].swapaxes(0, 1)
                rows = slice(int(row[entry]), int(row[entry + 1]))
                self.results.mac[rows] = encode(sums, self.element)
                whole = self.whole[:, channels, command.register].swapaxes(0, 1)
                self.results.mac_written[rows] = whole

    def _multiply(self, channels: slice, row: int, burst: int, weights: int) -> None:
        """One burst of every bank times the weight of its token."""
        unit = self.unit
        token, place = divmod(burst, unit.token_bursts)
        bits, whole = self._bursts(channels, row, burst)
        part = np.arange(unit.banks) // unit.banks_per_head
        at = weights * unit.lanes + part * unit.tokens_per_row + token
        scalar = self.buffer[:, channels][:, :, at]  # [heads, channels, banks]
        lanes = slice(place * unit.lanes, (place + 1) * unit.lanes)
        products = decode(bits, self.element) * scalar[..., None]
        self.sums[:, channels, lanes] += products.swapaxes(2, 3)
        self.whole[:, channels, lanes] &= whole[:, :, None]

    def _bursts(self, channels: slice, row: int, burst: int) -> tuple[Bits, Flags]:
        """A burst of all banks [heads, channels, banks, E], and which are written."""
        frame, unit = self.stream.frame, self.unit
        head = np.arange(frame.heads)[:, None] * frame.channels_per_head
        channel = head + np.arange(channels.start, channels.stop)
        slab = self.memory.slabs(channel, np.array(self.base + row))
        bank = np.arange(unit.banks)
        at = (slab[..., None] * unit.banks + bank) * unit.bursts_per_row + burst
        bits = self.memory.bursts.take(at).view(np.uint16)
        masks = self.memory.masks.take(at)
        return bits.reshape(*at.shape, unit.lanes), masks == self.memory.full_mask


def check_outer(stream: CommandStream, device: DeviceConfig, unit: OuterUnit) -> None:
    """The protocol of a device with this unit. Raises ProtocolError.

    MACSVs need their row open as reads do, their weights loaded and all registers
    cleared; everything else is as on any device.
    """
    outer = stream.op == Op.MACSV
    others = attrs.evolve(stream, op=np.where(outer, Op.RD, stream.op).astype(np.uint8))
    protocol.check(others, device)
    entries = np.flatnonzero(outer)
    whole = (stream.banks[entries] == unit.banks) & (stream.register[entries] == 0)
    first = stream.reference[entries].astype(np.int64)
    whole &= (first >= 0) & (first + unit.row_weights <= unit.bursts_per_row)
    accepted = "all banks, from register 0, weights inside the Global Buffer"
    _refuse(stream, entries[~whole], rules.Rule.ADDRESS, "others", accepted)
    bad = _without_weights(stream, unit, entries)
    _refuse(stream, bad, rules.Rule.OPERAND, "weights not loaded", "WRGB before")
    bad = _without_registers(stream, unit, entries)
    accepted = f"WRBIAS of all {unit.registers} before"
    _refuse(stream, bad, rules.Rule.REGISTER, "registers not initialised", accepted)


def _refuse(
    stream: CommandStream, bad: Ints, rule: rules.Rule, found: str, accepted: str
) -> None:
    """Raise the error of the first of these entries, if there are any."""
    if len(bad):
        entry = int(bad.min())
        number = int(stream.command_offsets()[entry])
        command = str(list(stream.commands())[entry])
        raise ProtocolError(rule, number, entry, command, found, accepted)


def _without_weights(stream: CommandStream, unit: OuterUnit, entries: Ints) -> Ints:
    """Those MACSVs for which a burst of weights was never loaded."""
    loads = np.flatnonzero(stream.op == Op.WRGB)
    loaded = spread(stream.burst[loads], stream.count[loads])
    step = unit.token_bursts * unit.lanes  # bursts of a row for one of weights
    burst = stream.burst[entries].astype(np.int64)
    first, last = burst // step, (burst + stream.count[entries] - 1) // step
    used = spread(first + stream.reference[entries], last + 1 - first)
    part = np.arange(unit.parts)[:, None] * (unit.tokens_per_row // unit.lanes)
    entry = np.concatenate([loads[loaded.source], *[entries[used.source]] * unit.parts])
    place = np.concatenate([loaded.value, (used.value + part).ravel()])
    entry, place = _in_channels(stream, entry, place, unit.bursts_per_row)
    loading = stream.op[entry] == Op.WRGB
    bad: Ints = entry[~loading & (last_before(place, loading) < 0)]
    return bad


def _without_registers(stream: CommandStream, unit: OuterUnit, entries: Ints) -> Ints:
    """Those MACSVs for which a register was not cleared since it was read."""
    others = np.flatnonzero(np.isin(stream.op, (Op.WRBIAS, Op.RDMAC)))
    register = np.tile(np.arange(unit.registers), len(entries))
    entry = np.concatenate([others, entries.repeat(unit.registers)])
    place = np.concatenate([stream.register[others].astype(np.int64), register])
    entry, place = _in_channels(stream, entry, place, unit.registers)
    op = stream.op[entry]
    last = last_before(place, op != Op.MACSV)
    ready = (last >= 0) & (op[last] == Op.WRBIAS)
    bad: Ints = entry[(op == Op.MACSV) & ~ready]
    return bad


def _in_channels(
    stream: CommandStream, entry: Ints, place: Ints, width: int
) -> tuple[Ints, Ints]:
    """Places that entries touch, in each of their channels, in the order of entries."""
    order = np.argsort(entry, kind="stable")
    entry, place = entry[order], place[order]
    channels = spread(stream.channel[entry], stream.channels[entry])
    return entry[channels.source], channels.value * width + place[channels.source]
