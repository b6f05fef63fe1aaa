"""Runs of PATTON in which only blocks live: hit rates, capacity, runs of SV.

None of these depends on command streams, so none are made.
"""

from __future__ import annotations

import attrs

from patton.config import aim_gddr6, model_preset
from patton.engine.placement_gate import Eviction
from patton.engine.serving import LoopSettings
from patton.engine.session import RunSettings, Session
from patton.layout import Layout
from patton.pairs import Choice
from patton.study.tasks import Result, Source

LIVE_EVERY = 50  # steps between two looks at the open conversations
WHOLE_SET = 0  # pairs of a whole Value Row Set, the paper's PATTON without O2V


@attrs.frozen
class LifecycleTask:
    """A policy under a load.

    pair_blocks: None for the layout's own, WHOLE_SET for whole Value Row Sets; rows: of
    each bank, None for the device's own; effective: whether to find the plain cache
    that hits as often, which takes ten runs of one.
    """

    model: str
    source: Source
    steps: int
    concurrency: int
    pool: int
    max_context: int
    choice: Choice = "spread"
    adoption: bool = True
    commit_zone: bool = True
    pair_blocks: int | None = None
    eviction: Eviction = "pairs"
    rows: int | None = None
    effective: bool = False

    def execute(self) -> Result:
        """Serve, and report; live_tokens: prompts of open conversations, on average."""
        session = Session.of(self._settings())
        live: list[int] = []

        def look(step: int) -> None:
            if step % LIVE_EVERY == 0:
                live.append(_live_tokens(session))

        session.run(look)
        activations, runs = session.activations, session.value_runs
        return {
            "blocks": session.settings.layout.granules,
            "statistics": attrs.asdict(session.loop.statistics),
            "hit_rate": session.loop.statistics.prefix_hit_rate,
            "reference_hit_rate": session.reference_hit_rate(),
            "effective_capacity": (
                session.effective_capacity() if self.effective else None
            ),
            "activations": attrs.asdict(activations),
            "sv_runs": runs.runs,
            "sv_blocks": runs.blocks,
            "live_tokens": sum(live) / max(1, len(live)),
            "pairs_adopted": session.runtime.adopted_pairs,
        }

    def _settings(self) -> RunSettings:
        device, model = aim_gddr6(), model_preset(self.model)
        if self.rows is not None:
            device = attrs.evolve(device, rows=self.rows)
        layout = Layout.of(device, model)
        size = self.pair_blocks
        if size == WHOLE_SET:
            size = layout.stripes * layout.values_per_set
        if size is not None:
            layout = Layout.of(device, model, pair_blocks=size)
        return RunSettings(
            self.source.open(model.tokenizer),
            layout,
            LoopSettings(
                concurrency=self.concurrency,
                pool=self.pool,
                max_context=self.max_context,
                eviction=self.eviction,
            ),
            self.steps,
            check="lifecycle",
            choice=self.choice,
            adoption=self.adoption,
            commit_zone=self.commit_zone,
        )


def _live_tokens(session: Session) -> int:
    """Prompt tokens, with all history, of the open conversations' present turns."""
    return sum(
        opened.conversation.turns[opened.turn].prompt_tokens
        for opened in session.loop.open.values()
    )
