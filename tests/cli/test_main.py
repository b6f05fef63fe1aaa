from __future__ import annotations

import errno
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import Result

from patton import __version__
from patton.cli.main import COMMANDS, Commands, main

Patton = Callable[..., Result]


def test_version(patton: Patton) -> None:
    """The version is that of the package."""
    result = patton("--version")

    assert (0, f"patton, version {__version__}\n") == (result.exit_code, result.output)


@pytest.mark.parametrize("command", [main, *COMMANDS], ids=lambda item: item.name)
def test_help_has_a_text_and_examples(patton: Patton, command: click.Command) -> None:
    """Every help says what the command does and shows how to call it."""
    words = [] if command is main else [command.name]
    result = patton(*words, "--help")

    assert 0 == result.exit_code
    assert command.help is not None
    assert command.help.splitlines()[0] in result.output
    assert "Examples:\n" in result.output
    assert result.output == patton(*words, "-h").output


def test_commands_stand_in_their_own_order(patton: Patton) -> None:
    """The help lists commands as they are used, not by name."""
    lines = patton("--help").output.split("Commands:\n")[1].splitlines()
    listed = [line.split()[0] for line in lines[: len(COMMANDS)]]

    assert [command.name for command in COMMANDS] == listed


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["fly"], "fly"),
        (["--bogus"], "--bogus"),
        (["layout", "--bogus"], "--bogus"),
        (["layout", "--slots", "many"], "many"),
        (["layout", "--slots", "0"], "slots is 0; accepted: a whole number from 1"),
        (["layout", "--model", "gpt-9"], "'gpt-9'; accepted: one of llama3-8b"),
        (["layout", "--model", "./no.json"], "no.json"),
        (["layout", "--device", "abacus"], "'abacus'; accepted: one of aim-gddr6"),
        (
            ["layout", "--block-tokens", "20"],
            "block_tokens is 20; accepted: a multiple",
        ),
        (["layout", "--capacity-gib", "nan"], "capacity_gib is nan"),
        (["layout", "--capacity-gib", "inf"], "to 4.1943e+06 GiB"),
        (["layout", "--capacity-gib", "0.01"], "rows is 10; accepted: at least"),
        (
            ["layout", "--pair-blocks", "9999999"],
            "pair_blocks is 9999999; accepted: at",
        ),
        (["layout", "--pair-blocks", str(10**20)], f"{10**20} is not in the range"),
        (["where"], "--block, --token and --element"),
        (["where", "--block", "1", "--token", "1"], "--block, --token and --element"),
        (["where", "--at", "1", "2", "3", "4"], "--at"),
        (["where", "--at", *"00000", "--head", "0"], "--at has no further"),
        (["draw"], "OUT"),
    ],
)
def test_refusals(patton: Patton, words: list[str], said: str) -> None:
    """What cannot be done ends with status 2, and one line says why."""
    result = patton(*words)
    (line,) = [x for x in result.output.splitlines() if x.startswith("Error: ")]

    assert 2 == result.exit_code
    assert said in line
    assert line == result.output.splitlines()[-1]


def raising(error: BaseException) -> click.Group:
    @click.command()
    def fail() -> None:
        raise error

    return Commands("patton", commands={"fail": fail})


def test_a_reader_that_stops_reading_is_no_refusal() -> None:
    """A closed pipe is left to click, which ends quietly."""
    group = raising(BrokenPipeError(errno.EPIPE, "broken"))
    context = group.make_context("patton", ["fail"])

    with context, pytest.raises(BrokenPipeError):
        group.invoke(context)


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (IsADirectoryError(21, "Is a directory", "here"), "here: Is a directory"),
        (OSError(), "OSError"),
        (OSError("nobody answers\nat host:1"), "nobody answers at host:1"),
        (MemoryError(), "not enough memory"),
        (UnicodeDecodeError("utf-8", b"\xff", 0, 1, "bad"), "an input is not UTF-8"),
    ],
)
def test_what_the_system_refuses(error: Exception, message: str) -> None:
    """Files that cannot be read or written are told by name."""
    with pytest.raises(click.ClickException) as caught:
        raising(error).main(["fail"], standalone_mode=False)

    assert 2 == caught.value.exit_code
    assert message in caught.value.format_message()


def test_a_process_of_its_own(tmp_path: Path) -> None:
    """As the shell sees it: status 2, one line on standard error, nothing else."""
    code = "from patton.cli.main import main; main()"
    out = tmp_path / "absent" / "map.svg"

    def run(*words: Any) -> tuple[int, str, str]:
        command = [sys.executable, "-c", code, *map(str, words)]
        child = subprocess.run(command, capture_output=True, text=True, check=False)
        return child.returncode, child.stdout, child.stderr

    status = run("where", "--block", 8160, "--token", 0, "--element", 0)
    words = "llama3-8b on aim-gddr6: index is 8160; accepted: 0 to 8159"
    assert (2, "", f"Error: {words}\n") == status
    refusal = f"Error: {out}: No such file or directory\n"
    assert (2, "", refusal) == run("draw", "--at", 1, out)
