"""From something found wrong to an error that says so in the project's words."""

from __future__ import annotations

from itertools import islice

from patton.addresses import Address
from patton.commands import CommandStream
from patton.device import rules
from patton.device.provenance.memory import TagMemory
from patton.device.provenance.tags import Fault
from patton.errors import ValidationError
from patton.layout import Layout


def fault_at(
    stream: CommandStream,
    number: int | None,
    output: str,
    fault: Fault,
    found: str,
    due: str,
) -> ValidationError:
    """The error shown by command `number`, or by the end of the stream if None."""
    entry, command = len(stream), "the end of the stream"
    index = int(stream.command_offsets()[-1]) if number is None else number
    if number is not None:
        single = next(islice(rules.single_commands(stream), number, None))
        entry, command = single.entry, str(single)
    return ValidationError(
        str(stream.phase), stream.step, index, entry, command, output, fault, found, due
    )


def fault_of_entry(
    stream: CommandStream, entry: int, output: str, found: str, due: str
) -> ValidationError:
    """The error that an entry means something that the step does not ask for."""
    number = int(stream.command_offsets()[entry])
    return fault_at(stream, number, output, Fault.TABLE, found, due)


def describe_lane(layout: Layout, memory: TagMemory, cell: int, lane: int) -> str:
    """A lane of a cell in words: its address and what is placed there."""
    channel, row, burst, bank = memory.address(cell)
    where = f"lane {lane} of burst {burst}, row {row}, bank {bank}, channel {channel}"
    held = layout.element_at(Address(channel, bank, row, burst, lane))
    if held is None:
        return f"{where} (padding or unused)"
    kind, element = held
    words = {"key": "Key granule", "value": "Value granule", "slot": "slot"}
    token = f"token {element.token}, element {element.element}"
    return f"{where} ({words[kind]} {element.index}, {token})"
