"""The `patton` command: one file per subcommand, and the pictures that they draw."""

from __future__ import annotations

from importlib.util import find_spec

# The entry point loads this package first, so a missing extra can be told in one line.
if find_spec("click") is None or find_spec("rich") is None:
    raise SystemExit("patton: the command needs: pip install 'patton-pim[cli]'")
