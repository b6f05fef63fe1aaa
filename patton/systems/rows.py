"""Rows owned by requests: allocated as a request grows, or all at its admission.

What AttAcc, PAISE, CENT, PIMphony, NeuPIMs, AttenPIM and L3 have in common: a request
owns whole rows for its Keys and for its Values, from one pool of free rows, and gives
them back when it ends. They differ in how many rows they take at a time, and in the
channels that a row stands for.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from typing import Self

import attrs
import numpy as np

from patton.config import DeviceConfig, ModelConfig
from patton.errors import DeviceConfigError, OutOfRowsError, RequestError
from patton.steps import Request
from patton.systems.maps import HeadMap, Holdings, KeyMap, Table, shape_of
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
    # Of owners only, which a dictionary cannot say of one that may hold others.
    requests: dict[Request, Owner] = attrs.field(  # type: ignore[assignment]
        factory=dict
    )

    def __attrs_post_init__(self) -> None:
        self.free = [list(range(self.rows)) for _ in self.domains]

    @classmethod
    def of_rows(
        cls,
        name: str,
        device: DeviceConfig,
        model: ModelConfig,
        at: KeyMap,
        units: tuple[Unit, Unit],
        *,
        reserved: int | None = None,
        longest: int | None = None,
        domains: tuple[int, ...] = (0,),
    ) -> Self:
        """A memory of all rows of a plane, taken in units of Keys and of Values.

        reserved, longest: tokens, rounded up to blocks. Raises DeviceConfigError where
        the rows of a domain do not hold a request.
        """
        block, rows = 16, at.key_frame.rows_per_plane
        per_token = sum(unit.rows / unit.tokens for unit in units)
        most = max(1, int(rows / per_token) // block)
        reserved = reserved and -(-reserved // block) * block
        memory = cls(
            name=name,
            device=device,
            model=model,
            map=at,
            blocks=len(domains) * most,
            longest=reserved or -(-(longest or most * block) // block) * block,
            rows=rows,
            keys=units[0],
            values=units[1],
            domains=domains,
            reserved=reserved,
        )
        memory.longest = memory.bindable("a first request") * block
        if not memory.longest:
            needed = sum(unit.rows_for(reserved or block) for unit in units)
            raise DeviceConfigError(name, "rows of a layer", rows, f"{needed} or more")
        return memory

    # --- blocks -------------------------------------------------------------------

    def bind(self, request: Request, block: int) -> None:
        """See `Memory`. Raises OutOfRowsError.

        A request that has written nothing moves where its channels have no more room.
        """
        owner = self.requests.get(request)
        if owner is None:
            if not self.admit(request, 1):
                raise self._out_of_rows(request, self._rows_for(self.block_tokens))
            owner = self.requests[request]
        tokens = (len(owner.blocks) + 1) * self.block_tokens
        if not owner.written and self._missing(owner, tokens) > 0:
            self._move(request, owner, tokens)
        self._grow(owner, request, tokens)
        owner.blocks.append(block)

    def finish(self, request: Request) -> None:
        """See `Memory`. Raises RequestError."""
        owner = self.requests.pop(request, None)
        if owner is None:
            accepted = "a running request"
            raise RequestError("finish", request, "no request", accepted)
        self._give_back(owner)

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

    def _missing(self, owner: Owner, tokens: int) -> int:
        """Rows that the channels of a request lack for so many tokens."""
        held = len(owner.keys) + len(owner.values)
        return self._rows_for(tokens) - held - len(self.free[owner.domain])

    def _move(self, request: Request, owner: Owner, tokens: int) -> None:
        """To channels with room for so many tokens, if there are any."""
        needed = self._rows_for(tokens)
        roomy = [d for d in range(len(self.domains)) if len(self.free[d]) >= needed]
        if not roomy:
            return
        del self.requests[request]
        self._give_back(owner)
        owner.keys, owner.values = [], []
        owner.domain = self.choose(roomy)
        self.requests[request] = owner

    def _give_back(self, owner: Owner) -> None:
        for row in (*owner.keys, *owner.values):
            heapq.heappush(self.free[owner.domain], row)

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


def head_memory(
    name: str,
    device: DeviceConfig,
    model: ModelConfig,
    *,
    units: int = 1,
    reserved: int | None = None,
) -> RowMemory:
    """Rows over the channels of every head, each request's own, by `HeadMap`.

    units: so many rows are taken at a time, if not more are needed to hold whole
    tokens; reserved: see `RowMemory`. Raises LayoutError, DeviceConfigError.
    """
    layout = shape_of(name, device, model)
    at = HeadMap.of(layout)
    sets = -(-units // layout.rows_per_value)
    return RowMemory.of_rows(
        name,
        device,
        model,
        at,
        (
            Unit(units, units * at.key_row_tokens),
            Unit(sets * layout.rows_per_value, sets * at.value_set_tokens),
        ),
        reserved=reserved,
    )
