#!/usr/bin/env bash
# An environment with vLLM and this checkout, on a machine without a GPU:
#     requirements/vllm-cpu.sh FOLDER
# Needs Python 3.11 or later and an index that has the CPU build of torch.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
version=0.33.0

python3 -m venv "$1"
pip=("$1/bin/pip" --disable-pip-version-check install -q)
"${pip[@]}" --no-deps -r "$here/vllm-cpu.txt"
# The build without device code, which platform plug-ins use; without the second
# variable its version would have a suffix that pip does not find in the name.
VLLM_TARGET_DEVICE=empty VLLM_VERSION_OVERRIDE=$version \
    "${pip[@]}" --no-deps --no-build-isolation --no-binary vllm "vllm==$version"
"${pip[@]}" -e "$here/..[test]"
