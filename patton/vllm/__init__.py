"""PATTON inside vLLM: its scheduler, prefix cache and block pool drive the runtime.

Nothing here imports vLLM or torch unless vLLM itself loads it: `connector`, `capacity`
and `backend` do, what they are made of does not and is tested without.
"""
