"""What vLLM does with blocks and does not say in a scheduler's output.

For vLLM's own cache managers. Their objects are watched, not their classes: another
engine in the process is left alone.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

import attrs


@attrs.define
class Unsaid:
    """What happened since the last step beside what its output says.

    given_up: request -> leading blocks that its sliding window has left; taken: ids
    that left the free queue, even for a request that was dropped again: their old
    content is gone. verified: request -> tokens that are no drafts any more. Each is
    watched where it happens: with windows, priorities, speculation.
    """

    given_up: Mapping[str, int] = attrs.field(factory=dict)
    taken: Collection[int] = ()
    verified: Mapping[str, int] = attrs.field(factory=dict)


NOTHING = Unsaid()


@attrs.define(eq=False)
class Watch:
    """Watches one KVCacheManager of vLLM, duck-typed."""

    manager: Any
    windowed: bool
    _taken: list[int] = attrs.field(factory=list)
    _verified: dict[str, int] = attrs.field(factory=dict)

    @classmethod
    def of(
        cls, manager: Any, *, windowed: bool, dropping: bool, speculating: bool
    ) -> Watch:
        """Watch from now on.

        windowed: whether requests give up blocks as they run; dropping: whether a
        request may be scheduled and dropped in one step, as priorities have it;
        speculating: whether there are drafts.
        """
        watch = cls(manager, windowed)
        if dropping:
            watch._watch_taken(manager.block_pool)
        if speculating:
            on_verified(manager, watch._verify)
        return watch

    def _watch_taken(self, pool: Any) -> None:
        take = pool.get_new_blocks

        def get_new_blocks(count: int) -> Any:
            blocks = take(count)
            self._taken += [block.block_id for block in blocks]
            return blocks

        pool.get_new_blocks = get_new_blocks

    def _verify(self, request: str, tokens: int) -> None:
        self._verified[request] = tokens

    def unsaid(self) -> Unsaid:
        """What happened since this was asked last."""
        unsaid = Unsaid(
            self._given_up() if self.windowed else {}, self._taken, self._verified
        )
        self._taken, self._verified = [], {}
        return unsaid

    def _given_up(self) -> dict[str, int]:
        (manager,) = self.manager.coordinator.single_type_managers
        return {
            request: next((i for i, b in enumerate(table) if not b.is_null), len(table))
            for request, table in manager.req_to_blocks.items()
        }


def on_verified(manager: Any, tell: Callable[[str, int], None]) -> None:
    """Have it told how many tokens of a request are no drafts any more.

    vLLM caches blocks when it schedules them, all but those of drafts: these it caches
    by a call of its own, as soon as it knows which were accepted.
    """
    cache = manager.cache_blocks

    def cache_blocks(request: Any, tokens: int) -> None:
        cache(request, tokens)
        tell(request.request_id, tokens)

    manager.cache_blocks = cache_blocks
