"""`for` over a kill of the daemon: time that nobody observed does not count."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from sentinel.config.rulefile import load_rule_files
from tests.fakes import IDLE, FakeClock, FakeDocker
from tests.runtime.house import Daemon, plan

RULE = """
groups:
  - name: mine
    rules:
      - alert: KVCacheHalfFull
        expr: max by (target) (vllm:kv_cache_usage_perc) > 0.5
        for: 5m
        labels: {severity: warning}
"""
FULL = IDLE.replace(
    b'vllm:kv_cache_usage_perc{engine="0",model_name="tiny"} 0.0',
    b'vllm:kv_cache_usage_perc{engine="0",model_name="tiny"} 0.7',
)


def test_killed_after_three_minutes_of_five_it_fires_six_after_it_first_became_true(
    tmp_path: Path,
) -> None:
    assert FULL != IDLE
    file = tmp_path / "mine.yaml"
    file.write_text(RULE)
    docker = FakeDocker(FakeClock())
    docker.add("t1-a")
    mine = replace(plan(), rules=load_rule_files([file]))
    house = Daemon(folder=tmp_path, docker=docker, clock=docker.clock, plan=mine)
    house.run(30)
    docker.boxes["t1-a"].body = FULL
    first_true = docker.clock.now() + timedelta(seconds=1)

    house.run(180)
    docker.clock.advance(seconds=60)  # killed, and nobody watches
    house.again()
    fired_after = None
    for _ in range(240):
        house.run(1)
        if fired_after is None and house.receiver.took:
            fired_after = docker.clock.now() - first_true

    assert fired_after is not None
    assert timedelta(minutes=6) <= fired_after <= timedelta(minutes=6, seconds=3)
