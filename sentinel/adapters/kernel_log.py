"""Reads the kernel's log from /dev/kmsg, one record at each read.

Old records are read at first, and then what comes. A record that was overwritten before it
was read is lost; that is no error.
"""

import errno
import os
import select
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

from sentinel.core.host.kernel_log import KernelLine, line_of
from sentinel.core.model.errors import Permanent
from sentinel.ports import Clock

_RECORD = 8192  # bytes; the kernel refuses to read into less than a record needs
_AT_ONCE = 10_000  # records in one call, so that a flood cannot keep it from returning


class KernelLog:
    def __init__(self, clock: Clock, device: Path = Path("/dev/kmsg")) -> None:
        self._clock, self._device = clock, device
        self._fd: int | None = None

    def read(self, wait: float) -> list[KernelLine]:
        """What matters of what was logged since the last call; waits for the first of it.

        Raises `Permanent` if the log may not be read here.
        """
        try:
            return self._read(wait)
        except OSError as error:
            self.close()
            raise Permanent(f"{self._device}: {error.strerror or error}") from None

    def close(self) -> None:
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def _read(self, wait: float) -> list[KernelLine]:
        if self._fd is None:
            self._fd = os.open(self._device, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        ready = select.poll()
        ready.register(self._fd, select.POLLIN)
        ends, left = self._clock.monotonic() + wait, wait
        while True:
            ready.poll(left * 1000)
            lines = list(self._lines(self._fd))
            left = ends - self._clock.monotonic()
            if lines or left <= 0:
                return lines

    def _lines(self, fd: int) -> Iterator[KernelLine]:
        booted_at = self._booted_at()
        for record in _records(fd):
            line = line_of(record, booted_at)
            if line is not None:
                yield line

    def _booted_at(self) -> datetime:
        """The kernel counts from there, by a clock that is never set and drifts a little."""
        return self._clock.now() - timedelta(seconds=self._clock.monotonic())


def _records(fd: int) -> Iterator[str]:
    for _ in range(_AT_ONCE):
        try:
            record = os.read(fd, _RECORD)
        except BlockingIOError:
            return
        except BrokenPipeError:  # it was overwritten; the next read goes on behind it
            continue
        if not record:  # as where /dev/null stands in its place
            raise OSError(errno.ENODATA, "it has an end, so it is not the kernel's")
        yield record.decode(errors="replace")
