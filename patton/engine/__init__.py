"""A serving engine with vLLM's block semantics, and the workloads it serves."""
