"""The `--max-num-seqs` that vLLM takes by itself where nobody gave one.

Known from its source for what `vllm serve` does: 256 before 0.8; from 0.10 on by the memory of
the GPU. In between it depended on which of two engines a model got, so nobody can tell.
"""

import re
from dataclasses import dataclass

_GIB = 1 << 30
_LARGE = 70 * _GIB
_LARGEST = 160 * _GIB
_VERSION = re.compile(r"v?(\d+)\.(\d+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Hardware:
    """What vLLM looks at: `gpu_memory` in bytes of one GPU, None if it runs on the CPU."""

    gpu_memory: int | None
    gpu_name: str = ""
    world_size: int = 1  # tensor parallel × pipeline parallel


def default_max_num_seqs(
    version: str,
    hardware: Hardware | None,
    *,
    doubled: bool = False,
    batched_tokens: int | None = None,
) -> int | None:
    """None where it cannot be known. `doubled`: `--performance-mode throughput`;
    `batched_tokens`: `--max-num-batched-tokens`, which it never exceeds.
    """
    release = _VERSION.match(version)
    if release is None:
        return None
    major, minor = int(release[1]), int(release[2])
    if (major, minor) < (0, 8):
        return 256
    if (major, minor) < (0, 10) or hardware is None:
        return None
    limit = _by_memory(hardware) * (2 if doubled else 1)
    return limit if batched_tokens is None else min(limit, batched_tokens)


def _by_memory(hardware: Hardware) -> int:
    memory = hardware.gpu_memory
    if memory is None:
        return 128 * hardware.world_size
    is_small_for_its_memory = "a100" in hardware.gpu_name.lower()
    if memory >= _LARGEST or (memory >= _LARGE and not is_small_for_its_memory):
        return 1024
    return 256
