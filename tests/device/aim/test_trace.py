"""Traces as text: what is read, what is refused, and that nothing is lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from patton.device.aim import (
    Instruction,
    Opcode,
    beyond_device,
    channels_of,
    format_trace,
    load_preset,
    mask_of,
    parse_trace,
    read_trace,
    write_trace,
)
from patton.device.aim.trace import OPERANDS
from patton.errors import TraceError
from tests.device.aim.golden import FOLDER, golden_cases, needs_golden
from tests.device.aim.traces import random_trace

END = Instruction(Opcode.EOC)


def parse_line(line: str) -> Instruction:
    instruction, end = parse_trace(f"{line}\nAiM EOC\n")

    assert END == end
    return instruction


LINES = {
    "AiM WR_GB 64 7 0x80000000": Instruction(
        Opcode.WR_GB, opsize=64, gpr=7, mask=mask_of([0])
    ),
    "AiM WR_BIAS 1 0xffffffff": Instruction(
        Opcode.WR_BIAS, gpr=1, mask=mask_of(range(32))
    ),
    "AiM MAC_ABK 8 1 5": Instruction(
        Opcode.MAC_ABK, opsize=8, mask=mask_of([31]), row=5
    ),
    "AiM MAC_SBK 8 2 3 5": Instruction(
        Opcode.MAC_SBK, opsize=8, mask=mask_of([30]), bank=3, row=5
    ),
    "AiM RD_MAC 2 4": Instruction(Opcode.RD_MAC, gpr=2, mask=mask_of([29])),
    "AiM RD_AF 2 4": Instruction(Opcode.RD_AF, gpr=2, mask=mask_of([29])),
    "AiM AF 0x10": Instruction(Opcode.AF, mask=mask_of([27])),
    "AiM EWMUL 2 1 9": Instruction(Opcode.EWMUL, opsize=2, mask=1, row=9),
    "AiM EWADD 2 3 4": Instruction(Opcode.EWADD, opsize=2, gpr=3, second_gpr=4),
    "AiM COPY_BKGB 2 1 15 9": Instruction(
        Opcode.COPY_BKGB, opsize=2, mask=1, bank=15, row=9
    ),
    "AiM COPY_GBBK 2 1 0 9": Instruction(Opcode.COPY_GBBK, opsize=2, mask=1, row=9),
    "AiM WR_SBK 3 1 4 9": Instruction(Opcode.WR_SBK, gpr=3, mask=1, bank=4, row=9),
    "AiM RD_SBK 3 1 4 9": Instruction(Opcode.RD_SBK, gpr=3, mask=1, bank=4, row=9),
    "AiM WR_ABK 3 1 9": Instruction(Opcode.WR_ABK, gpr=3, mask=1, row=9),
    "AiM SYNC": Instruction(Opcode.SYNC),
    "W MEM 3 4 9": Instruction(Opcode.W_MEM, mask=mask_of([3]), bank=4, row=9),
    "R MEM 31 4 9": Instruction(Opcode.R_MEM, mask=mask_of([31]), bank=4, row=9),
    "W GPR 5": Instruction(Opcode.W_GPR, gpr=5),
    "R GPR 5": Instruction(Opcode.R_GPR, gpr=5),
    "W CFR 2 7": Instruction(Opcode.W_CFR, register=2, value=7),
    "R CFR 0 1": Instruction(Opcode.R_CFR, value=1),
}


@pytest.mark.parametrize("line", LINES)
def test_every_instruction_is_read(line: str) -> None:
    """Operands stand in the order of the format."""
    assert LINES[line] == parse_line(line)


def test_no_instruction_is_left_out() -> None:
    """The lines above have them all."""
    assert OPERANDS.keys() == {x.opcode for x in LINES.values()} | {Opcode.EOC}


@pytest.mark.parametrize(
    "line",
    [
        "AiM ISR_MAC_ABK 8 1 5",
        "AiM  MAC_ABK 8   1 5  ",
        "AiM MAC_ABK 0x8 0X1 005",
        "AiM MAC_ABK 8 1 5\r",
        "  AiM MAC_ABK 8 1 5\t",
    ],
)
def test_spellings(line: str) -> None:
    """Prefix, blanks, hexadecimal, leading zeros and carriage returns are free."""
    expected = Instruction(Opcode.MAC_ABK, opsize=8, mask=1, row=5)

    assert expected == parse_line(line)


def test_comma_as_delimiter() -> None:
    """The simulator's other option for the delimiter."""
    found = parse_trace("# ,a comment\nAiM,WR_BIAS, 0,1\nAiM,EOC\n", delimiter=",")

    assert [Instruction(Opcode.WR_BIAS, mask=1), END] == found


def test_what_is_skipped() -> None:
    """Comments, empty lines and all that follows EOC."""
    text = "# AiM nonsense µ\n\n   \nAiM SYNC\n#\nAiM EOC\nnonsense"

    assert [Instruction(Opcode.SYNC), END] == parse_trace(text)


