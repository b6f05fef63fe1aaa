"""What a user installs: name, version, types, public names."""

from __future__ import annotations

import importlib
import re
import tomllib
from importlib import metadata
from typing import Any

import pytest

import patton
from tests.sources import PACKAGE, ROOT

PROJECT: dict[str, Any] = tomllib.loads(
    (ROOT / "pyproject.toml").read_text(encoding="utf-8")
)["project"]
PUBLIC = {
    *("Command", "CommandStream", "DeviceConfig", "Layout", "ModelConfig"),
    *("PattonError", "PlacementError", "Runtime"),
}


def test_version_has_one_value() -> None:
    """The package says the version that the distribution has."""
    assert PROJECT["version"] == patton.__version__


def test_installed_version_is_the_projects() -> None:
    """An installed distribution carries the same version."""
    try:
        installed = metadata.version(PROJECT["name"])
    except metadata.PackageNotFoundError:
        pytest.skip("patton-pim is not installed: a bare checkout")

    assert PROJECT["version"] == installed


def test_types_are_shipped() -> None:
    """Type checkers of embedders read the annotations."""
    assert (PACKAGE / "py.typed").is_file()


def test_core_dependencies_are_attrs_and_numpy() -> None:
    """An embedder installs nothing else."""
    names = [re.split(r"[<>=~! ]", line)[0] for line in PROJECT["dependencies"]]

    assert ["attrs", "numpy"] == names


def test_all_is_everything_but_vllm() -> None:
    """The extra `all` names each other extra, but for two that few platforms have."""
    extras = PROJECT["optional-dependencies"]
    (line,) = extras["all"]

    assert extras.keys() - {"all", "vllm", "fuzz"} == set(
        line.removeprefix("patton-pim[").removesuffix("]").split(",")
    )


def test_public_names_exist_and_are_documented() -> None:
    """Each name of __all__ is there once, and each class or function has its text."""
    assert len(patton.__all__) == len(set(patton.__all__))

    for name in patton.__all__:
        value = getattr(patton, name)
        assert name.startswith("__") or value.__doc__, name


def test_public_surface_is_complete() -> None:
    """The names that an embedder starts from are at the top."""
    assert set() == PUBLIC - set(patton.__all__)


def test_command_is_installed_with_an_existing_function() -> None:
    """The entry point of the `patton` command can be loaded and called."""
    pytest.importorskip("click", reason="the cli extra is not installed")
    module, _, function = PROJECT["scripts"]["patton"].partition(":")

    assert callable(getattr(importlib.import_module(module), function))


def test_device_has_one_import_name() -> None:
    """The top-level link cannot give a second copy of the device's classes."""
    if not (ROOT / "device").exists():
        pytest.skip("no top-level link here: not a checkout")

    with pytest.raises(ImportError, match=r"patton\.device"):
        importlib.import_module("device")
