"""What the daemon knows itself, beside what the sources say; and what may replace what."""

from typing import Any

import pytest

from sentinel.core.diagnosis.cause import CAUSES
from sentinel.core.diagnosis.diagnose import Diagnosis, Material
from sentinel.core.diagnosis.endings import Inference
from sentinel.core.diagnosis.reader import LogReader
from sentinel.core.diagnosis.traces import Launch
from sentinel.core.diagnosis.weigh import depth, of_ended, of_running, outweighs
from sentinel.core.model.container import Container, Status
from sentinel.core.model.launch import EndedAs, Ending
from tests.fakes import FIXTURES

CPU = FIXTURES / "vllm-0.32.0-cpu"
DIED = (CPU / "log_0.32_enginecore_sigkill_rc0.txt").read_bytes()
STOPPED = (CPU / "log_0.32_sigterm_drain30_rc0.txt").read_bytes()
CUDA = (FIXTURES / "vllm-0.22.1-h200" / "log_gpu_runtime_oom.txt").read_bytes()


def read(log: bytes | None) -> Launch | None:
    if log is None:
        return None
    reader = LogReader()
    reader.feed(log)
    reader.close()
    return reader.launch


def container(**facts: Any) -> Container:
    shown = {"status": Status.EXITED, "exit_code": 0, **facts}
    return Container(id="c", name="a", image="i", image_id="x", argv=(), **shown)


def ended(kind: EndedAs, cause: str, log: bytes | None, **facts: Any) -> Diagnosis:
    box = container(**facts)
    ending = Ending(kind=kind, because="as it was seen", cause=cause, at=None, exit_code=0)
    given = Material(launch=read(log), exit_code=box.exit_code, container=box)
    return of_ended(given, ending, box)


def running(known: list[Inference], log: bytes | None = None, **facts: Any) -> Diagnosis:
    box = container(status=Status.RUNNING, exit_code=None, **facts)
    return of_running(Material(launch=read(log), container=box), known, box)


@pytest.mark.parametrize(
    ("found", "cause"),
    [
        pytest.param(ended(EndedAs.CRASH, "engine_died", DIED), "engine_died", id="both agree"),
        pytest.param(
            ended(EndedAs.CRASH, "engine_died", CUDA), "cuda_oom_runtime", id="the log knows more"
        ),
        pytest.param(ended(EndedAs.OOM, "cgroup_oom", DIED), "cgroup_oom", id="an OOM lies deeper"),
        pytest.param(
            ended(EndedAs.OOM, "host_oom", CUDA), "cuda_oom_runtime", id="two roots: the surer"
        ),
        pytest.param(
            ended(EndedAs.CRASH, "engine_died", STOPPED),
            "engine_died",
            id="nobody stopped it, whatever the log says",
        ),
        pytest.param(
            ended(EndedAs.CRASH, "sigkill_unknown", None, exit_code=137),
            "sigkill_unknown",
            id="137 without a witness",
        ),
        pytest.param(
            ended(
                EndedAs.CRASH, "engine_died", None, exit_code=1, error="port is already allocated"
            ),
            "port_in_use",
            id="Docker's own error",
        ),
        pytest.param(
            ended(EndedAs.UNWITNESSED, "external_stop", None, exit_code=143),
            "external_stop",
            id="told by a signal",
        ),
        pytest.param(running([]), "unknown", id="nothing is known"),
        pytest.param(
            running([Inference("engine_hung", 0.9, "metrics", "no progress")]),
            "engine_hung",
            id="hung",
        ),
        pytest.param(
            running(
                [
                    Inference("saturated", 0.8, "metrics", "full"),
                    Inference("preemption_storm", 0.85, "metrics", "storm"),
                ]
            ),
            "preemption_storm",
            id="the surer of two loads",
        ),
        pytest.param(
            running([Inference("cgroup_oom", 0.9, "inspect", "Docker said so")], DIED),
            "cgroup_oom",
            id="a process was killed, and the server lives",
        ),
        pytest.param(
            running([Inference("saturated", 0.8, "metrics", "full")], DIED),
            "engine_died",
            id="a dead engine is no load",
        ),
    ],
)
def test_the_deepest_cause_is_named(found: Diagnosis, cause: str) -> None:
    assert found.cause == cause
    assert found.says == CAUSES[cause].says
    assert found.advice


def test_what_was_seen_is_in_the_evidence_whoever_named_the_cause() -> None:
    told = ended(EndedAs.CRASH, "engine_died", CUDA).evidence

    assert ("inspect", "as it was seen") in [(one.source, one.text) for one in told]
    assert any(one.source == "log" and "Tried to allocate" in one.text for one in told)


def test_the_limit_is_known_to_the_advice() -> None:
    told = ended(EndedAs.OOM, "cgroup_oom", None, memory_limit=8 << 30)

    assert "8.0 GiB" in told.advice


@pytest.mark.parametrize(
    ("new", "old", "later", "wins"),
    [
        pytest.param(("engine_died", 0.5), {}, False, True, id="anything before nothing"),
        pytest.param(("engine_died", 0.9), ("engine_died", 0.5), False, True, id="surer"),
        pytest.param(("engine_died", 0.5), ("engine_died", 0.5), False, False, id="the same"),
        pytest.param(("engine_died", 0.5), ("worker_died", 0.9), False, False, id="less sure"),
        pytest.param(("host_oom", 0.85), ("engine_died", 0.92), False, True, id="deeper"),
        pytest.param(("saturated", 0.9), ("engine_hung", 0.6), False, False, id="less deep"),
        pytest.param(
            ("engine_died", 0.5), ("saturated", 0.9), False, True, id="a death, after a load"
        ),
        pytest.param(
            ("gpu_memory_taken", 0.98), ("cuda_oom_runtime", 0.98), True, True, id="the next launch"
        ),
        pytest.param(
            ("engine_died", 0.5), ("engine_died", 0.9), True, False, id="the next launch, guessed"
        ),
    ],
)
def test_only_what_outweighs_it_replaces_what_was_said(
    new: tuple[str, float], old: tuple[str, float] | dict[str, Any], later: bool, wins: bool
) -> None:
    found = Diagnosis(
        cause=new[0], confidence=new[1], says="", evidence=(), advice="", shared_advice=""
    )
    before = dict(zip(("cause", "confidence"), old, strict=True)) if old else {}

    assert outweighs(found, before, of_a_later_launch=later) is wins


def test_every_cause_has_a_depth() -> None:
    assert {depth(cause) for cause in CAUSES} == {0, 1, 2, 3, 4}
    assert depth("") == 0
