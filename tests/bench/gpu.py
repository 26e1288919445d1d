"""What a look at the GPUs costs the loop, by number of GPUs: from the answer to the store.

The driver's own time is not in it: that is spent in a lane. `tests.gpu.capture` measures it
on a real GPU.
"""

import statistics
import tempfile
import time
from pathlib import Path

from sentinel.adapters.nvml import Nvml
from sentinel.core.model.series import Store
from sentinel.runtime.gpus import Gpus, look
from sentinel.runtime.inbox import Inbox
from sentinel.runtime.lanes import Lane, LaneAnswer
from sentinel.runtime.plan import Plan
from sentinel.store.memory import open_memory
from tests.fakes import FakeClock
from tests.gpu.driver import Driver, FakeProcesses

_ROUNDS = 200


def measure(sizes: tuple[int, ...] = (1, 8)) -> dict[int, float]:
    """Milliseconds of processor time per look, by number of GPUs."""
    return {size: _with(size) for size in sizes}


def _with(size: int) -> float:
    clock, processes = FakeClock(), FakeProcesses()
    eyes = Nvml(clock, Driver(gpus=size))
    took = []
    with tempfile.TemporaryDirectory() as folder:
        memory = open_memory(Path(folder) / "state.db")
        gpus = Gpus(
            eyes,
            processes,
            Lane("nvml"),
            clock,
            Store(),
            memory,
            Inbox(),
            Plan(host="gpu1"),
        )
        for _ in range(_ROUNDS):
            clock.advance(seconds=5)
            answer = LaneAnswer(lane="nvml", token=1, value=look(eyes, processes, {}))
            began = time.process_time()
            gpus.looked(answer)
            took.append(time.process_time() - began)
        memory.close()
    return statistics.median(took) * 1e3


if __name__ == "__main__":
    for size, milliseconds in measure().items():
        print(f"{size} GPUs: {milliseconds:.3f} ms per look")
