"""Rows owned by requests: allocated as a request grows, or all at its admission.

What AttAcc, PAISE, CENT, PIMphony, NeuPIMs, AttenPIM and L3 have in common: a request
owns whole rows for its Keys and for its Values, from one pool of free rows, and gives
them back when it ends. They differ in how many rows they take at a time, and in the
channels that a row stands for.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence

import attrs
import numpy as np

from patton.config import DeviceConfig, ModelConfig
from patton.errors import DeviceConfigError, OutOfRowsError, RequestError
from patton.steps import Request
from patton.systems.maps import HeadMap, Holdings, Map, Table, shape_of
from patton.systems.memory import MappedMemory, Running
from patton.systems.system import Usage


@attrs.frozen
class Unit:
    """So many rows are taken at a time, and hold so many tokens."""

    rows: int
    tokens: int

    def rows_for(self, tokens: int) -> int:
        """Rows of the units that so many tokens take."""
        return -(-tokens // self.tokens) * self.rows


@attrs.define(eq=False)
class Owner(Running):
    """A request and its rows, in the order of its tokens. domain: see `RowMemory`."""

    domain: int = 0
    keys: list[int] = attrs.field(factory=list)
    values: list[int] = attrs.field(factory=list)


@attrs.define(eq=False, kw_only=True)
class RowMemory(MappedMemory):
    """Rows in domains, each a group of channels with `rows` rows of its own.

    A request has all of its rows in one domain. domains: the first channel of each, one
    domain of all channels as a rule. keys, values: what is taken at a time. reserved:
    tokens for which a request takes rows at its admission; None where it grows.
    free: the rows of each domain, lowest first.
    """

    rows: int
    keys: Unit
    values: Unit
    domains: tuple[int, ...] = (0,)
    reserved: int | None = None
    free: list[list[int]] = attrs.field(factory=list)
    requests: dict[Request, Owner] = attrs.field(factory=dict)  # type: ignore[assignment]

    def __attrs_post_init__(self) -> None:
        self.free = [list(range(self.rows)) for _ in self.domains]

    # --- blocks -------------------------------------------------------------------

    def bind(self, request: Request, block: int) -> None:
        """See `Memory`. Raises OutOfRowsError."""
        owner = self.requests.get(request)
        if owner is None:
            if not self.admit(request, 1):
                raise self._out_of_rows(request, self._rows_for(self.block_tokens))
            owner = self.requests[request]
        self._grow(owner, request, (len(owner.blocks) + 1) * self.block_tokens)
        owner.blocks.append(block)

    def finish(self, request: Request) -> None:
        """See `Memory`. Raises RequestError."""
        owner = self.requests.pop(request, None)
        if owner is None:
            accepted = "a running request"
            raise RequestError("finish", request, "no request", accepted)
        for row in (*owner.keys, *owner.values):
            heapq.heappush(self.free[owner.domain], row)

    def bindable(
        self,
        request: Request,
        shares: Sequence[int] = (),  # noqa: ARG002 - all room is alike
    ) -> int:
        """See `Memory`; of a new request, in the domain with most room for it."""
        owner = self.requests.get(request)
        if owner is None:
            free = max(map(len, self.free))
            return self._blocks_in(free)
        held = len(owner.keys) + len(owner.values)
        most = self._blocks_in(held + len(self.free[owner.domain]))
        return most - len(owner.blocks)

    def admit(self, request: Request, blocks: int) -> bool:
        """See `Memory`; a request takes its static rows here."""
        if request in self.requests:
            raise RequestError("admit", request, "it runs", "a new request")
        needed = self._rows_for(blocks * self.block_tokens)
        fits = blocks * self.block_tokens <= self.longest
        roomy = [d for d in range(len(self.domains)) if len(self.free[d]) >= needed]
        if not roomy or not fits:
            return False
        owner = self.requests[request] = Owner(domain=self.choose(roomy))
        if self.reserved is not None:
            self._grow(owner, request, self.block_tokens)
        return True

    def choose(self, domains: Iterable[int]) -> int:
        """The domain of a new request, of those with room."""
        return next(iter(domains))

    def usage(self) -> Usage:
        """See `Memory`."""
        units = self.rows * len(self.domains)
        owners = self.requests.values()
        return Usage(
            units=units,
            used=units - sum(map(len, self.free)),
            tokens_held=sum(owner.written for owner in owners),
            tokens_reserved=sum(self._tokens_of(owner) for owner in owners),
        )

    def holdings(self, requests: Sequence[Request]) -> Holdings:
        """What these requests hold, as arrays."""
        owners = [self.requests[request] for request in requests]
        domain = [self.domains[owner.domain] for owner in owners]
        return Holdings(
            np.array(domain, np.int64),
            Table.of([owner.keys for owner in owners]),
            Table.of([owner.values for owner in owners]),
        )

    # --- rows ---------------------------------------------------------------------

    def _rows_for(self, tokens: int) -> int:
        tokens = self._tokens_for(tokens)
        return self.keys.rows_for(tokens) + self.values.rows_for(tokens)

    def _tokens_for(self, tokens: int) -> int:
        """Tokens for which rows are taken where so many are to be held."""
        return tokens if self.reserved is None or not tokens else self.reserved

    def _blocks_in(self, rows: int) -> int:
        """Blocks that one request can have in so many rows."""
        low, high = 0, self.longest // self.block_tokens + 1
        while high - low > 1:
            middle = (low + high) // 2
            if self._rows_for(middle * self.block_tokens) <= rows:
                low = middle
            else:
                high = middle
        return low

    def _tokens_of(self, owner: Owner) -> int:
        """Tokens that the rows of a request hold."""
        keys = len(owner.keys) // self.keys.rows * self.keys.tokens
        return min(keys, len(owner.values) // self.values.rows * self.values.tokens)

    def _grow(self, owner: Owner, request: Request, tokens: int) -> None:
        """Take what is missing for so many tokens."""
        taken = self._tokens_for(tokens)
        free = self.free[owner.domain]
        keys = self.keys.rows_for(taken) - len(owner.keys)
        values = self.values.rows_for(taken) - len(owner.values)
        if tokens > self.longest or keys + values > len(free):
            raise self._out_of_rows(request, keys + values)
        owner.keys += [heapq.heappop(free) for _ in range(keys)]
        owner.values += [heapq.heappop(free) for _ in range(values)]

    def _out_of_rows(self, request: Request, needed: int) -> OutOfRowsError:
        free = max(map(len, self.free))
        return OutOfRowsError(self.name, request, needed, free, self.longest)


def blocks_in(rows: int, keys: Unit, values: Unit, block_tokens: int = 16) -> int:
    """Blocks that rows hold at most, however they are owned."""
    per_token = keys.rows / keys.tokens + values.rows / values.tokens
    return max(1, int(rows / per_token) // block_tokens)


def head_memory(
    name: str,
    device: DeviceConfig,
    model: ModelConfig,
    *,
    units: int = 1,
    reserved: int | None = None,
) -> RowMemory:
    """Rows over the channels of every head, each request's own, by `HeadMap`.

    units: rows that hold whole tokens are taken this many at a time; reserved: see
    `RowMemory`. Raises LayoutError, DeviceConfigError, ConfigError.
    """
    layout = shape_of(name, device, model)
    at, rows = HeadMap.of(layout), layout.rows_per_plane
    keys = Unit(units, units * at.key_row_tokens)
    sets = -(-units // layout.rows_per_value)
    values = Unit(sets * layout.rows_per_value, sets * at.value_set_tokens)
    return row_memory(name, device, model, at, rows, (keys, values), reserved=reserved)


def row_memory(
    name: str,
    device: DeviceConfig,
    model: ModelConfig,
    at: Map,
    rows: int,
    units: tuple[Unit, Unit],
    *,
    reserved: int | None = None,
) -> RowMemory:
    """A memory of one domain that takes units of Keys and of Values.

    Raises ConfigError where the rows do not hold what a single request reserves.
    """
    keys, values = units
    most = blocks_in(rows, keys, values)
    memory = RowMemory(
        name=name,
        device=device,
        model=model,
        map=at,
        blocks=most,
        longest=reserved or most * 16,
        rows=rows,
        keys=keys,
        values=values,
        reserved=reserved,
    )
    memory.longest = memory.bindable("a first request") * memory.block_tokens
    if not memory.longest:
        needed = keys.rows_for(reserved or 16) + values.rows_for(reserved or 16)
        raise DeviceConfigError(name, "rows of a layer", rows, f"{needed} or more")
    return memory
