"""The public ShareGPT JSON: an array of records with the text of conversations.

The complete file is 670 MB and copies of it are often cut off, so records are decoded
one by one as the text streams in, and an end inside a record is reported, not refused.
Texts are counted and dropped at once.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, TextIO

import attrs

from patton.engine.conversations import Conversation, chat
from patton.engine.formats import Reading
from patton.engine.text import UNREADABLE, open_text
from patton.errors import WorkloadError

CHUNK_CHARACTERS = 1 << 20
PIECE_CHARACTERS = 1 << 13
LONGEST_TOKEN = 12  # of JSON, where the decoder names its beginning: \\ud83d\\ude00
NOT_BLANK = re.compile(r"\S")
USER_ROLES = frozenset({"human", "user"})
ASSISTANT_ROLES = frozenset({"gpt", "chatgpt", "bing", "bard", "assistant"})
EXPECTED = "an array of objects with a list `conversations` of {from, value}"


def read_sharegpt(path: Path, reading: Reading) -> Iterator[Conversation]:
    """Records in file order; consecutive messages of one role are joined.

    A leading answer, a trailing message without one, and system texts are left out.
    Raises WorkloadError for what is no such array; a cut end sets `reading.truncated`.
    """
    with open_text(path) as text:
        source = _RecordSource(str(path), text)
        for line, record in source.records():
            reading.records += 1
            messages = _messages(str(path), line, record, reading)
            turns = [
                (user, answer)
                for (_, user), (_, answer) in zip(
                    messages[::2], messages[1::2], strict=False
                )
            ]
            if turns:
                yield chat(turns, reading.template)
        reading.truncated = source.truncated


def _messages(
    file: str, line: int, record: Any, reading: Reading
) -> list[tuple[str, int]]:
    """(role, tokens) in turn, the first one a user's."""
    listed = record.get("conversations") if isinstance(record, dict) else None
    if not isinstance(listed, list):
        raise WorkloadError(file, line, "a record without conversations", EXPECTED)
    joined: list[tuple[str, int]] = []
    for message in listed:
        role, text = _message(file, line, message)
        if not role or (not joined and role != "user"):
            continue
        tokens = reading.count_tokens(text)
        if joined and joined[-1][0] == role:
            joined[-1] = (role, joined[-1][1] + tokens)
        else:
            joined.append((role, tokens))
    return joined


def _message(file: str, line: int, message: Any) -> tuple[str, str]:
    """Role ("" for a system text) and text of a message."""
    if not isinstance(message, dict):
        raise WorkloadError(file, line, f"a message that is {message!r:.20}", EXPECTED)
    sender, text = message.get("from"), message.get("value")
    if not isinstance(text, str):
        raise WorkloadError(file, line, "a message without text", EXPECTED)
    sender = sender if isinstance(sender, str) else repr(sender)
    if sender in USER_ROLES:
        return "user", text
    if sender in ASSISTANT_ROLES:
        return "assistant", text
    if sender == "system":
        return "", text
    accepted = ", ".join(sorted(USER_ROLES | ASSISTANT_ROLES | {"system"}))
    raise WorkloadError(file, line, f"a message from {sender!r:.20}", accepted)


@attrs.define
class _RecordSource:
    """Objects of a JSON array, decoded from a stream one by one.

    buffer[at:] is what is read and not yet decoded; line: that of its first character.
    """

    file: str
    text: TextIO
    buffer: str = ""
    at: int = 0
    line: int = 1
    truncated: bool = False

    def records(self) -> Iterator[tuple[int, Any]]:
        """(line on which it begins, object) of every complete record."""
        if self._next_character() != "[":
            raise WorkloadError(self.file, self.line, "no array", EXPECTED)
        self._advance(self.at + 1)
        while (character := self._next_character()) != "]":
            line = self.line
            record = self._decode() if character else None
            if record is None:
                self.truncated = True
                return
            yield line, record
            if self._next_character() == ",":
                self._advance(self.at + 1)

    def _decode(self) -> Any:
        """The object at the head of the buffer; None if the text ends inside it."""
        decoder = json.JSONDecoder()
        size = CHUNK_CHARACTERS
        while True:
            try:
                record, end = decoder.raw_decode(self.buffer, self.at)
            except json.JSONDecodeError as error:
                if not self._may_go_on(error):
                    line = self.line + self.buffer.count("\n", self.at, error.pos)
                    problem = f"no JSON ({error.msg})"
                    raise WorkloadError(self.file, line, problem, EXPECTED) from error
                if not self._read(size):
                    return None
                size *= 2  # keeps a long record from costing its square
            except (ValueError, RecursionError) as error:
                # Nested too deeply, or a number of thousands of digits.
                problem = f"no JSON ({error})"
                raise WorkloadError(self.file, self.line, problem, EXPECTED) from error
            else:
                self._advance(end)
                return record

    def _may_go_on(self, error: json.JSONDecodeError) -> bool:
        """Whether the decoder failed for want of text: inside a string or token."""
        near_end = error.pos + LONGEST_TOKEN >= len(self.buffer)
        return error.msg.startswith("Unterminated") or near_end

    def _next_character(self) -> str:
        """The first character that is not blank, "" at the end."""
        while True:
            found = NOT_BLANK.search(self.buffer, self.at)
            self._advance(found.start() if found else len(self.buffer))
            if found or not self._read(CHUNK_CHARACTERS):
                return self.buffer[self.at : self.at + 1]

    def _advance(self, end: int) -> None:
        self.line += self.buffer.count("\n", self.at, end)
        self.at = end

    def _read(self, size: int) -> bool:
        """Append up to `size` characters; False at the end.

        Piece by piece: where a cut gzip stream fails, the piece that fails is lost.
        """
        pieces = [self.buffer[self.at :]]
        with suppress(*UNREADABLE):
            while size > 0 and (piece := self.text.read(min(size, PIECE_CHARACTERS))):
                pieces.append(piece)
                size -= len(piece)
        self.buffer = "".join(pieces)
        self.at = 0
        return len(pieces) > 1
