import pytest

from sentinel.core.gpu.detached import is_forbidden, is_refused

ALLOWED = "c 1:3 rwm\nc 195:0 rw\nc 195:255 rw\nc 234:0 rw\n"


@pytest.mark.parametrize(
    ("log", "refused"),
    [
        ("Failed to initialize NVML: Unknown Error\n", True),
        ("INFO ready\npynvml.NVMLError_Unknown: Unknown Error\n", True),
        (
            "(EngineCore_DP0 pid=99) ERROR 11-30 12:00:00 [core.py:700] pynvml.NVMLError_Unknown: Unknown Error",
            True,
        ),
        ("Failed to initialize NVML: Driver/library version mismatch\n", False),
        ("INFO Received request cmpl-1: prompt: 'Failed to initialize NVML: Unknown Error'", False),
        ("NVMLError_UnknownThing", False),
        ("", False),
    ],
    ids=[
        "nvidia-smi",
        "a traceback",
        "vLLM",
        "another error",
        "a user's words",
        "no word",
        "empty",
    ],
)
def test_a_log_that_says_that_the_gpus_are_gone(log: str, refused: bool) -> None:
    assert is_refused(log) is refused


@pytest.mark.parametrize(
    ("rules", "forbidden"),
    [
        (ALLOWED, False),
        ("a *:* rwm\n", False),
        ("c *:* rwm\n", False),
        ("c *:* m\nc 1:3 rwm\n", True),
        ("c 1:3 rwm\nc 5:1 rwm\n", True),
        ("b 195:0 rwm\n", True),
        ("c 195:0 m\n", True),
        ("nonsense\n", True),
        ("", False),
    ],
    ids=[
        "allowed",
        "all",
        "all of a kind",
        "only made",
        "forgotten",
        "a disk",
        "unreadable",
        "nonsense",
        "unknown",
    ],
)
def test_a_control_group_that_allows_no_gpu_any_more(rules: str, forbidden: bool) -> None:
    assert is_forbidden(rules) is forbidden
