"""Tasks: pieces of a study that can be done anywhere, once, in any order.

A task is data. Its result is JSON and depends on nothing but the task, the content of
the workload file it names and the version of the package, which together are its key.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

import attrs

from patton import __version__
from patton.engine.synthetic import SyntheticSettings, synthetic
from patton.engine.workloads import Workload, open_workload

Result = dict[str, Any]


class Task(Protocol):
    """A frozen attrs class whose fields are JSON values, or attrs classes of such."""

    def execute(self) -> Result:
        """Do it; the result is JSON."""


@attrs.frozen
class Source:
    """The workload of a task: a file, or the embedded generator.

    path: None for the generator with `seed`; digest: of the file's content, so that a
    changed file is another task.
    """

    path: str | None = None
    digest: str = ""
    seed: int = 0

    @classmethod
    def of(cls, path: Path | None, seed: int = 0) -> Source:
        """A source that every process of this study can open. Raises OSError."""
        if path is None:
            return cls(seed=seed)
        return cls(str(path.resolve()), file_digest(path))

    @property
    def label(self) -> str:
        """The file's name, or that of the generator."""
        return Path(self.path).name if self.path else f"synthetic, seed {self.seed}"

    def open(self, tokenizer: str) -> Workload:
        """The workload, in the token counts of a tokenizer. Raises WorkloadError."""
        if self.path is None:
            return synthetic(SyntheticSettings(seed=self.seed))
        return open_workload(self.path, tokenizer=tokenizer)


def file_digest(path: Path) -> str:
    """SHA-256 of a file's content."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def key_of(task: Task) -> str:
    """The name under which a task's result is kept."""
    content = json.dumps(
        [type(task).__name__, described(task), __version__], sort_keys=True
    )
    return hashlib.sha256(content.encode()).hexdigest()[:32]


def described(task: Task) -> Mapping[str, Any]:
    """A task as JSON; where a workload's file lies makes no difference."""
    fields = attrs.asdict(task)  # type: ignore[arg-type]
    for name, value in fields.items():
        if isinstance(value, dict) and value.get("digest"):
            fields[name] = value | {"path": Path(value["path"]).name}
    return fields


def execute(task: Task) -> Result:
    """Do a task, in whatever process this is called."""
    return task.execute()
