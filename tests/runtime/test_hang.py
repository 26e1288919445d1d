"""Hangs, and what only looks like one, on virtual time: requests take as long as they take."""

from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from sentinel.core.model.intent import Mode
from sentinel.core.model.target import Completion
from sentinel.core.sockets import Sockets
from sentinel.runtime.net import NetAnswer
from sentinel.runtime.plan import TargetPlan
from tests.fakes import FakeClock, FakeDocker, ask_inline
from tests.runtime.house import Daemon, plan
from tests.runtime.world import started_by_docker

HUNG_AFTER, DEADLINE = 120, 20
NAMES = {
    "running": "num_requests_running",
    "waiting": "num_requests_waiting",
    "kv": "kv_cache_usage_perc",
    "generation": "generation_tokens_total",
    "prompt": "prompt_tokens_total",
    "iterations": "iteration_tokens_total_count",
    "success": "request_success_total",
    "preemptions": "num_preemptions_total",
}
Engines = dict[str, dict[str, float]]


def exposition(engines: Engines, *, awake: float | None = 1) -> bytes:
    lines = []
    for engine, values in engines.items():
        for what, name in NAMES.items():
            labels = f'engine="{engine}",model_name="tiny"'
            lines.append(f"vllm:{name}{{{labels}}} {values.get(what, 0)}")
        if awake is not None:
            lines.append(
                f'vllm:engine_sleep_state{{engine="{engine}",sleep_state="awake"}} {awake}'
            )
    return "\n".join(["process_start_time_seconds 1", *lines, ""]).encode()


@dataclass
class World(FakeDocker):
    """One target whose engines work, stand still, and answer or not."""

    engines: Engines = field(default_factory=lambda: {"0": {}})
    works: dict[str, tuple[str, ...]] = field(default_factory=dict)  # engine: what rises a second
    awake: float | None = 1
    shows: bool = True  # its series
    refusal: dict[str, Any] = field(default_factory=dict)  # of a completion
    silent: bool = False  # no completion comes
    asked_for: list[tuple[str, ...]] = field(default_factory=list)  # ranks, of each completion
    sockets: Sockets | None = None
    pending: list[tuple[float, Callable[[], None]]] = field(default_factory=list)

    async def complete(
        self, url: str, *, api_key: str | None, deadline: float, ranks: Sequence[str] = ()
    ) -> Completion:
        self.asked_for.append(tuple(ranks))
        at = self.clock.now()
        if self.refusal:
            return Completion(at=at, took=0.1, ok=False, **self.refusal)
        if self.silent:
            return Completion(at=at, took=deadline, ok=False, says=f"no answer in {deadline:g} s")
        for values in self.engines.values():
            values["generation"] = values.get("generation", 0) + 1
        return Completion(at=at, took=0.1, ok=True, model="tiny")

    def look(self, pid: int, container_id: str, port: int) -> Sockets | None:
        return self.sockets

    def ask(
        self,
        work: Callable[[], Coroutine[Any, Any, Any]],
        *,
        deadline: float,
        deliver: Callable[[NetAnswer[Any]], Any],
    ) -> None:
        def later(answer: NetAnswer[Any]) -> None:
            assert answer.value is not None
            due = self.clock.monotonic() + answer.value.took
            self.pending.append((due, lambda: deliver(answer)))

        ask_inline(work, deadline=deadline, deliver=later)
        self.arrive()

    def arrive(self) -> None:
        now = self.clock.monotonic()
        due = [deliver for at, deliver in self.pending if at <= now + 1]
        self.pending = [(at, deliver) for at, deliver in self.pending if at > now + 1]
        for deliver in due:
            deliver()

    def live(self) -> None:
        for engine, signs in self.works.items():
            for sign in signs:
                self.engines[engine][sign] = self.engines[engine].get(sign, 0) + 0.001
        shown = exposition(self.engines, awake=self.awake) if self.shows else b"up_to_date 1\n"
        for box in self.boxes.values():
            box.body = shown


@dataclass
class Scene:
    world: World
    house: Daemon

    def run(self, seconds: float) -> None:
        for _ in range(round(seconds)):
            self.world.clock.advance(seconds=1)
            self.world.live()
            self.world.arrive()
            self.house.turn()

    def until(self, state: str, at_most: float) -> float:
        """How many seconds it takes."""
        for passed in range(round(at_most)):
            if self.state == state:
                return passed
            self.run(1)
        raise AssertionError(f"{self.state}: {self.because}")

    @property
    def state(self) -> str:
        return self.house.state("t1-a")

    @property
    def because(self) -> str:
        return str(self.house.target("t1-a")["because"])

    @property
    def alerts(self) -> set[str]:
        assert self.house.shown is not None
        return {
            str(alert["alertname"])
            for alert in self.house.shown.status["alerts"]
            if alert["state"] == "firing"
        }

    @property
    def problems(self) -> list[str]:
        assert self.house.shown is not None
        return [str(one) for one in self.house.shown.status["problems"] if "token" in str(one)]

    def sample(self, name: str) -> list[float]:
        return [value for series, _, value in self.house.samples if series == name]

    def witnesses(self) -> Mapping[str, str]:
        assert self.house.shown is not None
        found = self.house.shown.as_explanation("t1-a", self.world.clock.now())
        assert found is not None
        assert all(one["age_seconds"] is not None for one in found["witnesses"])
        return {one["name"]: one["says"] for one in found["witnesses"]}


