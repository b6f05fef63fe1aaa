"""Processes that do pieces of work."""

from __future__ import annotations

import signal
from concurrent.futures import ProcessPoolExecutor


def processes(jobs: int) -> ProcessPoolExecutor:
    """So many. An interruption from the keyboard ends them, not their work first."""
    at_once = signal.SIGINT, signal.SIG_DFL
    return ProcessPoolExecutor(jobs, initializer=signal.signal, initargs=at_once)
