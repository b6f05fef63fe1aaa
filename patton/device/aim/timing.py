"""A preset and a variant worked out to the tables that the timing model runs on.

Distances become lists that say, for every command issued, which commands it holds back
and for how long; those that a wider scope already implies are left out, because the
tables are walked once per command.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import attrs

from patton.device.aim.commands import (
    BANK_COMMANDS,
    COMMANDS,
    REGISTER_COMMANDS,
    Command,
)
from patton.device.aim.presets import Distance, Preset, Variant
from patton.errors import DeviceConfigError

Deltas = tuple[tuple[int, int], ...]
Pairs = dict[tuple[int, int], int]

# The simulator sets these in its code, after any override by the user.
FIXED: Final = frozenset({"nCLREG", "nCWLREG", "nCWLGB", "nWPRE"})


@attrs.frozen(eq=False)
class Timing:
    """What the model needs to know of device and variant; all times in cycles.

    parameters: the timing parameters in force. channel[c]: pairs (later command,
    distance) after command c; deferred[c]: those from a single-bank command to commands
    on all banks, which the model looks at only when such a command is next.
    bank[c][b]: pairs (index, distance) after c in bank b, where index = bank x
    BANK_COMMANDS + later command. hold[c]: how long c holds back every command.
    stride[c]: distance of c from itself. latency[c]: from issue to completion.
    register[c]: c needs register access. activate_window: (how many ACTs, in how many
    cycles), or None. tracked_bit[b]: the bit that stands for bank b in the count of
    active cycles. queue: requests that fit into a buffer. write_high, write_low: where
    the write mode begins and ends.
    """

    preset: Preset
    variant: Variant
    parameters: Mapping[str, int]
    channel: tuple[Deltas, ...]
    deferred: tuple[Deltas, ...]
    bank: tuple[tuple[Deltas, ...], ...]
    hold: tuple[int, ...]
    stride: tuple[int, ...]
    latency: tuple[int, ...]
    register: tuple[bool, ...]
    activate_window: tuple[int, int] | None
    tracked_bit: tuple[int, ...]
    queue: int
    write_high: float
    write_low: float

    @classmethod
    def of(
        cls, preset: Preset, variant: str, overrides: Mapping[str, int] | None = None
    ) -> Timing:
        """Work out a variant, with timing parameters replaced by `overrides`."""
        chosen = preset.variant(variant)
        parameters = _parameters(preset, chosen, overrides or {})
        pairs, hold, window = _distances(preset, chosen, parameters)
        banks = preset.size("banks")
        per_group = banks // preset.size("bank_groups")
        channel = pairs["channel"]
        bank = tuple(
            tuple(_bank_row(pairs, c, b, per_group) for b in range(banks))
            for c in range(BANK_COMMANDS)
        )
        latency = [0] * COMMANDS
        for name, expression in preset.latency.items():
            latency[Command[name]] = evaluate(expression, parameters)
        return cls(
            preset=preset,
            variant=chosen,
            parameters=parameters,
            channel=tuple(
                tuple(pair for pair in _row(channel, c) if not _is_deferred(c, *pair))
                for c in range(COMMANDS)
            ),
            deferred=tuple(
                tuple(pair for pair in _row(channel, c) if _is_deferred(c, *pair))
                for c in range(BANK_COMMANDS)
            ),
            bank=bank,
            hold=tuple(hold),
            stride=tuple(_stride(pairs, c) for c in range(COMMANDS)),
            latency=tuple(latency),
            register=tuple(c in REGISTER_COMMANDS for c in range(COMMANDS)),
            activate_window=window,
            tracked_bit=tuple(1 << b % chosen.banks_tracked for b in range(banks)),
            queue=preset.size("queue"),
            write_high=preset.organisation["write_high"].value,
            write_low=preset.organisation["write_low"].value,
        )


def evaluate(expression: str, parameters: Mapping[str, int]) -> int:
    """The value of a sum such as "nCL + nBL + 3 - nCWL"."""
    total, sign = 0, 1
    for word in expression.split():
        if word in {"+", "-"}:
            sign = 1 if word == "+" else -1
        else:
            total += sign * (int(word) if word.isdigit() else parameters[word])
    return total


def _parameters(
    preset: Preset, variant: Variant, overrides: Mapping[str, int]
) -> dict[str, int]:
    known = {**preset.timing, **variant.timing}
    free = [name for name in known if name not in FIXED]
    for name, value in overrides.items():
        if name not in free:
            raise DeviceConfigError(preset.name, "timing", name, ", ".join(free))
        if value < 0:
            raise DeviceConfigError(preset.name, name, value, "0 or more cycles")
    return {name: int(entry.value) for name, entry in known.items()} | dict(overrides)


def _distances(
    preset: Preset, variant: Variant, parameters: Mapping[str, int]
) -> tuple[dict[str, Pairs], list[int], tuple[int, int] | None]:
    """The largest distance of each pair by scope, the holds, and the ACT window."""
    pairs: dict[str, Pairs] = {"channel": {}, "bank group": {}, "bank": {}}
    hold = [0] * COMMANDS
    window = None
    for distance in preset.distances:
        if distance.only and variant.name not in distance.only:
            continue
        cycles = evaluate(distance.cycles, parameters)
        before = [Command[name] for name in distance.before]
        if distance.after == ("*",):
            for command in before:
                hold[command] = max(hold[command], cycles)
        elif distance.window > 1:
            window = _activate_window(preset, distance, cycles)
        else:
            table = pairs[distance.scope]
            for b in before:
                for a in (Command[name] for name in distance.after):
                    table[b, a] = max(table.get((b, a), cycles), cycles)
    return pairs, hold, window


def _activate_window(
    preset: Preset, distance: Distance, cycles: int
) -> tuple[int, int]:
    if (distance.scope, distance.before, distance.after) != (
        "channel",
        ("ACT",),
        ("ACT",),
    ):
        accepted = "a window from ACT to ACT of a channel"
        raise DeviceConfigError(preset.name, "window", distance, accepted)
    return distance.window, cycles


def _row(pairs: Pairs, command: int) -> Deltas:
    return tuple((a, cycles) for (b, a), cycles in pairs.items() if b == command)


def _is_deferred(command: int, later: int, _cycles: int) -> bool:
    return command < BANK_COMMANDS <= later


def _bank_row(
    pairs: Mapping[str, Pairs], command: int, bank: int, per_group: int
) -> Deltas:
    """What `command` in `bank` holds back in banks, beyond the rules of the channel."""
    found: dict[int, int] = {}
    first = bank - bank % per_group
    reach = {"bank group": range(first, first + per_group), "bank": (bank,)}
    for scope, banks in reach.items():
        for later, cycles in _row(pairs[scope], command):
            if cycles > pairs["channel"].get((command, later), -1):
                for other in banks:
                    index = other * BANK_COMMANDS + later
                    found[index] = max(found.get(index, 0), cycles)
    return tuple(found.items())


def _stride(pairs: Mapping[str, Pairs], command: int) -> int:
    """At least 1: a channel takes one command a cycle."""
    own = [table.get((command, command), 1) for table in pairs.values()]
    return max(1, *own)
