"""What Docker and the GPU driver answer, spoilt anywhere: a fact is lost, never the look."""

import copy
import json
import math
import random
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from sentinel.adapters.nvml import Nvml
from sentinel.core.dockerspeak import container_of, event_of, summary_of
from sentinel.core.endpoint import endpoint_of, served_model_of, tensor_parallel_of
from sentinel.core.gpu import samples
from sentinel.core.gpu.mapping import given_to, used_by, wants_gpus
from sentinel.core.gpu.owner import Owner, orphaned_bytes
from tests.fakes import FakeClock
from tests.gpu.driver import Driver, error, recorded

FIXTURES = Path(__file__).parents[1] / "fixtures"
INSPECT = json.loads((FIXTURES / "nvidia-h200/inspect.json").read_text())
EVENT = {
    "status": "oom", "id": "c" * 64, "Type": "container", "Action": "oom", "time": 1893495600,
    "timeNano": 1893495600000000001, "scope": "local", "from": "vllm/vllm-openai",
    "Actor": {"ID": "c" * 64, "Attributes": {"name": "a", "exitCode": "137", "signal": "9"}},
}  # fmt: skip
ROW = {
    "Id": "c" * 64, "Names": ["/a", "/b/alias"], "Image": "vllm/vllm-openai", "Command": "vllm",
    "Labels": {"a": "b"}, "State": "running", "Status": "Up 3 minutes (healthy)",
    "Ports": [{"IP": "::", "PrivatePort": 8000, "PublicPort": 8000, "Type": "tcp"}],
}  # fmt: skip
QUESTIONS = sorted({key.split(" ")[0] for key in recorded()} | {"nvmlDeviceGetCount", "nvmlInit"})
CODES = (1, 2, 3, 4, 6, 9, 10, 12, 13, 15, 16, 17, 18, 25, 28, 999)
ODD: tuple[Any, ...] = (
    None, True, -1, 0, 137, 2**31, 2**63, 10**30, 0.5, float("nan"), "", "x", "-5", "--5", "9" * 5000,
    "²", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999999999-23:59", "GPU-", "all", "nvidia0",
    "\ud800", [], [None], [[]], {}, {"": None}, {"8000/tcp": [{}]}, {"--5/tcp": [{"HostPort": "--5"}]},
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Case:
    inspect: Any
    event: Any
    row: Any
    driver: tuple[dict[str, Any], ...]  # what it says in place of the truth, at each look


def make(dice: random.Random) -> Case:
    return Case(
        inspect=_spoilt(INSPECT, dice),
        event=_spoilt(EVENT, dice),
        row=_spoilt(ROW, dice),
        driver=tuple(
            {dice.choice(QUESTIONS): _odd_answer(dice) for _ in range(dice.randrange(8))}
            for _ in range(dice.randint(1, 3))
        ),
    )


def _spoilt(document: Any, dice: random.Random) -> Any:
    document = json.loads(json.dumps(document))
    for _ in range(dice.randrange(6)):
        place, key = dice.choice([*_places(document), (document, "Id")])
        if dice.random() < 0.2:
            place.pop(key, None) if isinstance(place, dict) else place.pop(key)
        else:
            place[key] = copy.deepcopy(dice.choice(ODD))
    return document


def _places(value: Any) -> Any:
    keys = value if isinstance(value, dict) else range(len(value))
    for key in list(keys):
        yield value, key
        if isinstance(value[key], dict | list) and value[key]:
            yield from _places(value[key])


def _odd_answer(dice: random.Random) -> Any:
    answers = (
        lambda: error(dice.choice(CODES)),
        lambda: dice.choice((OSError("ioctl"), TypeError("?"), AttributeError("?"))),
        lambda: dice.choice([odd for odd in ODD if not isinstance(odd, dict)]),  # of C: none
        lambda: [SimpleNamespace(pid=dice.choice(ODD), usedGpuMemory=dice.choice(ODD))],
        lambda: SimpleNamespace(
            used=dice.choice(ODD), total=dice.choice(ODD), gpu=dice.choice(ODD),
            busId=dice.choice(ODD), eventData=dice.choice(ODD), device=dice.choice(ODD),
        ),
        lambda: [
            SimpleNamespace(
                fieldId=dice.choice((74, 230, *ODD)), nvmlReturn=dice.choice((0, 3)),
                valueType=dice.choice((0, 3, *ODD)), value=SimpleNamespace(ullVal=dice.choice(ODD)),
            )
        ],
    )  # fmt: skip
    return dice.choice(answers)()


def check(case: Case) -> None:
    container = container_of(case.inspect)
    endpoint_of(container)
    served_model_of(container.argv)
    tensor_parallel_of(container.argv)
    wants_gpus(container)
    summary_of(case.row)
    event_of(case.event)
    clock, driver = FakeClock(), Driver(gpus=2)
    nvml = Nvml(clock, driver)
    for said in case.driver:
        driver.says = {(name, None): answer for name, answer in said.items()}
        clock.advance(seconds=31)
        host = nvml.read()
        owners = {process.pid: Owner() for gpu in host.gpus for process in gpu.processes or ()}
        given_to(container, host.gpus)
        used_by(container, host.gpus, owners)
        for gpu in host.gpus:
            held = orphaned_bytes(gpu, owners)
            assert held is None or held >= 0
            for _, _, value in samples.rows_of(gpu, {}, gpu.throttle_ns, {}, held):
                assert value is None or math.isfinite(value)
