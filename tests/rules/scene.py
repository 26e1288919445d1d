"""A whole daemon in virtual time, over a host on which things can go wrong, and what it said."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from sentinel.config.rulefile import load_rule_files
from sentinel.core.alerting.evaluate import Evaluator
from sentinel.core.gpu.owner import Owner
from sentinel.core.gpu.reading import HostGpus
from sentinel.core.model.intent import Mode
from sentinel.core.model.moment import millis
from sentinel.core.model.series import Store
from sentinel.runtime.configure import shipped_rules
from sentinel.runtime.hostwatch import Surroundings
from sentinel.runtime.judge import WrittenSample
from sentinel.runtime.plan import TargetPlan
from tests.core.gpu.gpus import gpu, host
from tests.fakes import FakeClock, FakeDocker, InlineLane
from tests.rules.virtual_vllm import ILL_AFTER, SCRAPED_EVERY, Load, scrapes_of
from tests.runtime.house import Daemon, plan
from tests.runtime.test_host_in_the_loop import Host, Kernel

GROUPS = tuple(load_rule_files(shipped_rules()))
NAMES = ["t1-a", "t1-b", "t1-c"]


class Cards:
    """The GPUs of the host, its processes and its driver."""

    sees_host = True

    def __init__(self) -> None:
        self.host = host(gpu(0, utilization=0.9, ecc_volatile=0, remap_pending=False))
        self.owners: dict[int, Owner] = {}
        self.rules: str | None = None

    def be(self, **facts: Any) -> None:
        self.host = replace(self.host, gpus=(replace(self.host.gpus[0], **facts),))

    def read(self) -> HostGpus:
        seen, self.host = self.host, replace(self.host, xids=())  # an Xid is told once
        return seen

    def owner(self, pid: int) -> Owner:
        return self.owners.get(pid, Owner())

    def device_rules(self, _pid: int) -> str | None:
        return self.rules


class Stuck(InlineLane):
    """A lane from which a call does not return once the driver hangs."""

    hangs = False

    def submit(self, call: Any, **named: Any) -> int:
        if self.hangs:
            self.busy_since = named["now"]
            return 1
        return super().submit(call, **named)

    def overdue(self, now: float) -> bool:
        return self.busy_since is not None and now - self.busy_since >= 15


@dataclass
class Scene:
    """A host with three targets in one pool, and what was said about it."""

    folder: Path
    mode: Mode = Mode.WATCH
    step: float = SCRAPED_EVERY
    said: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.docker = FakeDocker(FakeClock())
        for name in NAMES:
            box = self.docker.add(name)
            box.seen = replace(box.seen, devices=("gpu=0",))
        self.cards, self.nvml, self.host = Cards(), Stuck("nvml"), Host(self.docker)
        self.house = Daemon(
            folder=self.folder,
            docker=self.docker,
            clock=self.docker.clock,
            plan=replace(
                plan(self.mode),
                rules=GROUPS,
                pool_of=lambda _name: "chat",
                target=lambda _name: TargetPlan(mode=self.mode, probe_when="always"),
                scrape_interval=timedelta(seconds=self.step),
                evaluation_interval=timedelta(seconds=self.step),
                cooldown=timedelta(minutes=1),
            ),
            world={
                "gpu_eyes": self.cards,
                "processes": self.cards,
                "around": Surroundings(eyes=self.host, kernel=Kernel(self.host)),
                "lane": self._lane,
            },
        )
        self.pass_time(60)

    def _lane(self, name: str) -> InlineLane:
        return self.nvml if name == "nvml" else InlineLane(name)

    def pass_time(self, seconds: float, *, step: float | None = None) -> None:
        for _ in range(round(seconds / (step or self.step))):
            self.house.run(step or self.step, step=step or self.step)
            assert self.house.shown is not None
            self.said |= {
                _named(alert["labels"])
                for alert in self.house.shown.status["alerts"]
                if alert["state"] == "firing"
            }

    def serve(self, loads: Mapping[str, Load]) -> None:
        """Let each of these targets be asked for what its load says."""
        bodies = {name: scrapes_of(load) for name, load in loads.items()}
        for slot in range(len(bodies["t1-a"])):
            for name, load in loads.items():
                box = self.docker.boxes[name]
                box.body = bodies[name][slot].encode()
                box.answers = not (load.hangs and slot * SCRAPED_EVERY >= ILL_AFTER)
            self.pass_time(SCRAPED_EVERY)

    def feed(self, samples: Sequence[WrittenSample], *, seconds: float) -> None:
        """Let the rules alone read these series, which stay as they are."""
        store, now = Store(), self.docker.clock.now()
        source, evaluator = store.source("fed", {}), Evaluator(GROUPS, store)
        for _ in range(round(seconds / self.step)):
            now += timedelta(seconds=self.step)
            source.put(samples, millis(now))
            evaluator.evaluate(now)
            self.said |= {_named(a.labels) for a in evaluator.active if a.state == "firing"}


def _named(labels: Mapping[str, str]) -> str:
    return ":".join(filter(None, (labels["alertname"], labels.get("kind"))))
