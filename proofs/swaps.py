"""Changes to shipped functions, made in the running program and taken back.

A change replaces the code of the function object itself. So whoever imported the
function runs the changed one, and what the theorems prove is shown to be about it.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from types import CodeType, FunctionType

# What functions were before they were first changed: changes are made to that text.
_shipped_code: dict[FunctionType, CodeType] = {}


class SwapError(ValueError):
    """A planned change does not fit the shipped text any more."""


def shipped(name: str) -> FunctionType:
    """The function of a dotted name, as in "layout.Layout.of" or "spec.machine.end".

    Names are within `patton` unless they begin with "spec".
    """
    package, module, *path = name.split(".")
    if package != "spec":
        package, module, path = "patton", package, [module, *path]
    found = import_module(f"{package}.{module}")
    for word in path:
        found = getattr(found, word)
    function = getattr(found, "__func__", found)
    if isinstance(function, property):
        function = function.fget
    assert isinstance(function, FunctionType), name
    return function


def tree_of(function: FunctionType) -> ast.FunctionDef:
    """The function's definition as a syntax tree of its own."""
    code = _shipped_code.get(function, function.__code__)
    source = textwrap.dedent(inspect.getsource(code))
    node = ast.parse(source).body[0]
    assert isinstance(node, ast.FunctionDef)
    node.decorator_list = []
    return node


def code_of(function: FunctionType, tree: ast.FunctionDef) -> CodeType:
    """Code for the function from a changed definition."""
    module = ast.fix_missing_locations(ast.Module([tree], type_ignores=[]))
    names = dict(function.__globals__)
    exec(compile(module, f"<changed {tree.name}>", "exec"), names)  # noqa: S102
    changed = names[tree.name]
    assert isinstance(changed, FunctionType)
    return changed.__code__


@contextmanager
def replaced(function: FunctionType, code: CodeType) -> Iterator[None]:
    """Run the function with other code for a while."""
    kept = function.__code__
    _shipped_code.setdefault(function, kept)
    function.__code__ = code
    try:
        yield
    finally:
        function.__code__ = kept


@contextmanager
def swapped(name: str, old: str, new: str) -> Iterator[None]:
    """Replace the one expression `old` of a shipped function for a while."""
    function = shipped(name)
    swap = _Swap(ast.parse(old, mode="eval").body, ast.parse(new, mode="eval").body)
    tree = tree_of(function)
    swap.visit(tree)  # changes it in place
    if swap.count != 1:
        raise SwapError(f"{name} has {old!r} {swap.count} times, not once")
    with replaced(function, code_of(function, tree)):
        yield


class _Swap(ast.NodeTransformer):
    def __init__(self, old: ast.expr, new: ast.expr) -> None:
        self._old = ast.dump(old)
        self._new = new
        self.count = 0

    def visit(self, node: ast.AST) -> ast.AST:
        if isinstance(node, ast.expr) and ast.dump(node) == self._old:
            self.count += 1
            return self._new
        return self.generic_visit(node)
