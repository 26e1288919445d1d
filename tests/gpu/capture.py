"""Records what a real driver says, in the moments that matter, and what is made of it.

`python -m tests.gpu.capture OUT` on a host with an NVIDIA GPU, PyTorch and nvcc; with a
container that runs a load, if `--container NAME` names one. Takes about two minutes.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from sentinel.adapters.clock import MachineClock
from sentinel.adapters.nvml import Nvml
from sentinel.adapters.proc import Proc
from sentinel.core.dockerspeak import container_of
from sentinel.core.gpu.mapping import given_to, used_by
from sentinel.core.gpu.owner import orphaned_bytes
from sentinel.core.gpu.reading import HostGpus
from sentinel.core.gpu.throttle import Throttled, advance, is_throttled, reasons_of
from sentinel.runtime.gpus import look
from tests.gpu.recorder import Recorder

LOAD = """
import time, torch
a = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
end = time.time() + {seconds}
while time.time() < end:
    for _ in range(20):
        b = a @ a
    torch.cuda.synchronize()
"""
FILL = """
import time, torch
held = []
try:
    while True:
        held.append(torch.empty(4 << 30, device="cuda", dtype=torch.uint8))
except torch.cuda.OutOfMemoryError as error:
    print(error, flush=True)
time.sleep({seconds})
"""
FAULT = "__global__ void f(){*(volatile int*)16=1;} int main(){f<<<1,1>>>();return cudaDeviceSynchronize();}"


class Capture:
    def __init__(self, out: Path) -> None:
        self.out, self.clock, self.proc = out, MachineClock(), Proc()
        self.nvml = Nvml(self.clock)
        self.found: dict[str, Any] = {}

    def record(self, moment: str, about: str) -> HostGpus:
        """Ask everything once more, through a session of its own."""
        recorder = Recorder()
        eyes = Nvml(self.clock, recorder)
        eyes.read()
        host = eyes.read()
        recorder.save(self.out / f"{moment}.json", about)
        self.say(moment, [str(gpu) for gpu in host.gpus])
        return host

    def say(self, name: str, value: Any) -> None:
        self.found[name] = value
        print(name, json.dumps(value, default=str), flush=True)
        (self.out / "found.json").write_text(json.dumps(self.found, indent=1, default=str))

    def time_questions(self) -> None:
        """Which question takes how long, at the pace of a scrape."""
        recorder = Recorder()
        eyes = Nvml(self.clock, recorder)
        eyes.read()
        recorder.took.clear()
        for _ in range(20):
            time.sleep(1.0)
            eyes.read()
        medians = {key: statistics.median(took) * 1e6 for key, took in recorder.took.items()}
        slowest = sorted(medians.items(), key=lambda each: -each[1])
        self.say("microseconds", {key: round(value, 1) for key, value in slowest})

    def time_polls(self, name: str, seconds: float) -> None:
        took, whole = [], []
        throttled, samples = Throttled(), []
        end, last = time.monotonic() + seconds, time.monotonic()
        while time.monotonic() < end:
            began = time.perf_counter()
            host = self.nvml.read()
            took.append(time.perf_counter() - began)
            began = time.perf_counter()
            look(self.nvml, self.proc, {})
            whole.append(time.perf_counter() - began)
            gpu, now = host.gpus[0], time.monotonic()
            throttled, last = advance(throttled, gpu, now - last), now
            samples.append(
                {
                    "power": gpu.power,
                    "clock": gpu.sm_clock,
                    "temperature": gpu.temperature,
                    "used": gpu.memory_used,
                    "utilization": gpu.utilization,
                    "reasons": sorted(reasons_of(gpu.reasons or 0)),
                    "throttled": is_throttled(gpu),
                }
            )
            time.sleep(0.25)
        self.say(
            name,
            {
                "median_ms": round(statistics.median(took) * 1e3, 3),
                "max_ms": round(max(took) * 1e3, 3),
                "with_proc_median_ms": round(statistics.median(whole) * 1e3, 3),
                "seconds_by_reason": dict(throttled.seconds),
                "ever_throttled": any(each["throttled"] for each in samples),
                "samples": samples[:: max(len(samples) // 8, 1)],
            },
        )

    def orphans(self, name: str) -> None:
        seen = look(self.nvml, self.proc, {})
        self.say(
            name,
            {
                "owners": {pid: str(owner) for pid, owner in seen.owners.items()},
                "bytes": [orphaned_bytes(gpu, seen.owners) for gpu in seen.host.gpus],
                "used": [gpu.memory_used for gpu in seen.host.gpus],
                "processes": [str(gpu.processes) for gpu in seen.host.gpus],
            },
        )

    def load(self) -> None:
        with python(LOAD.format(seconds=30)) as child:
            time.sleep(8)
            self.time_polls("polls_under_load", 12)
            self.record("under_load", "matrix products at the power limit")
            self.orphans("owners_under_load")
            child.wait()

    def fill(self) -> None:
        with python(FILL.format(seconds=30)) as child:
            assert child.stdout is not None
            self.say("oom_text", child.stdout.readline().decode().strip())
            self.record("out_of_memory", "one process holds nearly all memory")
            child.kill()
            for _ in range(20):  # not waited for: the process stays, as a zombie
                self.orphans("owners_of_a_zombie")
                time.sleep(0.1)
            child.wait()
        self.orphans("after_kill")

    def fault(self) -> None:
        source, program = self.out / "fault.cu", self.out / "fault"
        source.write_text(FAULT)
        subprocess.run(["nvcc", "-o", program, source], check=True, timeout=120)
        self.nvml.read()
        for gpu in self.nvml.read().gpus:
            env = {**os.environ, "CUDA_VISIBLE_DEVICES": gpu.uuid}
            done = subprocess.run([program], check=False, timeout=60, env=env)
            time.sleep(0.3)
            xids = [str(xid) for xid in self.nvml.read().xids]
            self.say(f"xids_{gpu.index}", {"exit": done.returncode, "of": gpu.uuid, "xids": xids})
        source.unlink()
        program.unlink()

    def container(self, name: str) -> None:
        raw = json.loads(subprocess.check_output(["docker", "inspect", name]))[0]
        box, seen = container_of(raw), look(self.nvml, self.proc, {})
        self.say(
            "container",
            {
                "devices": box.devices,
                "given": given_to(box, seen.host.gpus),
                "used": used_by(box, seen.host.gpus, seen.owners),
                "owners": {pid: str(owner) for pid, owner in seen.owners.items()},
                "orphaned": [orphaned_bytes(gpu, seen.owners) for gpu in seen.host.gpus],
            },
        )
        for pid in seen.owners:
            text = Path(f"/proc/{pid}/cgroup").read_text()
            (self.out / "cgroup_in_container.txt").write_text(text)


def python(code: str) -> "subprocess.Popen[bytes]":
    return subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("out", type=Path)
    parser.add_argument("--container")
    flags = parser.parse_args()
    capture = Capture(flags.out)
    capture.say("sees_host", capture.proc.sees_host)
    if flags.container:
        capture.container(flags.container)
        return
    capture.record("idle", "nothing runs")
    capture.time_questions()
    capture.time_polls("polls_idle", 8)
    for step in (capture.load, capture.fault, capture.fill):
        try:
            step()
        except Exception as error:
            capture.say(step.__name__, repr(error))


if __name__ == "__main__":
    main()