@pytest.fixture
def scenes(tmp_path: Path) -> Iterator[Callable[..., Scene]]:
    made: list[Daemon] = []

    def make(
        *,
        mode: Mode = Mode.ACT,
        probe: str = "suspicion",
        argv: tuple[str, ...] = (),
        **facts: Any,
    ) -> Scene:
        world = World(clock=FakeClock(), **facts)
        box = world.add("t1-a")
        box.seen = replace(box.seen, argv=(*box.seen.argv, *argv))
        world.live()
        about = TargetPlan(mode=mode, probe_when=probe)
        house = Daemon(
            folder=tmp_path,
            docker=world,
            clock=world.clock,
            plan=replace(plan(), target=lambda _name: about),
            world={"ask": world.ask, "connections": world},
        )
        made.append(house)
        scene = Scene(world, house)
        scene.run(5)
        return scene

    yield make
    for house in made:
        house.memory.close()


def busy(**more: float) -> dict[str, float]:
    return {"running": 8, "waiting": 3, "kv": 0.4, **more}


# hangs


def test_a_hang_is_alerted_in_time(scenes: Callable[..., Scene]) -> None:
    scene = scenes(
        mode=Mode.WATCH, engines={"0": busy()}, works={"0": ("generation", "iterations")}
    )
    scene.run(60)
    assert scene.state == "serving"
    assert scene.world.asked_for == []

    scene.world.works, scene.world.silent = {}, True
    took = scene.until("hung", 300)

    assert HUNG_AFTER <= took <= HUNG_AFTER + 15
    assert "VllmEngineHung" in scene.alerts
    assert "8 running and 3 waiting, and a one-token request failed" in scene.because
    assert len(scene.world.asked_for) == 1


def test_a_hang_is_put_right_by_one_restart(scenes: Callable[..., Scene]) -> None:
    scene = scenes(engines={"0": busy()}, silent=True)
    scene.run(HUNG_AFTER + 15)
    scene.world.silent, scene.world.engines = False, {"0": {}}

    scene.run(60)

    assert scene.world.done == ["stop t1-a", "start t1-a"]
    assert scene.state == "idle"
    last = scene.house.target("t1-a")["last_action"]
    assert last["outcome"] == "verified"


def test_a_hang_of_whatever_else_answers_there_is_no_reason_to_act(
    scenes: Callable[..., Scene],
) -> None:
    scene = scenes(
        engines={"0": {"running": 3}}, silent=True, argv=("--served-model-name", "large")
    )
    scene.run(400)

    assert scene.state == "hung"
    assert "VllmWrongModel" in scene.alerts
    assert scene.world.done == []
    held = scene.house.target("t1-a")["held"]
    assert [each["guard"] for each in held][:1] == ["unconfirmed"]


def test_one_hung_engine_of_several_is_a_hang(scenes: Callable[..., Scene]) -> None:
    both = {"0": busy(), "1": busy()}
    scene = scenes(
        mode=Mode.WATCH, engines=both, works={"0": ("generation",), "1": ("generation",)}
    )
    scene.run(60)

    scene.world.works, scene.world.silent = {"0": ("generation",)}, True
    took = scene.until("hung", 300)

    assert HUNG_AFTER <= took <= HUNG_AFTER + 15
    assert "in engine 1" in scene.because
    assert scene.world.asked_for[0] == ("0", "1")
    assert "progress of engine 1" in scene.witnesses()


def test_an_engine_that_hangs_while_idle_is_found_by_who_waits_for_it(
    scenes: Callable[..., Scene],
) -> None:
    scene = scenes(mode=Mode.WATCH, silent=True, sockets=Sockets(listening=True))
    scene.run(300)
    assert scene.state == "idle"
    assert scene.world.asked_for == []

    scene.world.sockets = Sockets(listening=True, ends=frozenset({"a", "b"}))
    took = scene.until("hung", 300)

    assert HUNG_AFTER <= took <= HUNG_AFTER + 15
    assert "2 clients connected whose work nothing counts" in scene.because
    assert "2 clients connected" in scene.witnesses()["connections"]


