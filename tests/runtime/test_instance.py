"""`instance` is where a target answers now, also after Docker gave it another port."""

from dataclasses import replace

from sentinel.core.model.container import PublishedPort
from sentinel.core.model.labels import value_of
from sentinel.core.model.moment import millis
from sentinel.core.promql import Sample, compile_expression
from tests.fakes import FakeDocker
from tests.runtime.house import Daemon

RUNNING = compile_expression("vllm:num_requests_running")


def instances(house: Daemon) -> list[str]:
    found = RUNNING.at(house.loop.parts.store, millis(house.clock.now()))
    assert isinstance(found, list)
    return [value_of(sample.labels, "instance") for sample in found if isinstance(sample, Sample)]


def test_another_port_is_another_instance_and_the_old_one_ends(
    house: Daemon, docker: FakeDocker
) -> None:
    assert instances(house) == ["127.0.0.1:8000"]

    docker.die("t1-a")
    moved = PublishedPort(container_port=8000, host_ip="127.0.0.1", host_port=8765)
    docker.boxes["t1-a"].seen = replace(docker.boxes["t1-a"].seen, ports=(moved,))
    house.run(60)

    assert house.state("t1-a") == "idle"
    assert instances(house) == ["127.0.0.1:8765"]
