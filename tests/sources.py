"""The project's source files as data, for the tests about the sources themselves."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import patton

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = Path(patton.__file__).resolve().parent
CODE_FOLDERS = ("tests", "spec", "proofs", "fuzz", "examples")
TEXT_SUFFIXES = {
    *(".py", ".md", ".toml", ".txt", ".in", ".cfg", ".json", ".jsonl"),
    *(".yml", ".yaml", ".svg", ".html", ".csv"),
}


def python_files() -> Iterator[tuple[str, Path]]:
    """Every Python file with its name from the root; patton may be installed."""
    for path in sorted(PACKAGE.rglob("*.py")):
        yield f"patton/{path.relative_to(PACKAGE).as_posix()}", path
    for folder in CODE_FOLDERS:
        for path in sorted((ROOT / folder).rglob("*.py")):
            yield path.relative_to(ROOT).as_posix(), path


def text_files() -> Iterator[tuple[str, Path]]:
    """Every Python file and every other text of the repository."""
    yield from python_files()
    folders = (*CODE_FOLDERS, "docs", ".ci")
    others = [path for folder in folders for path in (ROOT / folder).rglob("*")]
    others += ROOT.iterdir()
    for path in sorted(others):
        is_text = path.suffix in TEXT_SUFFIXES or path.name in {"run", ".gitignore"}
        if path.is_file() and is_text and path.suffix != ".py":
            yield path.relative_to(ROOT).as_posix(), path


def module_name(name: str) -> str:
    """The dotted name of a file: patton/device/__init__.py is patton.device."""
    return name.removesuffix(".py").replace("/", ".").removesuffix(".__init__")


def package_modules() -> dict[str, Path]:
    """The modules of patton by dotted name."""
    return {
        module_name(name): path
        for name, path in python_files()
        if name.startswith("patton/")
    }


def imported_names(source: str, module: str, *, is_package: bool) -> set[str]:
    """The dotted names that a source may load, wherever in it the import stands.

    `from a import b` counts as `a` and as `a.b`, which need not be a module.
    """
    package = module if is_package else module.rpartition(".")[0]
    names: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = _absolute(node, package)
            names |= {base, *(f"{base}.{alias.name}" for alias in node.names)}
    return names


def _absolute(node: ast.ImportFrom, package: str) -> str:
    if node.level == 0:
        return node.module or ""
    parents = package.split(".")
    base = parents[: len(parents) - node.level + 1]
    return ".".join([*base, node.module] if node.module else base)
