import pytest

from sentinel.core.host.reading import Filesystem, memory_of

MEMINFO = "MemTotal:       263979124 kB\nMemFree:         1000000 kB\nMemAvailable:   200000000 kB\nHugePages_Total:       0\n"


def test_memory_is_told_in_bytes() -> None:
    assert memory_of(MEMINFO) == (263979124 * 1024, 200000000 * 1024)


@pytest.mark.parametrize("text", ["", "MemTotal: x kB\n", "MemFree: 1 kB\n"])
def test_memory_that_is_not_told_is_none(text: str) -> None:
    assert memory_of(text) == (None, None)


@pytest.mark.parametrize(
    ("filesystem", "ratio"),
    [
        (Filesystem(mountpoint="/", size=100, free=25), 0.25),
        (Filesystem(mountpoint="/", size=100, free=25, files=1000, files_free=10), 0.01),
        (Filesystem(mountpoint="/", size=100, free=25, files=1000, files_free=900), 0.25),
        (Filesystem(mountpoint="/", size=0, free=0), 0.0),
    ],
)
def test_a_filesystem_is_full_when_bytes_or_files_are(filesystem: Filesystem, ratio: float) -> None:
    assert filesystem.free_ratio == ratio