def test_without_anybody_who_waits_there_is_no_claim(scenes: Callable[..., Scene]) -> None:
    scene = scenes(silent=True)

    scene.run(600)

    assert (scene.state, scene.world.asked_for, scene.world.done) == ("idle", [], [])


# no hangs


@pytest.mark.parametrize(
    ("values", "works"),
    [
        pytest.param({"running": 1}, ("kv",), id="a lone long prefill"),
        pytest.param({"running": 5, "waiting": 30, "kv": 1.0}, ("generation",), id="saturation"),
        pytest.param({"running": 5, "kv": 1.0}, ("preemptions",), id="nothing but preemptions"),
        pytest.param({"running": 2}, ("prompt", "success"), id="a model that only embeds"),
        pytest.param(
            {"running": 2}, ("prompt", "success", "iterations"), id="an engine that only prefills"
        ),
    ],
)
def test_whoever_moves_is_not_even_asked(
    scenes: Callable[..., Scene], values: dict[str, float], works: tuple[str, ...]
) -> None:
    scene = scenes(engines={"0": values}, works={"0": works}, silent=True)

    scene.run(400)

    assert scene.world.asked_for == []
    assert scene.state in ("serving", "saturated")
    assert scene.sample("sentinel_target_decode_stalled") == [0.0]
    assert scene.world.done == []


def test_stale_gauges_are_found_out_by_a_token(scenes: Callable[..., Scene]) -> None:
    scene = scenes(engines={"0": busy()})

    scene.run(500)

    assert scene.state == "serving"
    assert 3 <= len(scene.world.asked_for) <= 5
    assert scene.world.done == []


def test_the_first_minutes_are_given_longer(scenes: Callable[..., Scene]) -> None:
    scene = scenes(mode=Mode.WATCH, engines={"0": busy()}, silent=True)
    scene.world.die("t1-a")
    started_by_docker(scene.world, "t1-a")
    scene.run(1)
    assert scene.state == "starting"
    scene.until("serving", 60)

    assert 299 <= scene.until("hung", 400) <= 315


@pytest.mark.parametrize("probe", ["suspicion", "always"])
def test_a_sleeping_engine_is_never_asked(scenes: Callable[..., Scene], probe: str) -> None:
    scene = scenes(probe=probe, engines={"0": busy()}, awake=0, silent=True)

    scene.run(400)

    assert (scene.state, scene.world.asked_for) == ("sleeping", [])


def test_one_that_may_sleep_unseen_is_never_asked(scenes: Callable[..., Scene]) -> None:
    scene = scenes(
        probe="always",
        argv=("--enable-sleep-mode",),
        engines={"0": busy()},
        awake=None,
        silent=True,
    )

    scene.run(400)

    assert (scene.state, scene.world.asked_for) == ("serving", [])


def test_always_asks_the_idle_alone(scenes: Callable[..., Scene]) -> None:
    scene = scenes(probe="always", engines={"0": busy()}, works={"0": ("generation",)})
    scene.run(200)
    assert scene.world.asked_for == []

    scene.world.works = {}
    scene.run(200)
    assert 2 <= len(scene.world.asked_for) <= 4


def test_our_own_request_is_nobodys_work(scenes: Callable[..., Scene]) -> None:
    scene = scenes(probe="always")
    scene.run(60)
    scene.world.silent, scene.world.engines["0"]["running"] = True, 1.0  # it took ours, and froze
    scene.house.loop.parts.watch.targets["t1-a"].probing = 1
    scene.run(400)

    assert scene.state == "idle"
    assert scene.world.done == []


# what a refused request means


NO_KEY = {"unauthorised": True, "says": "HTTP 401"}
NO_API = {"unsupported": True, "says": "HTTP 404"}


def test_a_missing_key_is_a_problem_and_no_hang(scenes: Callable[..., Scene]) -> None:
    scene = scenes(engines={"0": busy()}, refusal=NO_KEY)

    scene.run(400)

    assert scene.state == "serving"
    assert len(scene.problems) == 1
    assert "t1-a" in scene.problems[0]
    assert "VllmProbeFailing" not in scene.alerts
    scene.world.refusal = {}
    scene.run(61)
    assert scene.problems == []


@pytest.mark.parametrize(
    ("facts", "because"),
    [
        pytest.param({"refusal": NO_KEY}, "HTTP 401", id="no key"),
        pytest.param({"refusal": NO_API}, "HTTP 404", id="no API"),
        pytest.param({"probe": "never"}, "never", id="not to be asked"),
    ],
)
def test_a_restart_is_proved_without_a_token_where_none_can_be_had(
    scenes: Callable[..., Scene], facts: dict[str, Any], because: str
) -> None:
    scene = scenes(**facts)
    scene.world.die("t1-a")

    scene.run(60)

    last = scene.house.target("t1-a")["last_action"]
    assert last["outcome"] == "verified"
    assert because in last["because"]
    assert scene.state == "idle"
    assert scene.alerts == set()


