"""A stand-in for the real simulator's binary: called alike, it prints alike."""

from __future__ import annotations

import sys
from pathlib import Path

from patton.device.aim import AimResult

PROGRAM = """#!{python}
import pathlib, sys
words = sys.argv[1:]
if words[0::2] != ["-f", "-t"]:
    sys.exit("usage")
pathlib.Path(words[1]).read_text()
if "AiM EOC\\n" not in pathlib.Path(words[3]).read_text():
    sys.exit("EOF reached while EOC not reached")
print(pathlib.Path({statistics!r}).read_text())
sys.exit({status})
"""


def statistics(result: AimResult) -> str:
    """What the simulator would print for such a run."""
    lines = ["[info] a line of its log", "MemorySystem:", "  impl: AiMDRAM"]
    lines.append(f"  memory_system_cycles: {result.cycles}")
    for channel in range(32):
        counts = {"ACT": 0, "SYNC": 0, **result.commands.get(channel, {})}
        lines += [
            f"    CH{channel}_num_{n}_commands: {k}  # total number of {n} commands"
            for n, k in counts.items()
        ]
        active = result.active_cycles[channel]
        lines += [f"    CH{channel}_active_cycles: {active}  # total number of them"]
        lines += [f"  CH{channel}_precharged_cycles: {result.cycles - active}"]
    return "\n".join(lines) + "\n"


def install(folder: Path, printed: str, *, status: int = 0) -> Path:
    """A source tree with a program that prints this; the program."""
    program = folder / "build" / "ramulator2"
    for path in (program, folder / "test" / "example.yaml"):
        path.parent.mkdir(parents=True, exist_ok=True)
    (folder / "test" / "example.yaml").write_text("Frontend:\n")
    text = folder / "printed.yaml"
    text.write_text(printed)
    filled = PROGRAM.format(python=sys.executable, statistics=str(text), status=status)
    program.write_text(filled)
    program.chmod(0o755)
    return program
