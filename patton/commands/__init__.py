"""Command streams: what a PIM device is told, and what the data in it mean.

The commands are those of the paper's section 2.2 and bank reads and writes. A stream is
a structure of arrays; `CommandStream.commands` is its readable view and `to_text` its
text form.
"""

from patton.commands.stream import CommandStream
from patton.commands.tables import (
    COLUMNS,
    OPTIONAL_COLUMNS,
    Axes,
    Command,
    Frame,
    Loads,
    Op,
    Phase,
    Queries,
    ResultTable,
    Source,
    Strides,
    Tokens,
)

__all__ = [
    "COLUMNS",
    "OPTIONAL_COLUMNS",
    "Axes",
    "Command",
    "CommandStream",
    "Frame",
    "Loads",
    "Op",
    "Phase",
    "Queries",
    "ResultTable",
    "Source",
    "Strides",
    "Tokens",
]