def test_a_restart_without_any_answer_is_not_proved(scenes: Callable[..., Scene]) -> None:
    scene = scenes(silent=True)
    scene.world.die("t1-a")

    scene.run(60)

    assert scene.house.target("t1-a")["last_action"]["outcome"] is None


# what a server does not show


def test_no_health_path_is_no_obstacle(scenes: Callable[..., Scene]) -> None:
    scene = scenes()
    scene.world.boxes["t1-a"].health = 404
    scene.world.die("t1-a")

    scene.run(60)

    assert scene.state == "idle"
    assert scene.house.target("t1-a")["last_action"]["outcome"] == "verified"


def test_without_series_a_token_tells_each_minute(scenes: Callable[..., Scene]) -> None:
    scene = scenes(shows=False)

    scene.run(300)

    assert scene.state == "serving"
    assert "shows no metrics of its work" in scene.because
    assert 4 <= len(scene.world.asked_for) <= 6
    assert "VllmDown" not in scene.alerts


def test_prompts_that_go_in_and_nothing_that_comes_out(scenes: Callable[..., Scene]) -> None:
    scene = scenes(engines={"0": busy()}, works={"0": ("prompt", "generation")})
    scene.run(60)
    assert scene.sample("sentinel_target_decode_stalled") == [0.0]

    scene.world.works = {"0": ("prompt",)}
    scene.run(100)

    assert scene.sample("sentinel_target_decode_stalled") == [1.0]
    assert "VllmDecodeStalled" in scene.alerts
    assert "decoding stands still" in scene.witnesses()["progress"]


def test_a_producer_of_prefills_decodes_nothing_by_design(scenes: Callable[..., Scene]) -> None:
    transfer = '{"kv_connector":"NixlConnector","kv_role":"kv_producer"}'
    scene = scenes(
        argv=("--kv-transfer-config", transfer), engines={"0": busy()}, works={"0": ("prompt",)}
    )

    scene.run(200)

    assert scene.sample("sentinel_target_decode_stalled") == [0.0]


@pytest.mark.parametrize(
    ("argv", "published"),
    [
        pytest.param(("--max-num-seqs", "64"), [64.0], id="said"),
        pytest.param(("--max_num_seqs=8", "--max-num-seqs=64"), [64.0], id="the last one wins"),
        pytest.param((), [], id="not said"),
    ],
)
def test_the_limit_is_published_where_it_is_known(
    scenes: Callable[..., Scene], argv: tuple[str, ...], published: list[float]
) -> None:
    assert scenes(argv=argv).sample("sentinel_target_max_num_seqs") == published


# a closed door


def close_the_door(scene: Scene) -> None:
    """It runs, and refuses connections."""
    box = scene.world.boxes["t1-a"]
    box.loads_for, box.started_tick = 20, scene.world.clock.monotonic() + 10_000


@pytest.mark.parametrize(
    ("sockets", "state", "done"),
    [
        pytest.param(None, "unknown", [], id="nobody can look inside"),
        pytest.param(Sockets(listening=True), "unknown", [], id="it listens: the way is broken"),
        pytest.param(
            Sockets(), "starting", ["stop t1-a", "start t1-a"], id="nothing listens: restarted"
        ),
    ],
)
def test_a_refused_connection_is_the_targets_fault_only_if_seen_from_inside(
    scenes: Callable[..., Scene], sockets: Sockets | None, state: str, done: list[str]
) -> None:
    scene = scenes(sockets=Sockets(listening=True))
    close_the_door(scene)
    scene.world.sockets = sockets

    scene.run(60)

    if not done:
        assert (scene.state, scene.world.done) == (state, [])
        assert "VllmDown" in scene.alerts
    assert scene.world.done == done


def test_one_that_a_person_is_stopping_is_left_alone(scenes: Callable[..., Scene]) -> None:
    scene = scenes(sockets=Sockets(listening=True))
    scene.world._say("kill", scene.world.boxes["t1-a"], signal="15")
    close_the_door(scene)
    scene.world.sockets = Sockets()

    scene.run(120)

    assert (scene.state, scene.world.done) == ("stopping", [])


def test_a_long_wait_for_the_deadline_is_no_longer_than_promised() -> None:
    assert timedelta(seconds=DEADLINE) == TargetPlan().probe_deadline
    assert timedelta(seconds=HUNG_AFTER) == TargetPlan().patience.hung_after
