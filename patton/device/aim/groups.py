"""Channels that behave alike are simulated once: split and merged as the trace needs.

A split copies a controller. A merge needs proof that two controllers will behave alike:
all state that matters, with cycles counted from the present and those that have passed
set to it, must be equal. What their channels did until then is kept apart.
"""

from __future__ import annotations

from typing import Final

import attrs

from patton.device.aim.channel import CLOSED, NO_REFRESH, LogEntry
from patton.device.aim.commands import BANK_COMMANDS, COMMANDS
from patton.device.aim.controller import Controller
from patton.device.aim.timing import Timing
from patton.device.aim.trace import CHANNELS, FULL_MASK, channels_of

# Merging is tried more and more seldom while it fails, at last once in so many lines.
MERGE_PATIENCE: Final = 64

FIELDS: Final = tuple(field.name for field in attrs.fields(Controller))
LISTS: Final = (
    *("rows", "ready", "bank_ready", "counts"),
    *("reads", "writes", "active", "departures"),
)


@attrs.define
class Past:
    """What a channel did and its controller did not, or the reverse.

    counts: by command, to be added to the controller's; active: cycles with an open
    bank, likewise; log: what the channel issued before the controller's log begins.
    """

    counts: list[int]
    active: int = 0
    log: list[list[LogEntry]] = attrs.field(factory=list)


@attrs.define(eq=False)
class Groups:
    """The controllers of all channels.

    pasts: by channel; merging: whether to merge at all; selections: the controllers of
    a mask, kept until any is split or merged; patience: how many chances to merge pass
    between two attempts; tried_ago: chances since the last.
    """

    controllers: list[Controller]
    pasts: dict[int, Past]
    merging: bool = True
    selections: dict[int, list[Controller]] = attrs.field(factory=dict)
    patience: int = 1
    tried_ago: int = 0

    @classmethod
    def of(cls, timing: Timing, *, logged: bool, merging: bool) -> Groups:
        """All channels idle and alike."""
        banks = timing.preset.size("banks")
        refresh = timing.variant.refresh
        idle = Controller(
            timing=timing,
            mask=FULL_MASK,
            rows=[CLOSED] * banks,
            ready=[0] * COMMANDS,
            bank_ready=[0] * (banks * BANK_COMMANDS),
            counts=[0] * COMMANDS,
            refresh_due=timing.parameters["nREFI"] if refresh else NO_REFRESH,
            log=[] if logged else None,
        )
        pasts = {channel: Past([0] * COMMANDS) for channel in range(CHANNELS)}
        groups = cls([idle], pasts, merging)
        if not merging:
            for channel in range(CHANNELS):
                groups.select(1 << channel)
        return groups

    def by_channel(self) -> dict[int, Controller]:
        """The controller of each channel."""
        return {
            channel: controller
            for controller in self.controllers
            for channel in channels_of(controller.mask)
        }

    def select(self, mask: int) -> list[Controller]:
        """The controllers of exactly the channels of `mask`; splits where it must."""
        known = self.selections.get(mask)
        if known is not None:
            return known
        selected = []
        for controller in list(self.controllers):
            common = controller.mask & mask
            if common == controller.mask:
                selected.append(controller)
            elif common:
                selected.append(self._split(controller, common))
        self.selections[mask] = selected
        return selected

    def _split(self, controller: Controller, mask: int) -> Controller:
        """A controller of its own for those channels of a controller."""
        self._close_log(controller)
        twin = Controller.__new__(Controller)
        for name in FIELDS:
            setattr(twin, name, getattr(controller, name))
        for name in LISTS:
            setattr(twin, name, list(getattr(controller, name)))
        twin.unsettled = dict(controller.unsettled)
        if controller.log is not None:
            twin.log = []
        twin.mask = mask
        controller.mask &= ~mask
        self.controllers.append(twin)
        self.selections.clear()
        return twin

    def merge(self, selected: list[Controller], cycle: int) -> None:
        """Merge those of the controllers that will behave alike after `cycle`."""
        self.tried_ago += 1
        if not self.merging or self.tried_ago < self.patience:
            return
        self.tried_ago = 0
        alike: dict[object, Controller] = {}
        merged = False
        for controller in sorted(selected, key=_channel_count, reverse=True):
            controller.advance(cycle)
            controller.settle()
            state = future_state(controller, cycle)
            if state is None:
                continue
            first = alike.setdefault(state, controller)
            if first is not controller:
                self._absorb(first, controller, cycle)
                merged = True
        self.patience = 1 if merged else min(2 * self.patience, MERGE_PATIENCE)
        if merged:
            self.selections.clear()

    def _absorb(self, kept: Controller, gone: Controller, cycle: int) -> None:
        self._close_log(kept)
        self._close_log(gone)
        more = [b - a for a, b in zip(kept.counts, gone.counts, strict=True)]
        active = gone.active_until(cycle) - kept.active_until(cycle)
        for channel in channels_of(gone.mask):
            past = self.pasts[channel]
            past.counts = [a + b for a, b in zip(past.counts, more, strict=True)]
            past.active += active
        kept.mask |= gone.mask
        self.controllers.remove(gone)

    def _close_log(self, controller: Controller) -> None:
        if controller.log:
            for channel in channels_of(controller.mask):
                self.pasts[channel].log.append(controller.log)
            controller.log = []


def _channel_count(controller: Controller) -> int:
    return controller.mask.bit_count()


def future_state(controller: Controller, cycle: int) -> object | None:
    """All that decides what a controller does after `cycle`, counted from there.

    None if requests wait; they are left alone.
    """
    if controller.active or controller.writes or controller.reads:
        return None
    late = [c - cycle if c > cycle else 0 for c in controller.ready]
    in_banks = (
        tuple(c - cycle if c > cycle else 0 for c in controller.bank_ready)
        if max(controller.bank_ready) > cycle
        else None
    )
    single = (
        controller.hold,
        controller.now,
        controller.aim_done,
        controller.read_done,
        controller.write_done,
        controller.port,
        *controller.recent_acts,
    )
    return (
        tuple(late),
        in_banks,
        tuple(max(c - cycle, 0) for c in single),
        tuple(controller.rows),
        controller.register_mode,
        controller.open_bits,
        controller.write_mode,
        controller.refresh_due,
        _queue_state(controller, cycle),
    )


def _queue_state(controller: Controller, cycle: int) -> object:
    """The departures to come, last first: they decide when later requests get in."""
    found = []
    for first, count, stride in reversed(controller.departures):
        if first + stride * (count - 1) <= cycle:
            break
        found.append((first - cycle, count, stride))
    return tuple(found)
