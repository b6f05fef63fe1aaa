"""Tests with vLLM itself, and how it runs where there is no device.

All in one process and on one thread, so that runs are alike; nothing is looked up on
the network. These must be said before vLLM is imported.
"""

import os

SETTINGS = {
    "PATTON_HOST": "1",
    "OMP_NUM_THREADS": "1",
    "HF_HUB_OFFLINE": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_LOGGING_LEVEL": "CRITICAL",
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    "VLLM_CPU_KVCACHE_SPACE": "1",  # GiB
    "TORCHDYNAMO_DISABLE": "1",
}
for name, value in SETTINGS.items():
    os.environ.setdefault(name, value)
