"""Random traces of all instructions, made to meet the rare situations.

Few channels, banks and rows, so that requests conflict; runs of reads and writes, so
that buffers fill; multicast beside single channels, so that channels part and meet.
"""

from __future__ import annotations

import random

from patton.device.aim import Instruction, Opcode, mask_of
from patton.device.aim.trace import OPERANDS

RUNS = (Opcode.W_MEM, Opcode.R_MEM, Opcode.WR_SBK, Opcode.RD_SBK)
SIZES = (0, 1, 1, 2, 3, 4, 8, 16, 40, 64, 100)
ROWS = (1, 2, 3, 8, 100)
BANKS = ((0,), (0, 1), (0, 4, 5), range(4), range(16))


def random_trace(seed: int, lines: int | None = None) -> list[Instruction]:
    """A trace that depends on nothing but the seed."""
    generator = random.Random(seed)
    channels = generator.sample(range(32), generator.choice([1, 1, 2, 3, 4, 8]))
    rows = generator.choice(ROWS)
    banks = generator.choice(BANKS)
    opcodes = [opcode for opcode in Opcode if opcode != Opcode.EOC]
    weights = [generator.choice([0, 0, 0.2, 1, 1, 3]) for _ in opcodes]
    weights[opcodes.index(Opcode.W_MEM)] += 0.1
    count = lines or generator.choice([5, 20, 50, 100])
    found: list[Instruction] = []
    while len(found) < count:
        (opcode,) = generator.choices(opcodes, weights)
        times = generator.choice([1, 1, 1, 2, 5, 10, 40]) if opcode in RUNS else 1
        for _ in range(times):
            place = {"bank": generator.choice(banks), "row": generator.randrange(rows)}
            found.append(_instruction(generator, opcode, channels, place))
    return [*found[:count], Instruction(Opcode.EOC)]


def _instruction(
    generator: random.Random,
    opcode: Opcode,
    channels: list[int],
    place: dict[str, int],
) -> Instruction:
    selected = channels
    if opcode in {Opcode.W_MEM, Opcode.R_MEM, Opcode.WR_ABK}:
        selected = [generator.choice(channels)]
    elif generator.random() < 0.5:
        selected = [c for c in channels if generator.random() < 0.5]
    values = place | {
        "opsize": generator.choice(SIZES),
        "mask": mask_of(selected),
        "register": generator.randrange(3),
        "value": generator.randrange(8),
    }
    operands = OPERANDS[opcode]
    if "channel" in operands:
        operands = ("mask", *operands)
    given = {name: values[name] for name in operands if name in values}
    return Instruction(opcode, **given)  # type: ignore[arg-type] # ints, no note
