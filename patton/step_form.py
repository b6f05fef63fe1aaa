"""The form of a step, looked at only when Python itself has stumbled over one.

The checks of a step judge values as they come and are quick because they take for
granted what the types say. Where that is wrong they raise what Python raises, the step
is undone, and here is found out which part it was.
"""

from __future__ import annotations

from typing import Any

from patton.arguments import expect
from patton.errors import ArgumentError
from patton.steps import Step

CALL = "apply_step"

_FORMS = {
    "finishes": ("request",),
    "releases": ("request", "block"),
    "evicts": ("block",),
    "confirms": ("request", "tokens"),
    "grants": ("request", "blocks", "blocks"),
    "writes": ("request", "position", "tokens"),
    "reads": ("request", "position", "position"),
    "readbacks": ("request", "position", "position"),
}


def check_form(step: object) -> None:
    """Raise ArgumentError for the first part of a step that is not of its form.

    Values are not judged here: whether a block exists, say, is for the state.
    """
    expect(CALL, "step", step, Step)
    for part, form in _FORMS.items():
        found = getattr(step, part)
        accepted = "a list of " + (
            form[0] if len(form) == 1 else f"({', '.join(form)})"
        )
        if not _is_sized(found):
            raise ArgumentError(CALL, part, found, accepted)
        for row in found:
            if not _fits(row, form):
                raise ArgumentError(CALL, part, row, accepted)
    expect(CALL, "drafts", getattr(step, "drafts", None), dict, type(None))


def _fits(row: Any, form: tuple[str, ...]) -> bool:
    parts = (row,) if len(form) == 1 else row
    if not _is_sized(parts) or len(parts) != len(form):
        return False
    return all(_is(kind, value) for kind, value in zip(form, parts, strict=True))


def _is(kind: str, value: Any) -> bool:
    if kind == "blocks":
        return _is_sized(value) and all(isinstance(block, int) for block in value)
    return isinstance(value, int) or (kind == "request" and isinstance(value, str))


def _is_sized(value: Any) -> bool:
    return hasattr(value, "__len__") and hasattr(value, "__iter__")
