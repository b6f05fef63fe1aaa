"""The device on whole streams at once, bit-identical to `patton.device.plain`.

Same memory, same arithmetic in the same order; only what is independent, different
accumulations and different bursts, is done side by side in NumPy arrays.
"""

from __future__ import annotations

import numpy as np

from patton.commands import CommandStream
from patton.config import DeviceConfig
from patton.device import protocol, rules
from patton.device.cells import Ints
from patton.device.memory import BankMemory, Bits, Flags, Masks, flags_of
from patton.device.numerics import Floats, burst_sum
from patton.device.plan import Items, Plan, Writes, plan_of
from patton.elements import decode, encode
from patton.executor import Payload, Results

# Products side by side: more would leave the second-level cache, of fewer the calls
# would take most of the time.
_PRODUCTS = 2**17
_WRITTEN_BURSTS = 2**15  # at a time, over all heads, which bounds the memory


class ReferenceDevice:
    """A PIM device that executes streams of any length fast.

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
        protocol.check(stream, self.device)
        self._steps[layer] = stream.step
        plan, frame, results = plan_of(stream), stream.frame, Results.empty(stream)
        for fold in range(frame.folds):
            end = plan.commands if stop is None else stop - fold * plan.commands
            first = fold * frame.groups
            heads = slice(first, min(first + frame.groups, frame.heads))
            if end > 0 and heads.start < heads.stop:
                run = _Run(self.memory, plan, payload, results, heads)
                run.find_rows(
                    stream, (layer * frame.folds + fold) * frame.rows_per_plane
                )
                with np.errstate(over="ignore", under="ignore", invalid="ignore"):
                    run.execute(end)
        return results


class _Run:
    """One run of a stream in one fold of a layer; arrays have an axis of its heads."""

    def __init__(
        self,
        memory: BankMemory,
        plan: Plan,
        payload: Payload,
        results: Results,
        heads: slice,
    ) -> None:
        self.memory = memory
        self.device = memory.device
        self.plan = plan
        self.payload = payload
        self.results = results
        self.heads = heads
        self.many = many = heads.stop - heads.start
        self.banks, self.lanes = self.device.banks, self.device.lanes
        self.slab_bursts = self.banks * self.device.bursts_per_row
        self.bank_first = np.arange(self.banks) * self.device.bursts_per_row
        self.copies = np.zeros((len(plan.copies), many, self.lanes), np.uint16)
        mask = memory.full_mask.dtype
        self.copy_masks = np.zeros((len(plan.copies), many), mask)
        self.read_masks = np.zeros((len(plan.reads), many), mask)
        shape = plan.chains, many, self.banks
        self.sums = np.zeros(shape, np.float32)
        self.sums_written = np.ones(shape, np.bool_)
        self._take_operands()

    def _take_operands(self) -> None:
        """Operands as numbers [E, bursts, heads]: the payload's, then room for copies.

        Lanes come first, as the adder tree wants them.
        """
        products, table = self.plan.products, self.payload.table
        begin, room = len(table), len(self.copies)
        slot_burst = np.concatenate([self.payload.index, begin + np.arange(room)])
        self.operand_of = slot_burst[products.slot]
        if not len(products.slot):
            table, begin = table[:0], 0
        self.copied_from = begin
        self.operands = np.zeros((self.lanes, begin + room, self.many), np.float32)
        lanes_first = np.moveaxis(table[:, self.heads], 2, 0)
        self.operands[:, :begin] = decode(lanes_first, self.device.element)
        self.operands_written = np.ones((begin + room, self.many), np.bool_)

    def find_rows(self, stream: CommandStream, base_row: int) -> None:
        """Where the plan's rows are for each head."""
        plan, frame = self.plan, stream.frame
        group = np.arange(self.many) * frame.channels_per_head
        self.row_channel = plan.row_channel[:, None] + group
        self.row_number = (plan.row_number + base_row)[:, None]

    def execute(self, end: int) -> None:
        """All commands before number `end`."""
        plan = self.plan
        written = np.unique(plan.writes.items.row[plan.writes.items.number < end])
        self.memory.provide(self.row_channel[written], self.row_number[written])
        self.slabs = self.memory.slabs(self.row_channel, self.row_number)
        columns = plan.copies, plan.reads, plan.writes.items
        edges = [items.edges(plan.cuts) for items in columns]
        groups = iter((*plan.products.groups, None))
        group = next(groups)
        for segment in range(len(plan.cuts) + 1):
            copies, reads, writes = (
                np.arange(edge[segment], edge[segment + 1]) for edge in edges
            )
            self._copy(copies)
            self._read(reads[plan.reads.number[reads] < end])
            while group is not None and group.segment == segment:
                self._accumulate(group.pieces)
                group = next(groups)
            self._write(writes[plan.writes.items.number[writes] < end])
        self._return(end)

    def _bursts(self, items: Items, chosen: Ints) -> Ints:
        """Index of each bank burst in the memory [chosen, heads]."""
        slab = self.slabs[items.row[chosen]]
        bursts: Ints = slab * self.slab_bursts + items.place[chosen][:, None]
        return bursts

    def _load(self, bursts: Ints) -> Bits:
        """The bits of bank bursts, lanes in a new last axis."""
        items = self.memory.bursts.take(bursts)
        return items.view(np.uint16).reshape(*bursts.shape, self.lanes)

    # --- reads ------------------------------------------------------------------------

    def _copy(self, chosen: Ints) -> None:
        """RDCP: bank bursts become operands and can be written elsewhere."""
        if not len(chosen):
            return
        bursts = self._bursts(self.plan.copies, chosen)
        bits, masks = self._load(bursts), self.memory.masks[bursts]
        self.copies[chosen], self.copy_masks[chosen] = bits, masks
        place = self.copied_from + chosen
        lanes_first = np.moveaxis(bits, 2, 0)
        self.operands[:, place] = decode(lanes_first, self.device.element)
        self.operands_written[place] = masks == self.memory.full_mask

    def _read(self, chosen: Ints) -> None:
        """RD: the items are in the order of the results."""
        if not len(chosen):
            return
        bursts = self._bursts(self.plan.reads, chosen)
        masks = self.memory.masks[bursts]
        self.read_masks[chosen] = masks
        self.results.read[chosen, self.heads] = self._load(bursts)
        self.results.read_written[chosen, self.heads] = self.memory.flags(masks)

    def _return(self, end: int) -> None:
        """RDMAC: one rounding of each accumulated value."""
        returns = self.plan.returns
        done = returns.number < end
        row, chain = returns.row[done], returns.chain[done]
        values = encode(self.sums[chain], self.device.element)
        self.results.mac[row, self.heads] = values
        self.results.mac_written[row, self.heads] = self.sums_written[chain]

    # --- products ---------------------------------------------------------------------

    def _accumulate(self, pieces: Ints) -> None:
        """MACAB of bundled pieces [members, bundles], as many as the cache holds."""
        members, bundles = pieces.shape
        products = self.lanes * self.banks * self.many * members
        step = max(1, _PRODUCTS // products)
        for low in range(0, bundles, step):
            self._accumulate_some(pieces[:, low : low + step])

    def _accumulate_some(self, pieces: Ints) -> None:
        """Burst after burst, for all pieces that still have one."""
        products = self.plan.products
        begin = products.begin[pieces]
        length = products.begin[pieces[0] + 1] - begin[0]
        chain = products.chain[pieces]
        sums = np.ascontiguousarray(np.moveaxis(self.sums[chain], 3, 0))
        members, bundles = pieces.shape
        written = np.ones((bundles, self.many, self.banks), np.bool_)
        operands_written = np.ones((members, bundles, self.many, 1), np.bool_)
        for i in range(int(length[0])):
            some = int(np.count_nonzero(length > i))  # the longest come first
            at = begin[:, :some] + i
            bank, whole = self._bank_bursts(at[0])
            operand = self.operands.take(self.operand_of[at], axis=1)
            operand = operand.reshape(self.lanes, 1, members, some * self.many)
            burst = burst_sum(bank, operand)
            sums[:, :, :some] += burst.reshape(self.banks, members, some, self.many)
            written[:some] &= whole
            if len(self.copies):
                flags = self.operands_written[self.operand_of[at]]
                operands_written[:, :some, :, 0] &= flags
        self.sums[chain] = np.moveaxis(sums, 0, 3)
        self.sums_written[chain] &= written & operands_written

    def _bank_bursts(self, at: Ints) -> tuple[Floats, Flags]:
        """Numbers [E, banks, 1, bursts * heads], flags [bursts, heads, banks]."""
        products = self.plan.products
        first = self.slabs[products.row[at]] * self.slab_bursts
        first += products.burst[at][:, None]
        bursts = first[..., None] + self.bank_first
        bits = self._load(bursts).reshape(-1, self.banks, self.lanes)
        # Contiguous in the last axis, so that sums run over long vectors.
        lanes_first = np.ascontiguousarray(bits.transpose(2, 1, 0))
        whole = self.memory.masks.take(bursts) == self.memory.full_mask
        return decode(lanes_first, self.device.element)[:, :, None], whole

    # --- writes -----------------------------------------------------------------------

    def _write(self, chosen: Ints) -> None:
        """WR and WRCP: turn after turn, so that the later write wins."""
        if not len(chosen):
            return
        turn = self.plan.writes.turn[chosen]
        step = max(1, _WRITTEN_BURSTS // self.many)
        for i in range(int(turn.max()) + 1):
            now = chosen[turn == i]
            for low in range(0, len(now), step):
                self._write_some(self.plan.writes, now[low : low + step])

    def _write_some(self, writes: Writes, chosen: Ints) -> None:
        """Writes to different bursts."""
        bursts = self._bursts(writes.items, chosen)
        bits, masks = self._sources(writes.slot[chosen])
        whole = self.memory.full_mask
        lanes, fill = writes.lanes[chosen].astype(whole.dtype), writes.fill[chosen]
        part = np.flatnonzero(lanes != whole)
        if len(part):
            lanes, fill = lanes[part][:, None], fill[part]
            others, other_masks = (
                self._load(bursts[part]),
                self.memory.masks[bursts[part]],
            )
            others[fill], other_masks[fill] = 0, whole
            bits[part] = np.where(flags_of(lanes, self.lanes), bits[part], others)
            masks[part] = (masks[part] & lanes) | (other_masks & ~lanes)
        self.memory.bursts[bursts] = bits.view(self.memory.bursts.dtype)[..., 0]
        self.memory.masks[bursts] = masks

    def _sources(self, slot: Ints) -> tuple[Bits, Masks]:
        """What is written: bits [slots, heads, E], written masks [slots, heads]."""
        hosted, copied = len(self.payload.index), len(self.copies)
        bits = np.empty((len(slot), self.many, self.lanes), np.uint16)
        masks = np.full(bits.shape[:2], self.memory.full_mask)
        host = slot < hosted
        index = self.payload.index[slot[host]]
        bits[host] = self.payload.table[index, self.heads]
        copy = ~host & (slot < hosted + copied)
        bits[copy] = self.copies[slot[copy] - hosted]
        masks[copy] = self.copy_masks[slot[copy] - hosted]
        back = slot >= hosted + copied
        read = slot[back] - hosted - copied
        bits[back] = self.results.read[read, self.heads]
        masks[back] = self.read_masks[read]
        return bits, masks
