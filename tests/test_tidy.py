"""House rules about the text of the repository, each shown to catch its violation.

Not covered here: what ruff and mypy check, and whether names are good.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator

import pytest

from tests.sources import (
    imported_names,
    package_modules,
    python_files,
    text_files,
)

FUNCTION_LINES_MAX = 70
FILE_LINES_MAX = 400
LINE_CHARACTERS_MAX = 88

# Written so that they do not match themselves.
UNFINISHED = re.compile(r"\b(?:TO" + "DO|FIX" + r"ME)\b")
LOCAL_PATH = re.compile(
    r"(?<![\w.])/(?:home|Users|root|work|workspace)/\w|\b[A-Z]:\\Users\b"
)

# Where a user, an embedder or the command line enters; all else is reached from here.
ENTRIES = (
    "patton",
    "patton.cli.main",
    "patton.device",
    "patton.device.aim",
    "patton.engine",
    "patton.vllm.backend",  # vLLM imports these three by their names
    "patton.vllm.connector",
    "patton.vllm.platform",
    "patton.vllm.plugin",
)


def long_functions(source: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert node.end_lineno is not None
            lines = node.end_lineno - node.lineno + 1
            if lines > FUNCTION_LINES_MAX:
                yield f"{node.lineno}: {node.name} has {lines} lines"


def long_files(source: str) -> Iterator[str]:
    lines = len(source.splitlines())
    if lines > FILE_LINES_MAX:
        yield f"{lines} lines"


def long_lines(source: str) -> Iterator[str]:
    for number, line in enumerate(source.splitlines(), 1):
        if len(line) > LINE_CHARACTERS_MAX:
            yield f"{number}: {len(line)} characters"


def empty_asserts(source: str) -> Iterator[str]:
    """Asserts that cannot fail: of a true constant, or of a tuple."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Assert):
            test = node.test
            is_true = isinstance(test, ast.Constant) and bool(test.value)
            if is_true or (isinstance(test, ast.Tuple) and test.elts):
                yield f"{node.lineno}: assert {ast.unparse(test)}"


def unfinished_marks(text: str) -> Iterator[str]:
    for match in UNFINISHED.finditer(text):
        yield match.group()


def local_paths(text: str) -> Iterator[str]:
    for match in LOCAL_PATH.finditer(text):
        yield match.group()


Rule = Callable[[str], Iterator[str]]
CODE_RULES: dict[Rule, str] = {
    long_functions: "def f():\n" + "    g()\n" * FUNCTION_LINES_MAX,
    long_files: "x = 1\n" * (FILE_LINES_MAX + 1),
    long_lines: "x" * (LINE_CHARACTERS_MAX + 1),
    empty_asserts: "assert " + "True",
}
TEXT_RULES: dict[Rule, str] = {
    unfinished_marks: "# TO" + "DO: later",
    local_paths: "see /ho" + "me/me/notes",
}
RULES = CODE_RULES | TEXT_RULES


@pytest.mark.parametrize("rule", CODE_RULES, ids=lambda rule: rule.__name__)
def test_code_keeps_the_rule(rule: Rule) -> None:
    """No Python file of the repository breaks the rule."""
    found = [
        f"{name}:{violation}"
        for name, path in python_files()
        for violation in rule(path.read_text(encoding="utf-8"))
    ]

    assert [] == found


@pytest.mark.parametrize("rule", TEXT_RULES, ids=lambda rule: rule.__name__)
def test_text_keeps_the_rule(rule: Rule) -> None:
    """No text of the repository breaks the rule."""
    found = [
        f"{name}: {violation}"
        for name, path in text_files()
        for violation in rule(path.read_text(encoding="utf-8"))
    ]

    assert [] == found


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_rule_catches_its_violation(rule: Rule) -> None:
    """A rule that finds nothing anywhere would be no rule."""
    assert 1 == len(list(rule(RULES[rule])))


def unreached(imports: dict[str, set[str]]) -> set[str]:
    """The modules that no chain of imports from the entries leads to."""
    reached: set[str] = set()
    ahead = [entry for entry in ENTRIES if entry in imports]
    while ahead:
        module = ahead.pop()
        if module not in reached:
            reached.add(module)
            parent = module.rpartition(".")[0]
            ahead += [name for name in (*imports[module], parent) if name in imports]
    return imports.keys() - reached


def test_every_module_is_used() -> None:
    """No module of patton is left that nothing leads to."""
    imports = {
        module: imported_names(
            path.read_text(encoding="utf-8"),
            module,
            is_package=path.name == "__init__.py",
        )
        for module, path in package_modules().items()
    }

    assert set() == unreached(imports)


def test_dead_islands_are_found() -> None:
    """Two modules that import only each other are both reported."""
    imports = {"patton": {"patton.a"}, "patton.a": set[str]()}
    island = {"patton.b": {"patton.c"}, "patton.c": {"patton.b"}}

    assert {"patton.b", "patton.c"} == unreached(imports | island)
