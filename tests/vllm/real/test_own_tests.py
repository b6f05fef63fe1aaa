"""vLLM's own tests of its prefix cache pass with the gate in every cache it can serve.

The tests are vLLM's, of the version installed, taken from its source distribution as
pip finds it, and not kept.
"""

from __future__ import annotations

import json
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

# They name a model of which they only need what its configuration says. Without it, and
# without a device, 11 of them could not run on a machine that has neither.
MODEL = "facebook/opt-125m"
CONFIG = {
    "architectures": ["OPTForCausalLM"],
    "model_type": "opt",
    "hidden_size": 768,
    "word_embed_proj_dim": 768,
    "num_hidden_layers": 12,
    "num_attention_heads": 12,
    "ffn_dim": 3072,
    "max_position_embeddings": 2048,
    "vocab_size": 50272,
    "torch_dtype": "float16",
}


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
    (tree / MODEL).mkdir(parents=True)
    (tree / MODEL / "config.json").write_text(json.dumps(CONFIG))
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


def test_all_pass_with_the_gate(sources: Path) -> None:
    """Of its conftest vLLM's tests need nothing."""
    plugins = ("-p", "gate_everywhere", "-p", "no:cacheprovider", "--noconftest")
    options, here = ("-q", "-W", "ignore", *plugins), str(Path(__file__).parent)
    place = ("-c", os.devnull, f"--rootdir={sources}")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, *place, TESTS],
        cwd=sources,
        env=os.environ | {"PYTHONPATH": here, "VLLM_TARGET_DEVICE": "cpu"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (passed,) = re.findall(r"(\d+) passed", done.stdout)
    (gated,) = re.findall(r"'gated': (\d+)", done.stdout)

    assert int(passed) > 200
    assert int(gated) > 20
