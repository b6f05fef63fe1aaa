"""Campaigns: targets for a time, over processes or a cluster, and a ledger of it all.

The ledger is a file of JSON lines, one for each piece of work that was done: target,
seed, commit, steps, failure. Seeds go on where the ledger ends, so that campaigns add
up instead of doing the same again.
"""

from __future__ import annotations

import fcntl
import json
import subprocess
from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from itertools import count
from pathlib import Path
from time import monotonic
from typing import IO, Any

from fuzz.files import REGRESSIONS, UnreadableError, json_lines
from fuzz.processes import processes
from fuzz.targets import TARGETS, Outcome

LEDGER = Path(__file__).with_name("ledger.jsonl")
PIECE_SECONDS = 20.0  # of processor time: what a worker does at a time
CONNECT_SECONDS = 10.0

Piece = tuple[str, int, float]


def work(piece: Piece) -> Outcome:
    """One piece of work."""
    name, seed, seconds = piece
    return TARGETS[name](seed, seconds)


def commit() -> str | None:
    """The commit of the checkout, if it can be told."""
    command = ["git", "rev-parse", "--short", "HEAD"]
    folder = Path(__file__).parent
    try:
        done = subprocess.run(  # noqa: S603
            command, cwd=folder, capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip()


def next_seed(ledger: Path) -> int:
    """The first seed that no row of the ledger has. Raises OSError."""
    try:
        return max((1 + row["seed"] for row in json_lines(ledger)), default=0)
    except (LookupError, TypeError) as error:
        what = f"{ledger}: {error!r} of a row; accepted: rows with a seed"
        raise UnreadableError(what) from None


def pieces(names: list[str], first: int, seconds: float) -> Iterator[Piece]:
    """Work without end: every target in turn, each time with another seed."""
    for seed in count(first):
        for name in names:
            yield name, seed, seconds


def local(work_list: Iterable[Piece], jobs: int) -> Iterator[Outcome]:
    """Outcomes of pieces done by processes of this machine."""
    pool = processes(jobs)
    try:
        yield from _bounded(work_list, jobs, pool.submit)
    finally:  # which is early if the campaign is interrupted
        pool.shutdown(cancel_futures=True)


def clustered(work_list: Iterable[Piece], address: str) -> Iterator[Outcome]:
    """Outcomes of pieces done by the workers of a Dask scheduler.

    Raises OSError if nobody answers at the address.
    """
    distributed: Any = import_module("distributed")  # of the extra `cluster`
    try:
        client = distributed.Client(address, timeout=CONNECT_SECONDS)
    except ValueError as error:
        raise OSError(f"no address of a scheduler: {error}") from None
    with client:
        jobs = max(1, sum(client.nthreads().values()))

        def submit(function: Callable[..., Any], piece: Piece) -> Any:
            return client.submit(function, piece, pure=False)

        yield from _bounded(work_list, jobs, submit)


def _bounded(
    work_list: Iterable[Piece], jobs: int, submit: Callable[..., Any]
) -> Iterator[Outcome]:
    """As many pieces under way as there are jobs; oldest first."""
    ahead, waiting = iter(work_list), list[Any]()
    for piece in ahead:
        waiting.append(submit(work, piece))
        if len(waiting) >= 2 * jobs:
            yield waiting.pop(0).result()
    for future in waiting:
        yield future.result()


def run(
    minutes: float,
    jobs: int,
    *,
    cluster: str | None = None,
    ledger: Path = LEDGER,
    names: list[str] | None = None,
    say: Callable[[str], object] = print,
) -> int:
    """A campaign. Returns the number of failures.

    It has the ledger to itself: two would do the same seeds. Raises OSError.
    """
    with ledger.open("a", encoding="utf-8") as out:
        _claim(out)
        seconds, first = minutes * 60, next_seed(ledger)
        chosen = [*dict.fromkeys(names or TARGETS)]
        deadline = monotonic() + seconds
        slice_seconds = min(PIECE_SECONDS, seconds * jobs / len(chosen))
        every = pieces(chosen, first, slice_seconds)
        timed = _until(deadline - slice_seconds, every)
        done = clustered(timed, cluster) if cluster else local(timed, jobs)
        head, steps, failures = commit(), 0, 0
        try:
            for outcome in done:
                row = {"commit": head} | outcome.row()
                saved = outcome.save(REGRESSIONS)
                if saved is not None:
                    row["file"] = saved.name
                out.write(json.dumps(row) + "\n")
                out.flush()
                steps += outcome.steps
                failures += outcome.failure is not None
                say(json.dumps(row))
        finally:  # also of a campaign that is interrupted
            say(f"{steps} steps, {failures} failures, seeds from {first}")
    return failures


def _claim(ledger: IO[str]) -> None:
    """Keep other campaigns off a ledger until it is closed. Raises OSError."""
    try:
        fcntl.flock(ledger, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        what = (
            f"{ledger.name}: another campaign writes it; accepted: a ledger of its own"
        )
        raise BlockingIOError(what) from None


def _until(deadline: float, work_list: Iterable[Piece]) -> Iterator[Piece]:
    for number, piece in enumerate(work_list):
        if number and monotonic() > deadline:
            return
        yield piece
