"""The bar that says how far a long command has come."""

from __future__ import annotations

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    TextColumn,
)


def progress_bar(console: Console, time: ProgressColumn) -> Progress:
    """A bar that goes when it is full; silent where nobody watches.

    time: the column for the time that has passed or is left.
    """
    described = TextColumn("{task.description}")
    return Progress(
        described,
        BarColumn(),
        MofNCompleteColumn(),
        time,
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )
