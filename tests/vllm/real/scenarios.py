"""What traces are recorded of, and what real runs go through."""

from __future__ import annotations

from tests.vllm.real.serving import Serving

SCENARIOS: dict[str, Serving] = {
    "plain": Serving(),
    "chunked_prefill": Serving(budget=48, prompt=(60, 300), seed=2),
    "preemption": Serving(usable=64, answer=(40, 160), seed=3),
    "twins": Serving(twins=0.5, seed=4),
    "aborts": Serving(aborts=0.3, seed=5),
    "resubmission": Serving(resubmits=0.3, usable=128, seed=6),
    "speculation": Serving(drafts=4, answer=(20, 120), usable=128, seed=7),
    "lookahead": Serving(drafts=2, lookahead=5, usable=128, seed=8),
    "sliding_window": Serving(window=80, prompt=(30, 250), usable=160, seed=9),
    "two_deep": Serving(flight=2, usable=96, aborts=0.1, seed=10),
    "reset": Serving(reset_every=25, usable=128, seed=11),
    "priority": Serving(policy="priority", usable=112, running=6, seed=12),
}
