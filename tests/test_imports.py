"""Which part may import which: the house's direction, read from the sources.

The layers inside the core are checked by import-linter (pyproject.toml); here are
the rules between the parts and towards other distributions.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import patton
from tests.sources import (
    PACKAGE,
    imported_names,
    module_name,
    package_modules,
    python_files,
)

# A part imports itself and the parts below it.
RANK = {"device": 1, "engine": 2, "systems": 2, "vllm": 2, "study": 3, "cli": 4}
CORE = "core"

# The device gets commands and executes them.  If it knew the mapping, the runtime
# and its check would share a bug.
DEVICE_USES = {
    *("patton.arguments", "patton.commands", "patton.config", "patton.errors"),
    *("patton.elements", "patton.executor"),
}
_PROVENANCE = "what streams must do follows from a step, and where from the map"
DEVICE_EXCEPTIONS: dict[str, tuple[set[str], str]] = {
    "patton.device.provenance.cells": (
        {"patton.layout", "patton.steps"},
        _PROVENANCE,
    ),
    "patton.device.provenance.contents": (
        {"patton.addresses", "patton.layout", "patton.steps"},
        _PROVENANCE,
    ),
    "patton.device.provenance.faults": (
        {"patton.addresses", "patton.layout"},
        _PROVENANCE,
    ),
    "patton.device.provenance.reads": ({"patton.steps"}, _PROVENANCE),
    "patton.device.provenance.tables": (
        {"patton.layout", "patton.steps"},
        _PROVENANCE,
    ),
    "patton.device.provenance.validator": (
        {"patton.layout", "patton.steps"},
        _PROVENANCE,
    ),
    "patton.device.reference": (
        {"patton.layout", "patton.steps"},
        "the reference says in which order the layout adds up; it reads no stream",
    ),
}

PLAIN = {"attr", "attrs", "numpy"}
OTHER_DISTRIBUTIONS = {
    "cli": {"PIL", "click", "rich"},
    "study": {"distributed", "matplotlib"},
    "vllm": {"torch", "vllm"},
}


def part_of(module: str) -> str:
    """The part a module of patton belongs to."""
    words = module.split(".")
    return words[1] if len(words) > 1 and words[1] in RANK else CORE


def violations(module: str, names: set[str]) -> Iterator[str]:
    """The imports of a module of patton that its part does not allow."""
    part = part_of(module)
    allowed = PLAIN | OTHER_DISTRIBUTIONS.get(part, set()) | {"patton"}
    for name in sorted(names):
        top = name.partition(".")[0]
        if top not in allowed and top not in sys.stdlib_module_names:
            yield f"{module} imports {name}"
        elif RANK.get(part_of(name), 0) > RANK.get(part, 0):
            yield f"{module} imports {name}, which stands above it"
        elif part == "device" and not _device_may(module, name):
            yield f"{module} imports {name}, which the device must not know"


def _device_may(module: str, name: str) -> bool:
    if not name.startswith("patton.") or part_of(name) == "device":
        return True
    extra, _reason = DEVICE_EXCEPTIONS.get(module, (set(), ""))
    return any(
        name == used or name.startswith(f"{used}.") for used in DEVICE_USES | extra
    )


def _imports_of_package() -> Iterator[tuple[str, set[str]]]:
    for module, path in package_modules().items():
        source = path.read_text(encoding="utf-8")
        is_package = path.name == "__init__.py"
        yield module, imported_names(source, module, is_package=is_package)


def test_imports_point_downwards() -> None:
    """Core, device, engine and command line import only what is below them."""
    found = [
        violation
        for module, names in _imports_of_package()
        for violation in violations(module, names)
    ]

    assert [] == found


def test_forbidden_imports_are_found() -> None:
    """Each rule reports a planted violation."""
    planted = [
        ("patton.runtime", {"patton.device"}),
        ("patton.runtime", {"z3"}),
        ("patton.layout", {"hypothesis.strategies"}),
        ("patton", {"patton.engine.serving"}),
        ("patton.device.plain", {"patton.layout"}),
        ("patton.device.reference", {"patton.generate.attention"}),
        ("patton.device.memory", {"patton.engine"}),
        ("patton.engine.session", {"rich.progress"}),
        ("patton.engine.session", {"patton.cli"}),
        ("patton.config", {"spec"}),
    ]

    for module, names in planted:
        assert 1 == len(list(violations(module, names))), (module, names)


def test_every_exception_of_the_device_is_needed() -> None:
    """An exception that nothing uses any more is removed."""
    imports = dict(_imports_of_package())
    unused = [
        (module, name)
        for module, (names, _reason) in DEVICE_EXCEPTIONS.items()
        for name in names
        if module in imports and name not in imports[module]
    ]

    assert [] == unused


def test_specification_stands_alone() -> None:
    """The specification shares no code with what it specifies."""
    allowed = {"spec", "attr", "attrs"} | sys.stdlib_module_names
    found = []
    for name, path in python_files():
        if name.startswith("spec/"):
            names = imported_names(
                path.read_text(encoding="utf-8"),
                module_name(name),
                is_package=path.name == "__init__.py",
            )
            found += [n for n in names if n.partition(".")[0] not in allowed]

    assert [] == found


CHILD = """
import importlib, sys

allowed = set(sys.stdlib_module_names) | {"attr", "attrs", "numpy", "patton"}

class OnlyPlain:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] not in allowed:
            raise ModuleNotFoundError(f"blocked: {name}", name=name)

for name in [n for n in sys.modules if n.partition(".")[0] not in allowed]:
    del sys.modules[name]
sys.meta_path.insert(0, OnlyPlain())
sys.path.insert(0, sys.argv[1])
for module in sys.argv[2:]:
    importlib.import_module(module)
parts = ("device", "engine", "systems", "vllm", "study", "cli")
above = [n for n in sys.modules if n.split(".")[:1] == ["patton"]
         and len(n.split(".")) > 1 and n.split(".")[1] in parts]
sys.exit(f"loaded: {above}" if above else 0)
"""


def test_core_needs_only_attrs_and_numpy() -> None:
    """Every core module loads where nothing else can be imported, and alone."""
    core = [module for module in package_modules() if part_of(module) == CORE]
    assert patton.__name__ in core

    child = subprocess.run(
        [sys.executable, "-W", "error", "-c", CHILD, str(PACKAGE.parent), *core],
        capture_output=True,
        text=True,
        check=False,
    )

    assert (0, "") == (child.returncode, child.stderr)
