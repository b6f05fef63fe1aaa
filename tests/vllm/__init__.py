"""Tests of `patton.vllm`; those in `real` need vLLM, the others its recorded traces."""
