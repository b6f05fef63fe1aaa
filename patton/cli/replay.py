"""`patton replay`: a recorded run again, checked at every event."""

from __future__ import annotations

from pathlib import Path

import click
from rich.console import Console

from patton.cli.options import json_option, print_json
from patton.events import digest
from patton.events import replay as replay_events
from patton.generate import generate_step

EXAMPLES = """\b
Examples:
  patton run --steps 100 --record events.jsonl
  patton replay events.jsonl
"""


@click.command(epilog=EXAMPLES)
@click.argument("events", type=click.Path(path_type=Path))
@json_option
def replay(*, events: Path, as_json: bool) -> None:
    """Replay an event log: check the state at every step, make all streams anew."""
    steps = lines = entries = 0
    state = ""
    for event in replay_events(events):
        lines = event.line
        if event.plan is not None:
            steps += 1
            event.runtime.check()
            streams = generate_step(event.plan.place())
            entries += sum(len(stream) for stream in streams.present())
        state = event.event
        runtime = event.runtime
    if lines:
        runtime.check()
    results = {
        "events": max(0, lines - 1),
        "steps": steps,
        "stream_entries": entries,
        "digest": digest(runtime) if lines else None,
        "digest_matches": state == "digest",
    }
    if as_json:
        print_json(results)
        return
    console = Console(highlight=False)
    console.print(
        f"{steps:,} steps, {results['events']:,} events, consistent at every step; "
        f"{entries:,} stream entries",
        soft_wrap=True,
    )
    known = "as recorded" if state == "digest" else "not recorded in this log"
    console.print(f"final state {results['digest']} ({known})", soft_wrap=True)
