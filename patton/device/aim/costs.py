"""What command streams cost: cycles and energy of a phase, of a request, of a layer.

A stream is self-contained, so it is simulated on its own, for one layer and all its
folds; layers differ in nothing but their rows and cost the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import attrs
import numpy as np
from numpy.typing import NDArray

from patton.commands import CommandStream, Op
from patton.device.aim.convert import SETTLING, SYNC, Operands, convert
from patton.device.aim.energy import (
    Components,
    EnergyModel,
    energy_by_label,
    load_energy_model,
)
from patton.device.aim.presets import DEFAULT_PRESET, Preset, load_preset
from patton.device.aim.simulation import HOSTS, AimResult, simulate
from patton.device.aim.timing import Timing
from patton.device.aim.trace import CHANNELS, Instruction, Opcode

Ints = NDArray[np.int64]

# `SETTLING` for a host with a port for each channel, where host lines take no cycle.
PORT_SETTLING: Final = (SYNC,) * (len(SETTLING) // 2)

# The label of what no request caused: refresh, the end, copies inside the device.
NO_REQUEST: Final = -1


@attrs.frozen
class Target:
    """On what, and in which way, streams are timed; the names are those of `simulate`.

    channels: of the device. Others of the 32 that a trace can address are not there
    and use no energy.
    """

    variant: str = "head"
    host: str = HOSTS[0]
    operands: Operands = "shared"
    channels: int = CHANNELS
    preset: Preset = attrs.field(factory=lambda: load_preset(DEFAULT_PRESET))
    energy: EnergyModel = attrs.field(factory=load_energy_model)


@attrs.frozen
class Cost:
    """Cycles and energy of one layer.

    macs: MACABs sent, a multicast one counts once; spent: see there.
    """

    cycles: int
    energy_pj: Components
    macs: int
    spent: dict[str, int]


def stream_cost(stream: CommandStream, target: Target) -> Cost:
    """Simulate a stream on one layer. Raises FrameError, DeviceConfigError."""
    result = run_stream(stream, target)
    energy: Components = dict.fromkeys(target.energy.components, 0.0)
    for channel in range(target.channels):
        for component, pj in target.energy.of_channel(result, channel).items():
            energy[component] += pj
    counts = stream.counts()
    macs = (counts.get(Op.MACAB, 0) + counts.get(Op.MACSV, 0)) * stream.frame.folds
    return Cost(result.cycles, energy, macs, spent(result, target))


def run_stream(
    stream: CommandStream, target: Target, *, timed: bool = False
) -> AimResult:
    """The simulated run of a stream on layer 0; lines count from its first.

    The simulator would lose a last write that waits for its row (`SETTLING`); where it
    does, the run is repeated with time for it.
    """
    lines = convert(stream, operands=target.operands).instructions
    result = run_lines(lines, target, timed=timed)
    wanted = sum(x.mask.bit_count() for x in lines if x.opcode == Opcode.WR_SBK)
    if result.total("WR") < wanted:
        settling = SETTLING if target.host == HOSTS[0] else PORT_SETTLING
        result = run_lines([*lines, *settling], target, timed=timed)
    return result


def run_lines(
    lines: Sequence[Instruction], target: Target, *, timed: bool = False
) -> AimResult:
    """`simulate` as the target says."""
    return simulate(
        lines,
        variant=target.variant,
        host=target.host,
        preset=target.preset,
        timed=timed,
    )


def spent(result: AimResult, target: Target) -> dict[str, int]:
    """Why a run takes longer than its MACs, on the channel that has most of them.

    macs: one every nCCDS cycles, the bound; buffer_loads, mode_switches and row_changes
    by their number and duration; other: read-outs, and waiting for other channels.
    """
    parameters = Timing.of(target.preset, target.variant).parameters
    busiest = max(result.commands.values(), key=lambda c: c.get("MAC16", 0), default={})
    cycles = {
        "macs": parameters["nCCDS"] * busiest.get("MAC16", 0),
        "buffer_loads": parameters["nCCDS"] * busiest.get("WRGB", 0),
        "mode_switches": parameters["nMODCH"] * busiest.get("TMOD", 0),
        "row_changes": parameters["nRCDRDMAC"] * busiest.get("ACT16", 0)
        + parameters["nRP"] * busiest.get("PREA", 0),
    }
    # Rows are opened while other things go on, too.
    return cycles | {"other": max(0, result.cycles - sum(cycles.values()))}


# --- requests ---------------------------------------------------------------------


def energy_by_request(stream: CommandStream, target: Target) -> dict[int, Components]:
    """Energy of one layer by the request that causes it, an index into the step's.

    NO_REQUEST has what none caused alone. A row is opened, a mode switched for the
    command that follows; standby goes by the cycles up to a request's commands. Covers
    all channels that a trace can address.
    """
    found = convert(stream, operands=target.operands)
    owners = entry_requests(stream)
    request_of = [int(owners[e]) if e >= 0 else NO_REQUEST for e in found.entries]

    def label(line: int) -> str:
        known = 0 <= line < len(request_of)
        return str(request_of[line] if known else NO_REQUEST)

    result = run_stream(stream, target, timed=True)
    by_label = energy_by_label(result, label, target.energy)
    return {int(name): components for name, components in by_label.items()}


def entry_requests(stream: CommandStream) -> Ints:
    """The request that each entry serves [entries], NO_REQUEST where it has none.

    ACTs have none: they are shared by all that follows in their row.
    """
    owners = np.full(len(stream), NO_REQUEST, np.int64)
    if stream.queries is not None:
        _mark_vectors(stream, owners)
    elif stream.tokens is not None:
        _mark_bursts(stream, owners)
    return owners


def _mark_vectors(stream: CommandStream, owners: Ints) -> None:
    """Loads and results name their query; what leads to a result lies between."""
    assert stream.queries is not None
    heads = stream.frame.heads_per_kv
    for op, table in ((Op.WRGB, stream.loads), (Op.RDMAC, stream.results)):
        if table is not None:
            at = stream.op == op
            query = table.query[stream.reference[at] // heads]
            owners[at] = stream.queries.request[query]
    at = np.flatnonzero(np.isin(stream.op, (Op.WRBIAS, Op.MACAB, Op.MACSV)))
    reads = np.flatnonzero(stream.op == Op.RDMAC)
    following = np.searchsorted(reads, at)
    inside = following < len(reads)
    owners[at[inside]] = owners[reads[following[inside]]]


def _mark_bursts(stream: CommandStream, owners: Ints) -> None:
    """RDs and WRs name their first token, or the RD that brought their data."""
    assert stream.tokens is not None
    assert stream.axes is not None
    assert stream.lanes is not None
    lanes = stream.lanes.astype(np.uint64)
    lowest = lanes & (~lanes + np.uint64(1))
    lane = np.log2(np.maximum(lowest, 1).astype(np.float64)).astype(np.int64)
    token = stream.reference + lane * stream.axes.token.lane
    own = np.isin(stream.op, (Op.RD, Op.WR))
    copied = (stream.op == Op.WR) & (stream.source == "read-back")
    own &= ~copied
    owners[own] = stream.tokens.request[token[own]]
    if copied.any():
        brought = np.searchsorted(
            stream.read_offsets(), stream.reference[copied], side="right"
        )
        owners[copied] = owners[brought - 1]