REFUSED = {
    "AiM MAC_ABK 8 1": "2 operands instead of 3",
    "AiM MAC_ABK 8 1 5 # why": "5 operands instead of 3",
    "W MEM 0 1 2 3": "4 operands instead of 3",
    "W CFR 0": "1 operands instead of 2",
    "AiM": "'' after AiM",
    "AiM MAC_XYZ 1": "'MAC_XYZ' after AiM",
    "AiM WR_AFLUT 8": "WR_AFLUT, which the simulator does not implement",
    "AiM ISR_WR_HBK 8": "ISR_WR_HBK, which the simulator does not implement",
    "W ROW 8": "'ROW' after W",
    "X MEM 0 0 0": "a line that starts with 'X'",
    "#x": "a line that starts with '#x'",
    "aim SYNC": "a line that starts with 'aim'",
    "AiM\tSYNC": "a line that starts with 'AiM\\tSYNC'",
    "AiM MAC_ABK 8 1\t5 3": "'1\\t5' is no number",
    "AiM MAC_ABK 12x 1 5": "'12x' is no number",
    "AiM MAC_ABK -1 1 5": "'-1' is no number",
    "AiM MAC_ABK 0x 1 5": "'0x' is no number",
    "AiM MAC_ABK \u0663 1 5": "a character that is not ASCII",
    "AiM MAC_SBK 1 1 16 5": "bank is 16",
    "W MEM 32 1 5": "channel is 32",
    "W CFR 3 0": "register is 3",
    "AiM MAC_ABK 0x80000000 1 5": "opsize is 0x80000000",
    "AiM MAC_ABK 1 1 2147483648": "row is 2147483648",
    "AiM WR_ABK 0 3 5": "mask 0x3 of WR_ABK",
    "AiM WR_ABK 0 0 5": "mask 0x0 of WR_ABK",
    "AiM WR_ABK 0 0x100000001 5": "mask 0x80000001 of WR_ABK",
}


@pytest.mark.parametrize("line", REFUSED)
def test_malformed_lines_are_named(line: str) -> None:
    """The error has the line's number and text, and says what is wrong."""
    with pytest.raises(TraceError) as caught:
        parse_trace(f"AiM SYNC\n\n{line}\nAiM EOC\n", source="a.trace")

    error = caught.value
    assert ("a.trace", 3) == (error.source, error.line)
    assert (line.strip(), REFUSED[line]) == (error.text, error.problem)
    assert f"a.trace, line 3: {error.problem}; accepted: " in str(error)


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        ("AiM SYNC\nAiM EOC", 2, "the file ends without a newline after EOC"),
        ("AiM SYNC\n", 2, "the trace ends without EOC"),
        ("", 1, "the trace ends without EOC"),
    ],
)
def test_the_end_must_be_there(text: str, line: int, problem: str) -> None:
    """The simulator aborts where EOC or its newline is missing."""
    with pytest.raises(TraceError) as caught:
        parse_trace(text)

    assert (line, problem) == (caught.value.line, caught.value.problem)


def test_mask_bits_are_reversed() -> None:
    """Bit i selects channel 31 - i; the highest bit is channel 0."""
    assert 0x80000001 == mask_of([0, 31])
    assert (0, 31) == channels_of(0x80000001)
    assert (0,) == channels_of(1 << 40)
    with pytest.raises(ValueError, match="channel 32 of 32"):
        mask_of([32])


def test_bits_beyond_the_mask_are_the_highest() -> None:
    """The simulator counts any bit from 32 on as bit 31."""
    assert mask_of([0, 31]) == parse_line("AiM AF 0x100000001").mask


def test_channel_of_a_memory_line() -> None:
    """It is a number, not a mask."""
    assert 3 == parse_line("W MEM 3 4 9").channel


@pytest.mark.parametrize("seed", range(20))
def test_writing_and_reading_again(seed: int) -> None:
    """A trace comes back as it was written."""
    trace = random_trace(seed)

    assert trace == parse_trace(format_trace(trace))


@needs_golden
def test_files_come_back(tmp_path: Path) -> None:
    """So do the traces handed over, through files."""
    for name in golden_cases():
        trace = read_trace(FOLDER / "aim" / f"{name}.trace")
        write_trace(trace, tmp_path / name)

        assert trace == read_trace(tmp_path / name)


def test_written_form() -> None:
    """Masks are hexadecimal, and EOC with its newline is never forgotten."""
    trace = [
        Instruction(Opcode.MAC_ABK, opsize=8, mask=mask_of([31]), row=5),
        Instruction(Opcode.W_MEM, mask=mask_of([3]), bank=1, row=2),
    ]

    assert "AiM MAC_ABK 8 0x00000001 5\nW MEM 3 1 2\nAiM EOC\n" == format_trace(trace)
    assert "AiM EOC\n" == format_trace([])


def test_columns_and_lanes_travel_in_comments() -> None:
    """What the format has no operand for stands before its line and comes back."""
    note = (("burst", "8"), ("lanes", "0x00ff"))
    trace = [
        Instruction(Opcode.WR_SBK, mask=1, bank=2, row=3, note=note),
        Instruction(Opcode.WR_SBK, mask=1, bank=2, row=3),
        END,
    ]
    text = format_trace(trace)

    assert "# patton: burst=8 lanes=0x00ff\nAiM WR_SBK 0 0x00000001 2 3\n" in text
    assert trace == parse_trace(text)
    assert (8, 255, 1) == (
        trace[0].noted("burst", 0),
        trace[0].noted("lanes", 0),
        trace[1].noted("lanes", 1),
    )


def test_unreadable_notes_are_refused() -> None:
    """A note is pairs of key and value; other comments may say anything."""
    with pytest.raises(TraceError) as caught:
        parse_trace("# patton: burst 8\nAiM EOC\n")

    assert "'burst' in a note" == caught.value.problem


def test_what_no_device_has() -> None:
    """Rows and bursts beyond the device are let pass, as the simulator does."""
    text = "AiM MAC_ABK 65 1 3\nW MEM 0 0 16384\nAiM EWADD 99 0 0\nAiM EOC\n"
    found = list(beyond_device(parse_trace(text), load_preset()))

    assert [(0, "65 bursts of a row of 64"), (1, "row 16384 of 16384")] == found
