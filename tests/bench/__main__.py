"""Measures Sentinel as whole processes, and writes docs/figures.md and tests/bench/figures.json.

Nothing here is a test: figures depend on the machine, and a test that is timed is one that lies.
"""

import argparse
import json
import os
import platform
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml

import sentinel
from deploy.testbed import Box, Testbed, wait_until
from tests.bench import engine, inside, latency, logs, prometheus, table
from tests.bench.process import cost_over
from tests.bench.setup import REPOSITORY, Setup
from tests.blackbox import Daemon, Hook

LOAD = {"SIM_START_SECONDS": "1", "SIM_LOAD": "0.5", "SIM_TEARDOWN_SECONDS": "0.2"}


def main() -> None:
    wanted = _arguments()
    with tempfile.TemporaryDirectory(prefix="sentinel-bench-") as folder, _bed() as bed:
        versions = _versions(bed)
        print("the hot paths", flush=True)
        figures = {
            "targets": wanted.targets,
            "versions": versions,
            "warm_up_seconds": wanted.warm_up,
            "measured_seconds": wanted.seconds,
            "inside": inside.measure().as_json(),
            "engine": engine.measure(),
            "logs": logs.measure(),
        }
        boxes = [bed.run_simulated(f"t{n}", env=LOAD) for n in range(wanted.targets)]
        for box in boxes:
            box.wait_ready()
        figures["runs"] = [
            _run(Path(folder), interval, boxes, bed.prefix, wanted) for interval in wanted.intervals
        ]
    if wanted.write:
        text = json.dumps(figures, indent=2) + "\n"
        (REPOSITORY / "tests/bench/figures.json").write_text(text)
        (REPOSITORY / "docs/figures.md").write_text(table.page(figures))
    print(table.page(figures))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("--targets", type=int, default=8)
    parser.add_argument("--intervals", type=int, nargs="+", default=[5, 1], metavar="SECONDS")
    parser.add_argument("--warm-up", type=float, default=30, metavar="SECONDS")
    parser.add_argument("--seconds", type=float, default=60, help="for how long cost is measured")
    parser.add_argument("--tries", type=int, default=10, help="faults of each kind")
    parser.add_argument("--no-write", dest="write", action="store_false")
    return parser.parse_args()


@contextmanager
def _bed() -> Iterator[Testbed]:
    bed = Testbed(run=f"bench-{os.getpid()}")
    try:
        yield bed
    finally:
        bed.clean()
        bed.client.close()


def _run(
    folder: Path, interval: int, boxes: Sequence[Box], prefix: str, wanted: argparse.Namespace
) -> dict[str, Any]:
    print(f"scraping every {interval} s", flush=True)
    place = folder / str(interval)
    place.mkdir()
    setup = Setup(place, interval)
    with ExitStack() as stack:
        hooks = {"sentinel": stack.enter_context(closing(Hook()))}
        pids = {"sentinel": _start_sentinel(stack, setup, prefix, hooks["sentinel"], len(boxes))}
        if prometheus.is_installed():
            hook = hooks["prometheus"] = stack.enter_context(closing(Hook()))
            rival = prometheus.Prometheus(place, setup, boxes, hook.url)
            pids["prometheus"] = stack.enter_context(closing(rival)).pids
        time.sleep(wanted.warm_up)
        costs = cost_over(wanted.seconds, *pids.values())
        figures = {name: cost.as_json() for name, cost in zip(pids, costs, strict=True)}
        print("  at rest:", figures, flush=True)
        return {"interval": interval, **figures, **_latencies(boxes, hooks, interval, wanted.tries)}


def _start_sentinel(
    stack: ExitStack, setup: Setup, prefix: str, hook: Hook, count: int
) -> list[int]:
    daemon = Daemon(setup.folder, prefix=prefix, hook=hook.url)
    daemon.config.write_text(yaml.safe_dump(setup.sentinel(prefix, hook.url)))
    stack.enter_context(closing(daemon.start()))
    up = {"idle", "serving", "saturated"}

    def all_up() -> bool:
        states = [target["state"] for target in daemon.ask("status").get("targets", [])]
        return len(states) == count and set(states) <= up

    wait_until(all_up, 60, f"all targets to serve:\n{daemon.tail()}")
    assert daemon.process is not None
    return [daemon.process.pid]


def _latencies(
    boxes: Sequence[Box], hooks: Mapping[str, Hook], interval: int, tries: int
) -> dict[str, Any]:
    found: dict[str, Any] = {}

    def say(name: str, spreads: Mapping[str, latency.Spread]) -> None:
        found[name] = {side: spread.as_json() for side, spread in spreads.items()}
        print(f"  {name}:", found[name], flush=True)

    say("metric", latency.of_metrics(boxes, hooks, tries, interval))
    straggler, *others = boxes
    straggler.fault("slow_metrics=5")
    say("metric_straggler", latency.of_metrics(others, hooks, tries, interval))
    straggler.fault("ok")
    time.sleep(3 * interval)
    say("death", latency.of_deaths(boxes, hooks, tries, interval))
    return found


def _versions(bed: Testbed) -> dict[str, Any]:
    names = prometheus.versions() if prometheus.is_installed() else {}
    return {
        "at": f"{datetime.now(UTC):%Y-%m-%d}",
        "sentinel": sentinel.__version__,
        "python": platform.python_version(),
        "docker": bed.client.version()["Version"],
        "linux": platform.release(),
        "cores": os.cpu_count(),
        "processor": _processor(),
        "load": round(os.getloadavg()[0], 1),
        "prometheus": names.get("prometheus", "(not installed)"),
        "alertmanager": names.get("prometheus-alertmanager", "(not installed)"),
    }


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


if __name__ == "__main__":
    main()
