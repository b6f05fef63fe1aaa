"""The `patton` command itself: its subcommands, and how refusals reach the user.

Whatever the library or the file system refuses ends as one line on standard error and
exit status 2, as a wrong option does; a traceback would be a defect.
"""

from __future__ import annotations

import errno
from typing import Any

import click

from patton import __version__
from patton.cli.aim import aim
from patton.cli.draw import draw
from patton.cli.layout import layout
from patton.cli.replay import replay
from patton.cli.run import run
from patton.cli.study import study
from patton.cli.where import where
from patton.errors import PattonError

# In the order of the help.
COMMANDS: tuple[click.Command, ...] = (run, layout, where, draw, replay, aim, study)

EXAMPLES = """\b
Examples:
  patton run
  patton layout --model llama3-8b --device aim-gddr6
  patton where --block 1234 --token 5 --element 70 --kind value
  patton draw map.svg
"""


class RefusalError(click.ClickException):
    """What was asked for cannot be done; the message says what can."""

    exit_code = 2


class Commands(click.Group):
    """Subcommands in their own order, whose typed errors become refusals."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """Names in the order in which they were added."""
        return list(self.commands)

    def invoke(self, ctx: click.Context) -> Any:
        """Run a subcommand. Raises RefusalError for what the library refuses."""
        try:
            return super().invoke(ctx)
        except PattonError as error:
            raise RefusalError(_one_line(error)) from error
        except UnicodeDecodeError as error:
            raise RefusalError(f"an input is not UTF-8 text: {error}") from error
        except OSError as error:
            # A reader that has read enough (`| head`) is not to be told of an error.
            if error.errno == errno.EPIPE:
                raise
            raise RefusalError(_os_words(error)) from error
        except MemoryError as error:
            raise RefusalError("not enough memory for what was asked for") from error


def _one_line(error: Exception) -> str:
    return " ".join(str(error).splitlines())


def _os_words(error: OSError) -> str:
    problem = error.strerror or _one_line(error) or type(error).__name__
    return f"{error.filename}: {problem}" if error.filename else problem


@click.group(
    cls=Commands,
    epilog=EXAMPLES,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(__version__, prog_name="patton")
def main() -> None:
    """Place the KV cache of a serving engine in processing-in-memory DRAM."""


for command in COMMANDS:
    main.add_command(command)
