"""Strict reader of the simulator's trace format.

It accepts what the simulator accepts and means: where that aborts, the reader says why
and in which line; where that silently reads something else than was written (a tab
inside a line, `12x`, operands too many or too large), the reader refuses.
`beyond_device` names what the simulator lets pass though no device has it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

import attrs

from patton.device.aim.presets import Preset
from patton.device.aim.trace import (
    CHANNELS,
    FULL_MASK,
    LAST,
    NOTE,
    OPERANDS,
    Instruction,
    Note,
    Opcode,
    mask_of,
    normal_mask,
)
from patton.errors import TraceError

HEXADECIMAL: Final = re.compile(r"0[xX][0-9a-fA-F]+")
NOTE_PAIR: Final = re.compile(r"[^\s=]+=[^\s=]+")
NOT_IMPLEMENTED: Final = {"WR_AFLUT", "WR_HBK", "MAC_HBK", "WR_GPR"}


def _opcodes() -> dict[str, dict[str, Opcode]]:
    """The opcodes by first and second word of a line."""
    found: dict[str, dict[str, Opcode]] = {"AiM": {}, "W": {}, "R": {}}
    for opcode in Opcode:
        first, _, second = opcode.name.partition("_")
        if first in {"W", "R"}:
            found[first][second] = opcode
        else:
            found["AiM"][opcode.name] = found["AiM"][f"ISR_{opcode.name}"] = opcode
    return found


OPCODES: Final = _opcodes()

# By opcode: position in an Instruction and largest value of each operand. A channel
# number takes the place of the mask until it is turned into one.
PLACES: Final = tuple(
    tuple(
        (Instruction._fields.index("mask" if name == "channel" else name), LAST[name])
        for name in OPERANDS[opcode]
    )
    for opcode in Opcode
)
DEFAULTS: Final = Instruction(Opcode.EOC)[1:]
MASK_PLACE: Final = Instruction._fields.index("mask")
CHANNEL_MASKS: Final = tuple(mask_of((channel,)) for channel in range(CHANNELS))
NAMES_CHANNEL: Final = tuple("channel" in OPERANDS[opcode] for opcode in Opcode)


@attrs.define
class _UnreadableError(Exception):
    """What is wrong with a line, before it is known where that stands."""

    problem: str
    accepted: str

    def at(self, source: str, number: int, line: str) -> TraceError:
        """The error for the caller."""
        return TraceError(source, number, line.strip(), self.problem, self.accepted)


NOT_ASCII: Final = _UnreadableError(
    "a character that is not ASCII", "such characters in comments alone"
)
NO_NEWLINE: Final = _UnreadableError(
    "the file ends without a newline after EOC",
    "a newline, else the simulator does not see the line",
)
NO_END: Final = _UnreadableError(
    "the trace ends without EOC", "AiM EOC as its last line"
)


def read_trace(path: str | Path, *, delimiter: str = " ") -> list[Instruction]:
    """Read a trace file up to its EOC; TraceError names the line that is wrong."""
    text = Path(path).read_bytes().decode("utf-8", errors="replace")
    return parse_trace(text, source=str(path), delimiter=delimiter)


def parse_trace(
    text: str, *, source: str = "trace", delimiter: str = " "
) -> list[Instruction]:
    """The instructions of a trace text up to its EOC, which is the last of them.

    delimiter: " " or ",", as the simulator's option of that name. Text after EOC is
    ignored. Notes of the writer are given back with the instruction that they precede.
    """
    found: list[Instruction] = []
    # Traces repeat few different lines many times, so each is parsed once.
    known: dict[str, Instruction] = {}
    note: Note = ()
    lines = text.split("\n")
    for number, line in enumerate(lines, 1):
        instruction = known.get(line)
        if instruction is None:
            words = _words(line, delimiter)
            if not words:
                continue
            try:
                if words[0] == "#":
                    note = _note(words) or note
                    continue
                if not line.isascii():
                    raise NOT_ASCII
                instruction = known[line] = _instruction(words)
            except _UnreadableError as error:
                raise error.at(source, number, line) from None
        if note:
            instruction, note = instruction._replace(note=note), ()
        found.append(instruction)
        if instruction.opcode == Opcode.EOC:
            if number == len(lines):
                raise NO_NEWLINE.at(source, number, line)
            return found
    raise NO_END.at(source, len(lines), lines[-1])


def _words(line: str, delimiter: str) -> list[str]:
    # Only blanks separate. Other white space counts at the ends of a word alone, so one
    # inside makes the word unreadable: the simulator would join what stands round it.
    if delimiter == " " and line.isprintable():
        return line.split()
    return [word for part in line.split(delimiter) if (word := part.strip())]


def _note(words: list[str]) -> Note:
    if len(words) < 2 or words[1] != NOTE:
        return ()
    for word in words[2:]:
        if not NOTE_PAIR.fullmatch(word):
            raise _UnreadableError(f"{word!r} in a note", "key=value")
    pairs = [word.partition("=") for word in words[2:]]
    return tuple((key, value) for key, _, value in pairs)


def _instruction(words: list[str]) -> Instruction:
    try:
        opcode = OPCODES[words[0]][words[1]]
    except LookupError:
        raise _unknown(words) from None
    places = PLACES[opcode]
    if len(words) != 2 + len(places):
        form = " ".join((*words[:2], *OPERANDS[opcode]))
        problem = f"{len(words) - 2} operands instead of {len(places)}"
        raise _UnreadableError(problem, form)
    values: list[Any] = [opcode, *DEFAULTS]
    for word, (place, last) in zip(words[2:], places, strict=True):
        if word.isdecimal():
            value = int(word)
        elif HEXADECIMAL.fullmatch(word):
            value = int(word, 16)
        else:
            accepted = "a number from 0, decimal or 0x and hexadecimal"
            raise _UnreadableError(f"{word!r} is no number", accepted)
        if value > last:
            name = OPERANDS[opcode][words.index(word, 2) - 2]
            raise _UnreadableError(f"{name} is {word}", f"0 to {last}")
        values[place] = value
    if NAMES_CHANNEL[opcode]:
        values[MASK_PLACE] = CHANNEL_MASKS[values[MASK_PLACE]]
    elif values[MASK_PLACE] > FULL_MASK:
        values[MASK_PLACE] = normal_mask(values[MASK_PLACE])
    if opcode == Opcode.WR_ABK and values[MASK_PLACE].bit_count() != 1:
        raise _UnreadableError(
            f"mask {values[MASK_PLACE]:#x} of WR_ABK", "a mask with exactly one bit"
        )
    # Instruction(*values), several times as fast: it is the reader's inner loop.
    return tuple.__new__(Instruction, values)


def _unknown(words: list[str]) -> _UnreadableError:
    """What is wrong with the first words of a line that is no instruction."""
    first, second = words[0], words[1] if len(words) > 1 else ""
    if first not in OPCODES:
        accepted = "AiM, W, R or a comment: # and a blank"
        return _UnreadableError(f"a line that starts with {first!r}", accepted)
    if second.removeprefix("ISR_") in NOT_IMPLEMENTED:
        problem = f"{second}, which the simulator does not implement"
        return _UnreadableError(problem, "another instruction")
    accepted = ", ".join(n for n in OPCODES[first] if not n.startswith("ISR_"))
    return _UnreadableError(f"{second!r} after {first}", accepted)


def beyond_device(
    instructions: Iterable[Instruction], preset: Preset
) -> Iterator[tuple[int, str]]:
    """Index and reason of each instruction that addresses what the device lacks.

    The simulator checks neither rows nor the number of bursts.
    """
    rows, bursts = preset.size("rows"), preset.size("bursts")
    for index, instruction in enumerate(instructions):
        operands = OPERANDS[instruction.opcode]
        if "row" in operands and instruction.row >= rows:
            yield index, f"row {instruction.row} of {rows}"
        if "mask" in operands and "opsize" in operands and instruction.opsize > bursts:
            yield index, f"{instruction.opsize} bursts of a row of {bursts}"
