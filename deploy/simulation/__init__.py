"""A stand-in for `vllm serve` that is as slow and as rude as the real one.

Standard library only: it runs in an empty image with the host's Python mounted. Log text and
metrics come from files recorded from a real vLLM 0.32 (`texts/`); only times, process numbers
and values are filled in. Nothing here may be kinder to its watcher than vLLM is.
"""
