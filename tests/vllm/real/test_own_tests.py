"""vLLM's own tests of its prefix cache pass with the gate in every cache it can serve.

The tests are vLLM's, of the version installed, taken from its source distribution as
pip finds it, and not kept.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

vllm = pytest.importorskip("vllm", reason="needs the extra vllm")

TESTS = "tests/v1/core/test_prefix_caching.py"
# A source distribution that is there already, for instance from the installation.
SDIST = os.environ.get("PATTON_VLLM_SDIST")
FAILED = re.compile(rf"^(?:FAILED|ERROR) ({re.escape(TESTS)}\S+)", re.MULTILINE)


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The source tree of vLLM, as far as its tests need it."""
    folder = tmp_path_factory.mktemp("vllm")
    if SDIST is None:
        _download(folder)
        (sdist,) = folder.glob("vllm-*.tar.gz")
    else:
        sdist = Path(SDIST)
    with tarfile.open(sdist) as archive:
        members = [m for m in archive if m.name.partition("/")[2].startswith("tests/")]
        archive.extractall(folder, members, filter="data")
    (tree,) = (path for path in folder.glob("vllm-*") if path.is_dir())
    return tree


def _download(folder: Path) -> None:
    version = vllm.__version__.partition("+")[0]
    options = ("--no-deps", "--no-build-isolation", "--no-binary", "vllm")
    command = [sys.executable, "-m", "pip", "download", "-q", *options]
    environment = {"VLLM_TARGET_DEVICE": "empty", "VLLM_VERSION_OVERRIDE": version}
    done = subprocess.run(
        [*command, "-d", str(folder), f"vllm=={version}"],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        pytest.skip(f"vLLM's sources cannot be had: {done.stderr.strip()[-200:]}")


def _run(sources: Path, *arguments: str) -> str:
    """What pytest says of vLLM's tests; of its conftest they need nothing."""
    options = ("-q", "-p", "no:cacheprovider", "--noconftest", "-W", "ignore")
    place = ("-c", os.devnull, f"--rootdir={sources}")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, *place, *arguments],
        cwd=sources,
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parent)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode in {0, 1}, done.stdout + done.stderr
    return done.stdout


def test_what_passes_without_the_gate_passes_with_it(sources: Path) -> None:
    """What fails with it, mostly for want of a network, fails as well without it."""
    output = _run(sources, "-p", "gate_everywhere", TESTS)
    failed = set(FAILED.findall(output))
    (passed,) = re.findall(r"(\d+) passed", output)
    (gated,) = re.findall(r"'gated': (\d+)", output)

    assert int(passed) > 150
    assert int(gated) > 20
    if failed:
        assert failed == set(FAILED.findall(_run(sources, *sorted(failed))))
