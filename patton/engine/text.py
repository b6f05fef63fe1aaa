"""Workload files as text: lines with their numbers, and rows whose values are checked.

Plain or gzip is told by content. Whatever is wrong with a file ends in a WorkloadError
that names the file, the line and what would have been accepted.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, NoReturn, TextIO, cast

import attrs
import numpy as np
from numpy.typing import NDArray

from patton.engine.tokens import BLOCK_IDS, POSITIONS
from patton.errors import WorkloadError

GZIP_MAGIC = b"\x1f\x8b"
READABLE = "UTF-8 text, plain or gzip, to its end"
UNREADABLE = (OSError, EOFError, zlib.error, UnicodeDecodeError)

MOST_DIGITS = 100  # of a number given as text
MOST_TOKENS = POSITIONS // 2  # so that prompt and answer together are positions, too


@contextmanager
def open_text(path: Path) -> Iterator[TextIO]:
    """The file's text, unpacked if it is gzip. Raises WorkloadError."""
    try:
        raw = path.open("rb")
    except OSError as error:
        problem = error.strerror or "cannot be opened"
        raise WorkloadError(str(path), 0, problem, READABLE) from error
    with raw:
        packed = raw.read(2) == GZIP_MAGIC
        raw.seek(0)
        stream = cast("BinaryIO", gzip.GzipFile(fileobj=raw)) if packed else raw
        with io.TextIOWrapper(stream, encoding="utf-8-sig") as text:
            yield text


def lines(path: Path, longest: int = -1) -> Iterator[tuple[int, str]]:
    """(number from 1, text) of every line that is not blank. Raises WorkloadError.

    longest: characters after which a line is cut, -1 for whole lines.
    """
    number = 0
    with open_text(path) as text:
        try:
            while line := text.readline(longest):
                number += 1
                if line.strip():
                    yield number, line
        except UNREADABLE as error:
            problem = f"cannot be read ({error})"
            raise WorkloadError(str(path), number + 1, problem, READABLE) from error


def begins_with(path: Path, mark: str) -> bool:
    """Whether the text, blanks aside, begins with `mark`, one character.

    Looks at as little as it can: the file may break off soon. Raises WorkloadError.
    """
    with open_text(path) as text:
        try:
            while (character := text.read(1)).isspace():
                pass
        except UNREADABLE:
            return False  # whoever reads on says what is wrong
    return character == mark


@attrs.frozen
class Row:
    """The named values of one line of a workload file."""

    file: str
    line: int
    values: Mapping[str, Any]

    def refuse(self, problem: str, accepted: str) -> NoReturn:
        """Raise the WorkloadError of this line."""
        raise WorkloadError(self.file, self.line, problem, accepted)

    def get(self, name: str) -> Any:
        """The value of a field that must be there."""
        if name not in self.values:
            self.refuse(f"no {name}", f"a value for {name}")
        return self.values[name]

    def count(self, name: str, least: int = 0, most: int = MOST_TOKENS) -> int:
        """A whole number from `least` to `most`, as JSON or as text."""
        value = self.get(name)
        if isinstance(value, str) and value.strip().isdecimal():
            # Python refuses to convert thousands of digits.
            value = int(value) if len(value) <= MOST_DIGITS else value
        if not is_count(value, least, most):
            accepted = f"a whole number from {least} to {most}"
            self.refuse(f"{name} is {value!r:.60}", accepted)
        return int(value)

    def pairs(
        self, name: str, least: int = 0, most: int = MOST_TOKENS
    ) -> list[tuple[int, int]]:
        """A list of pairs of whole numbers from `least` to `most`."""
        value = self.get(name)
        shaped = isinstance(value, list) and all(
            isinstance(pair, list)
            and len(pair) == 2
            and all(is_count(number, least, most) for number in pair)
            for pair in value
        )
        if not shaped:
            accepted = f"a list of pairs of whole numbers from {least} to {most}"
            self.refuse(f"{name} is {value!r:.60}", accepted)
        return [(first, second) for first, second in value]

    def id_runs(self, name: str) -> NDArray[np.int64]:
        """Block ids given as runs [first, count]."""
        runs = self.pairs(name, most=BLOCK_IDS)
        if sum(count for _, count in runs) > MOST_TOKENS:
            self.refuse(f"too many ids in {name}", f"at most {MOST_TOKENS}")
        if any(first + count > BLOCK_IDS for first, count in runs):
            self.refuse(f"{name} has ids beyond the range", f"ids below {BLOCK_IDS}")
        spans = [np.arange(first, first + count) for first, count in runs]
        return np.concatenate([np.empty(0, np.int64), *spans])

    def ids(self, name: str) -> Sequence[int]:
        """Block ids given one by one, of any size."""
        value = self.get(name)
        listed = isinstance(value, list) and all(type(block) is int for block in value)
        if not listed:
            self.refuse(f"{name} is {value!r:.60}", "a list of whole numbers")
        return cast("Sequence[int]", value)


def is_count(value: object, least: int, most: int) -> bool:
    """A whole number in [least, most]; True and False are none."""
    return type(value) is int and least <= value <= most


def json_row(file: str, line: int, text: str) -> Row:
    """One line of JSON Lines. Raises WorkloadError unless it is an object."""
    try:
        values = json.loads(text)
    except (ValueError, RecursionError) as error:
        problem = f"no JSON ({error})"
        raise WorkloadError(file, line, problem, "one JSON object a line") from error
    if not isinstance(values, dict):
        raise WorkloadError(file, line, f"{text!r:.40}", "one JSON object a line")
    return Row(file, line, values)


def json_rows(path: Path) -> Iterator[Row]:
    """The rows of a JSON Lines file. Raises WorkloadError."""
    for number, text in lines(path):
        yield json_row(str(path), number, text)


def csv_rows(path: Path) -> Iterator[Row]:
    """The rows of a CSV file whose first line has the names. Raises WorkloadError."""
    names: list[str] = []
    for number, text in lines(path):
        fields = _csv_fields(str(path), number, text)
        if not names:
            names = fields
            continue
        if len(fields) != len(names):
            problem, accepted = f"{len(fields)} fields", f"{len(names)}, as in line 1"
            raise WorkloadError(str(path), number, problem, accepted)
        yield Row(str(path), number, dict(zip(names, fields, strict=True)))


def _csv_fields(file: str, line: int, text: str) -> list[str]:
    try:
        return [field.strip() for field in next(csv.reader([text]))]
    except csv.Error as error:
        accepted = "fields between commas"
        raise WorkloadError(file, line, f"no CSV ({error})", accepted) from error
