"""Every option and argument of every command with what it does not take."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import click
import pytest
from click.testing import Result

from patton.cli.main import COMMANDS

Patton = Callable[..., Result]

JUNK = ("", "x", "-1", "nan", "1e400", "absent/folder", ".", str(10**30))
# What a command needs to be short, should it take the word; it comes first, so that
# the option that is tried has the last say.
BRIEF = {
    "run": ("--steps", "1", "--check", "lifecycle"),
    "study run": ("fragmentation", "--steps", "1", "--models", "none"),
}


def leaves(
    commands: tuple[click.Command, ...], above: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Commands that do something, with the words that call them."""
    for command in commands:
        words = (*above, command.name or "")
        if isinstance(command, click.Group):
            yield from leaves(tuple(command.commands.values()), words)
        else:
            yield words, command


def taken() -> Iterator[object]:
    """All that takes a word: words of the command, the option's name if it has one."""
    for words, command in leaves(COMMANDS):
        for parameter in command.params:
            if isinstance(parameter, click.Option) and not parameter.is_flag:
                option = parameter.opts[:1]
            elif isinstance(parameter, click.Argument):
                option = []
            else:
                continue
            name = " ".join((*words, parameter.name or ""))
            yield pytest.param(words, option, parameter.nargs, id=name)


@pytest.mark.parametrize(("words", "option", "count"), [*taken()])
def test_what_is_not_taken_is_refused(
    patton: Patton,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    words: tuple[str, ...],
    option: list[str],
    count: int,
) -> None:
    """No traceback, no other status: a word is taken, or one line says why not."""
    monkeypatch.chdir(tmp_path)
    refused = 0
    for junk in JUNK:
        brief = BRIEF.get(" ".join(words), ())
        result = patton(*words, *brief, *option, *[junk] * max(1, count))
        assert result.exit_code in (0, 2), junk
        if result.exit_code == 2:
            refused += 1
            assert result.stderr.splitlines()[-1].startswith("Error: "), junk

    assert refused > 0
