"""Workloads: real traces and data sets, their format told from their content.

`open_workload` knows every format of the project's data and the public ones: ShareGPT
JSON, Mooncake and Bailian JSON Lines, Azure and BurstGPT CSV; plain or gzip.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import attrs

from patton.arguments import PATH, expect, expect_call
from patton.engine import formats
from patton.engine.conversations import CHAT_TEMPLATES, PLAIN, Conversation
from patton.engine.formats import Reader, Reading, estimate_tokens
from patton.engine.sharegpt import read_sharegpt
from patton.engine.text import begins_with, json_row, lines
from patton.errors import ConfigError, WorkloadError

LONGEST_FIRST_LINE = 1 << 22  # characters; a format is told by its first line

# Format: the fields that all its rows have, and its reader; the first match counts.
JSON_FORMATS: dict[str, tuple[frozenset[str], Reader]] = {
    "sharegpt-blocks16": (frozenset({"c", "turns", "blocks"}), formats.read_blocks16),
    "sharegpt-records": (frozenset({"g", "at"}), formats.read_turns),
    "sharegpt-turns": (frozenset({"c"}), formats.read_turns),
    "lmcache-agents": (frozenset({"fam", "s", "i", "in", "b"}), formats.read_agents),
    "mooncake-runs": (frozenset({"t", "in", "out", "b"}), formats.read_mooncake_runs),
    "bailian": (frozenset({"parent_chat_id", "hash_ids"}), formats.read_bailian),
    "mooncake": (frozenset({"input_length", "hash_ids"}), formats.read_mooncake),
}
CSV_FORMATS: dict[str, tuple[frozenset[str], Reader]] = {
    "azure": (frozenset({"ContextTokens", "GeneratedTokens"}), formats.read_azure),
    "azure-short": (frozenset({"t_s", "in", "out"}), formats.read_azure_short),
    "burstgpt": (
        frozenset({"Request tokens", "Response tokens"}),
        formats.read_burstgpt,
    ),
}
SHAREGPT = "sharegpt-json"
FORMATS = (SHAREGPT, *JSON_FORMATS, *CSV_FORMATS)


@attrs.define(eq=False)
class Workload:
    """Conversations that can be read again and again, lazily.

    name: of its file, or of a generator; format: how it was recognised; reading: how
    the latest pass goes: records read, whether the file was cut.
    """

    name: str
    format: str
    read: Callable[[Reading], Iterator[Conversation]]
    reading: Reading = attrs.field(factory=Reading)

    def conversations(self) -> Iterator[Conversation]:
        """A new pass from the beginning, counted anew. Raises WorkloadError."""
        self.reading = attrs.evolve(self.reading, records=0, truncated=False)
        return self.read(self.reading)


def open_workload(
    path: str | Path,
    *,
    tokenizer: str = "llama3",
    template: bool = False,
    count_tokens: Callable[[str], int] = estimate_tokens,
) -> Workload:
    """The workload in a file of any known format; only its first line is read yet.

    tokenizer: "gpt2" (OPT), "qwen" or "llama3", whose counts to take where the file has
    several; template: add that tokenizer's chat format (block-id files have it);
    count_tokens: counts a text, where the file has texts. Raises WorkloadError for a
    file that cannot be read or told, ConfigError for an unknown tokenizer.
    """
    expect("open_workload", "path", path, *PATH)
    expect("open_workload", "tokenizer", tokenizer, str)
    expect("open_workload", "template", template, bool)
    expect_call("open_workload", "count_tokens", count_tokens)
    if tokenizer not in CHAT_TEMPLATES:
        accepted = " or ".join(CHAT_TEMPLATES)
        raise ConfigError("workload", "tokenizer", tokenizer, accepted)
    file = Path(path)
    name, reader = recognise(file)
    reading = Reading(
        tokenizer, CHAT_TEMPLATES[tokenizer] if template else PLAIN, count_tokens
    )
    return Workload(
        file.name, name, lambda progress: reader(file, progress), reading=reading
    )


def recognise(path: Path) -> tuple[str, Reader]:
    """Format and reader of a file, from its first line. Raises WorkloadError."""
    if begins_with(path, "["):
        return SHAREGPT, read_sharegpt
    first = next(lines(path, LONGEST_FIRST_LINE), None)
    if first is None:
        raise WorkloadError(str(path), 0, "an empty file", _accepted())
    number, text = first
    if text.lstrip().startswith("{"):
        known, names = JSON_FORMATS, set(json_row(str(path), number, text).values)
    else:
        known = CSV_FORMATS
        names = {field.strip(' "\r\n') for field in text.split(",")}
    for name, (fields, reader) in known.items():
        if fields <= names:
            return name, reader
    problem = f"no known format; fields {', '.join(sorted(names))[:200]!r}"
    raise WorkloadError(str(path), number, problem, _accepted())


def _accepted() -> str:
    return "a workload of format " + ", ".join(FORMATS)
