"""The machine's clock. The only file that asks for the time."""

import time
from datetime import UTC, datetime


class MachineClock:
    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()
