"""The simulated vLLM is held against what a real one left behind: its metrics, log and exits."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Protocol

import pytest
from prometheus_client.parser import text_string_to_metric_families

from deploy.testbed import Box, free_port, wait_until
from tests.docker.engine import VllmBox

ROOT = Path(__file__).parents[2]
REAL = ROOT / "tests/fixtures/vllm-0.32.0-cpu"
PROGRAM = ROOT / "deploy/simulated_vllm.py"
STAMP = re.compile(r"\d\d-\d\d \d\d:\d\d:\d\d|pid=\d+|pid \d+|\[\d+\]|/\S*-packages")


class Running:
    """The program as a process of this host: quicker than a container, and as good for most."""

    def __init__(self, args: Sequence[str], env: Mapping[str, str]) -> None:
        self.port = free_port()
        quick = {
            "SIM_START_SECONDS": "0.2",
            "SIM_TEARDOWN_SECONDS": "0",
            "PATH": os.environ["PATH"],
        }
        self.process = subprocess.Popen(
            [sys.executable, PROGRAM, "serve", "/models/tiny", f"--port={self.port}", *args],
            env={**quick, **env},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self._log: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        self._log.extend(iter(self.process.stdout.readline, ""))

    @property
    def box(self) -> Box:
        return Box(None, self.port)  # type: ignore[arg-type]  # only its HTTP side is used

    @property
    def engines(self) -> list[int]:
        file = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        return [int(word) for word in file.read_text().split()]

    @property
    def engine_pid(self) -> int:
        (only,) = self.engines
        return only

    def end(self) -> None:
        if self.process.poll() is None:
            engines = self.engines
            self.process.kill()
            self.process.wait(5)
            for pid in engines:
                os.kill(pid, signal.SIGCONT)
        self._reader.join(5)
        assert self.process.stdout is not None
        self.process.stdout.close()

    @property
    def log(self) -> str:
        return "".join(self._log)

    def ready(self) -> "Running":
        wait_until(lambda: self.box.get("/health")[0] == 200, 20, self.log)
        return self

    def exit_code(self, seconds: float = 15) -> int:
        code = self.process.wait(seconds)
        self._reader.join(5)
        return code

    def metric(self, line: str) -> float:
        text = self.box.get("/metrics")[1]
        found = re.search(rf"^{re.escape(line)}(?:{{[^}}]*}})? (\S+)$", text, re.MULTILINE)
        assert found, line
        return float(found[1])

    def in_background(self, count: int, tokens: int, seconds: float = 30) -> list[threading.Thread]:
        self.answers: list[tuple[int, str]] = []
        work = lambda: self.answers.append(self.box.complete(tokens=tokens, seconds=seconds))  # noqa: E731
        threads = [threading.Thread(target=work) for _ in range(count)]
        for thread in threads:
            thread.start()
        wait_until(lambda: self.metric("vllm:num_requests_running") >= count, 10)
        return threads


@pytest.fixture
def started() -> Iterator[list[Running]]:
    made: list[Running] = []
    yield made
    for each in made:
        each.end()


class Start(Protocol):
    def __call__(self, *args: str, **env: str) -> Running: ...


@pytest.fixture
def run(started: list[Running]) -> Start:
    def start(*args: str, **env: str) -> Running:
        started.append(Running(args, env))
        return started[-1]

    return start


def shape(text: str) -> dict[str, tuple[str, str, frozenset[tuple[str, ...]]]]:
    """Of every family: its type, its help, and which label names its samples have."""
    return {
        family.name: (
            family.type,
            family.documentation,
            frozenset((s.name, *sorted(s.labels)) for s in family.samples),
        )
        for family in text_string_to_metric_families(text)
    }


# --- metrics


@pytest.mark.parametrize(
    ("recording", "requests"), [("idle_fresh", 0), ("after_40_requests", 2)], ids=["idle", "used"]
)
def test_metrics_have_the_real_names_types_help_and_labels(
    run: Start, recording: str, requests: int
) -> None:
    server = run("--served-model-name", "tiny").ready()
    for _ in range(requests):
        assert server.box.complete(tokens=3)[0] == 200

    ours = shape(server.box.get("/metrics")[1])
    real = shape((REAL / f"metrics_0.32_{recording}.txt").read_text())

    assert ours == real


def test_metrics_have_the_real_series_in_the_real_order(run: Start) -> None:
    server = run("--served-model-name", "tiny").ready()
    real = (REAL / "metrics_0.32_idle_fresh.txt").read_text()

    def names(text: str) -> list[str]:
        return [line.rpartition(" ")[0] for line in text.splitlines()]

    assert names(server.box.get("/metrics")[1]) == names(real)


def test_metrics_are_served_with_the_real_content_type(run: Start) -> None:
    server = run().ready()
    with urllib.request.urlopen(f"{server.box.url}/metrics") as answer:
        assert answer.headers["content-type"] == "text/plain; version=1.0.0; charset=utf-8"


def test_counters_and_histograms_follow_the_requests(run: Start) -> None:
    server = run().ready()
    for _ in range(4):
        server.box.complete(tokens=5)

    assert server.metric("vllm:generation_tokens_total") == 20
    assert server.metric("vllm:time_to_first_token_seconds_count") == 4
    assert server.metric("vllm:inter_token_latency_seconds_count") == 16
    assert server.metric("vllm:e2e_request_latency_seconds_count") == 4
    assert server.metric("vllm:num_requests_running") == 0
    assert server.metric("vllm:kv_cache_usage_perc") == 0
    text = server.box.get("/metrics")[1]
    assert (
        'request_success_total{engine="0",finished_reason="length",model_name="/models/tiny"} 4'
        in text
    )
    assert 'http_requests_total{handler="/v1/completions",method="POST",status="2xx"} 4.0' in text


def test_a_small_cache_saturates_but_goes_on(run: Start) -> None:
    server = run("--num-gpu-blocks-override=12", SIM_STEP_SECONDS="0.002").ready()
    threads = [
        threading.Thread(target=server.box.complete, kwargs={"tokens": 500}) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    wait_until(lambda: server.metric("vllm:kv_cache_usage_perc") > 0.9, 10)
    before = server.metric("vllm:generation_tokens_total")
    assert server.metric("vllm:num_requests_waiting") > 0

    wait_until(lambda: server.metric("vllm:num_preemptions_total") > 0, 10)
    assert server.metric("vllm:generation_tokens_total") > before
    for thread in threads:
        thread.join(30)
    assert server.metric("vllm:generation_tokens_total") == 8 * 500


# --- the face


def test_answers_have_the_shape_of_openai(run: Start) -> None:
    server = run("--served-model-name", "a", "b").ready()

    status, text = server.box.post(
        "/v1/chat/completions", {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 2}
    )
    assert status == 200
    assert json.loads(text)["choices"][0]["message"]["role"] == "assistant"
    status, text = server.box.post(
        "/v1/completions", {"model": "b", "prompt": "x", "max_tokens": 3, "stream": True}
    )
    events = [line.removeprefix("data: ") for line in text.splitlines() if line]
    assert events[-1] == "[DONE]"
    assert len(events) == 4
    assert [m["id"] for m in json.loads(server.box.get("/v1/models")[1])["data"]] == ["a", "b"]
    status, text = server.box.post("/v1/completions", {"model": "c", "prompt": "x"})
    assert (status, json.loads(text)["error"]["type"]) == (404, "NotFoundError")
    assert server.box.post("/v1/completions", {"prompt": "x", "max_tokens": 99999})[0] == 400


def test_a_key_guards_v1_and_nothing_else(run: Start) -> None:
    server = run("--api-key", "k1").ready()

    assert server.box.get("/v1/models") == (401, '{"error":"Unauthorized"}')
    assert server.box.complete()[0] == 401
    assert server.box.get("/metrics")[0] == 200
    asked = urllib.request.Request(
        f"{server.box.url}/v1/models", headers={"authorization": "Bearer k1"}
    )
    with urllib.request.urlopen(asked) as answer:
        assert answer.status == 200


def test_a_client_that_leaves_frees_its_place_and_counts_as_2xx(run: Start) -> None:
    server = run().ready()

    assert server.box.complete(tokens=4000, seconds=0.3)[0] == 0

    wait_until(lambda: server.metric("vllm:num_requests_running") == 0, 5)
    text = server.box.get("/metrics")[1]
    assert 'http_requests_total{handler="/v1/completions",method="POST",status="2xx"} 1.0' in text
    assert 'finished_reason="abort",model_name="/models/tiny"} 0.0' in text


# --- the command line


@pytest.mark.parametrize(
    ("args", "seqs"),
    [
        (["--max-num-seqs", "64"], 64),
        (["--max-num-seqs=64"], 64),
        (["--max_num_seqs", "64"], 64),
        (["--max_num_seqs=064"], 64),
        (["--max-num-seq", " 64"], 64),
        (["--max-num-seqs", "8", "--max-num-seqs=64"], 64),
        (["--max-num-batched-tokens", "8k", "--max-num-seqs", "64"], 64),
    ],
    ids=["space", "equals", "underscores", "both", "prefix", "last wins", "human sizes"],
)
def test_arguments_are_understood_as_vllm_does(run: Start, args: list[str], seqs: int) -> None:
    assert f"'max_num_seqs': {seqs}" in run(*args).ready().log


def test_the_command_line_wins_over_the_file(run: Start, tmp_path: Path) -> None:
    file = tmp_path / "vllm.yaml"
    file.write_text("max_num_seqs: 8\nenforce-eager: true\n# a remark\nserved-model-name:\n  - x\n")

    log = run("--max-num-seqs", "4", "--config", str(file)).ready().log

    assert "'max_num_seqs': 4" in log
    assert "'served_model_name': ['x']" in log
    assert "'enforce_eager': True" in log


@pytest.mark.parametrize(
    ("args", "code", "says"),
    [
        (
            ["--max-num-sequences", "5"],
            2,
            "vllm: error: unrecognized arguments: --max-num-sequences 5",
        ),
        (["--max-num-seqs", "1k"], 2, "argument --max-num-seqs: invalid int value: '1k'"),
        (
            ["--max-num-s", "4"],
            2,
            "--max-num-s could match --max-num-scheduled-tokens, --max-num-seqs",
        ),
        (["--max-num-seqs", "0"], 1, "Input should be greater than or equal to 1"),
        (["--max-model-len", "999999"], 1, "is greater than the derived max_model_len"),
        (
            ["--max-num-seqs", "32", "--max-num-batched-tokens", "16"],
            1,
            "must be greater than or equal to max_num_seqs",
        ),
    ],
)
def test_bad_arguments_end_as_in_vllm(run: Start, args: list[str], code: int, says: str) -> None:
    server = run(*args)

    assert server.exit_code() == code
    assert says in server.log


@pytest.mark.parametrize(
    ("failure", "code", "says"),
    [
        ("kv_too_small", 1, "To serve at least one request"),
        ("oom", 1, "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate"),
        ("sampler_oom", 1, "warming up sampler with 64 dummy requests"),
        ("gpu_memory_taken", 1, "is less than desired GPU memory utilization"),
        ("no_kv_memory", 1, "No available memory for the cache blocks"),
        ("model_not_found", 1, "HFValidationError"),
        ("hub", 1, "LocalEntryNotFoundError"),
        ("port", 1, "[Errno 98]"),
        ("bad_arg", 2, "unrecognized arguments"),
    ],
)
def test_starts_fail_as_told_with_the_real_text(
    run: Start, failure: str, code: int, says: str
) -> None:
    server = run("--max-num-seqs=64", SIM_FAIL_START=failure)

    assert server.exit_code() == code
    assert says in server.log
    assert "@" not in re.sub(r"\S+@\S+", "", server.log)  # every blank in the recording is filled


def test_fewer_sequences_cure_a_sampler_out_of_memory(run: Start) -> None:
    assert run("--max-num-seqs=128", SIM_FAIL_START="sampler_oom:64").exit_code() == 1
    run("--max-num-seqs=64", SIM_FAIL_START="sampler_oom:64").ready()


def test_a_taken_port_is_a_failed_start(run: Start) -> None:
    first = run().ready()
    second = run(f"--port={first.port}")

    assert second.exit_code() == 1
    assert "OSError: [Errno 98] Address already in use" in second.log


# --- dying


def words(text: str) -> list[str]:
    """Log lines without what differs from run to run."""
    return [STAMP.sub("#", line) for line in text.splitlines() if line.strip()]


def test_a_killed_engine_ends_the_server_with_code_0_and_the_real_words(run: Start) -> None:
    server = run().ready()
    threads = server.in_background(8, tokens=2000)

    killed_at = time.monotonic()
    os.kill(server.engine_pid, signal.SIGKILL)

    assert server.exit_code() == 0
    assert time.monotonic() - killed_at < 2
    for thread in threads:
        thread.join(5)
    assert {status for status, _ in server.answers} == {500}
    assert "EngineCore encountered an issue" in server.answers[0][1]
    real = words((REAL / "log_0.32_enginecore_sigkill_rc0.txt").read_text())
    since = next(at for at, line in enumerate(real) if "Parent process exited" in line)
    ours = words(server.log)
    expected = [line for line in real[since:] if "resource_tracker" not in line]
    assert [line for line in ours if line in expected] == expected


def test_an_idle_server_notices_its_dead_engine_within_a_watchdog_beat(run: Start) -> None:
    server = run(SIM_WATCHDOG_SECONDS="1.0").ready()

    os.kill(server.engine_pid, signal.SIGKILL)
    wait_until(lambda: server.box.get("/health")[0] in (503, 0), 2)

    assert server.exit_code() == 0


@pytest.mark.parametrize(
    ("fault", "code", "says"),
    [
        ("die", 0, "engine core exited unexpectedly"),
        ("worker_died", 0, "died unexpectedly (exit code: -9)"),
        ("worker_hung=0.1", 0, "TimeoutError: RPC call to sample_tokens timed out."),
        ("cuda_oom", 0, "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.96 GiB"),
        ("illegal_access", 0, "CUDA error: an illegal memory access was encountered"),
        ("exit137", 137, "Got fatal signal from worker processes, shutting down"),
        ("exit=3", 3, ""),
    ],
)
def test_faults_that_end_it(run: Start, fault: str, code: int, says: str) -> None:
    server = run(SIM_WATCHDOG_SECONDS="0.2").ready()

    server.box.post(f"/sim/{fault}")

    assert server.exit_code() == code
    assert says in server.log


def test_a_fault_can_be_told_by_environment_and_by_file(run: Start, tmp_path: Path) -> None:
    by_environment = run(SIM_FAULT="exit=4@0.2").ready()
    file = tmp_path / "fault"
    by_file = run(SIM_CONTROL_FILE=str(file)).ready()
    file.write_text("exit=5\n")

    assert by_environment.exit_code() == 4
    assert by_file.exit_code() == 5


def test_an_unknown_fault_is_refused(run: Start) -> None:
    status, text = run().ready().box.post("/sim/explode")

    assert status == 400
    assert "no fault called 'explode'" in text


def test_sigterm_while_idle_is_a_clean_stop(run: Start) -> None:
    server = run().ready()

    server.process.terminate()

    assert server.exit_code() == 0
    assert "[shutdown] API server: shutdown triggered" in server.log
    assert "exited unexpectedly" not in server.log


def test_sigterm_with_requests_in_flight_waits_until_their_clients_give_up(run: Start) -> None:
    server = run().ready()
    threads = server.in_background(2, tokens=2000, seconds=1.5)

    server.process.terminate()

    assert server.exit_code() == 0
    for thread in threads:
        thread.join(5)
    assert {status for status, _ in server.answers} == {0}
    assert "Waiting for connections to close" in server.log


def test_sigterm_can_also_fail_requests_in_flight_with_the_words_of_a_crash(run: Start) -> None:
    server = run(SIM_STOP_ANSWERS="1").ready()
    threads = server.in_background(2, tokens=2000)

    server.process.terminate()

    assert server.exit_code() == 0
    for thread in threads:
        thread.join(5)
    assert {status for status, _ in server.answers} == {500}
    assert server.log.index("shutdown triggered") < server.log.index("EngineDeadError")


def test_log_statistics_can_be_switched_off(run: Start) -> None:
    text = run("--disable-log-stats").ready().box.get("/metrics")[1]

    assert "vllm:" not in text
    assert "process_start_time_seconds" in text


def test_sigterm_with_a_shutdown_timeout_lets_requests_finish(run: Start) -> None:
    server = run("--shutdown-timeout", "10").ready()
    threads = server.in_background(2, tokens=60)

    server.process.terminate()

    assert server.exit_code() == 0
    for thread in threads:
        thread.join(5)
    assert {status for status, _ in server.answers} == {200}
    assert "mode=drain timeout=10s" in server.log


def test_the_first_sigterm_while_loading_is_ignored_and_the_second_ends_it_with_130(
    run: Start,
) -> None:
    server = run(SIM_START_SECONDS="4")
    wait_until(lambda: "(EngineCore pid=" in server.log, 10)

    server.process.terminate()
    with pytest.raises(subprocess.TimeoutExpired):
        server.process.wait(0.3)
    server.process.terminate()

    assert server.exit_code(2) == 130


# --- seeming alive


def test_a_stopped_engine_freezes_every_gauge_while_health_stays_200(run: Start) -> None:
    server = run(SIM_STEP_SECONDS="0.005").ready()
    server.in_background(8, tokens=3000)

    os.kill(server.engine_pid, signal.SIGSTOP)
    time.sleep(0.05)
    before = server.box.get("/metrics")[1]
    assert server.box.complete(seconds=0.5)[0] == 0
    after = server.box.get("/metrics")[1]

    assert server.box.get("/health")[0] == 200
    ours = [[x for x in t.splitlines() if x.startswith("vllm:")] for t in (before, after)]
    assert ours[0] == ours[1]
    assert server.metric("vllm:num_requests_running") == 8
    os.kill(server.engine_pid, signal.SIGCONT)
    wait_until(lambda: server.box.get("/metrics")[1] != after, 5)


def test_a_server_told_to_outlive_its_engine_answers_503(run: Start) -> None:
    server = run(VLLM_KEEP_ALIVE_ON_ENGINE_DEATH="1", SIM_WATCHDOG_SECONDS="0.1").ready()

    os.kill(server.engine_pid, signal.SIGKILL)
    wait_until(lambda: server.box.get("/health")[0] == 503, 2)

    assert server.box.complete()[0] == 500
    assert server.box.get("/v1/models")[0] == 200
    assert server.process.poll() is None


def test_slow_first_tokens_show_in_their_histogram(run: Start) -> None:
    server = run().ready()
    server.box.fault("slow_first_token=0.6")
    time.sleep(0.05)

    server.box.complete()

    assert 0.6 < server.metric("vllm:time_to_first_token_seconds_sum") < 1.2


def test_a_preemption_storm_throws_requests_out(run: Start) -> None:
    server = run(SIM_LOAD="20", SIM_LOAD_TOKENS="200", SIM_STEP_SECONDS="0.01").ready()
    wait_until(lambda: server.metric("vllm:num_requests_running") > 3, 10)

    server.box.fault("preemption_storm")

    wait_until(lambda: server.metric("vllm:num_preemptions_total") > 20, 10)


def test_a_full_cache_shows_in_its_gauge(run: Start) -> None:
    server = run(SIM_LOAD="20").ready()

    server.box.fault("kv_full")

    wait_until(lambda: server.metric("vllm:kv_cache_usage_perc") > 0.95, 10)


def test_lasting_faults_end_with_ok(run: Start) -> None:
    server = run(SIM_LOAD="20").ready()
    server.box.fault("kv_full,garbage_metrics")
    wait_until(lambda: "<html>" in server.box.get("/metrics")[1], 5)

    server.box.fault("ok")

    wait_until(lambda: "<html>" not in server.box.get("/metrics")[1], 5)
    wait_until(lambda: server.metric("vllm:kv_cache_usage_perc") < 0.5, 5)


def test_a_sleeping_engine_says_so_and_dies_of_a_request(run: Start) -> None:
    server = run(VLLM_SERVER_DEV_MODE="1").ready()
    assert server.box.post("/sleep?level=1")[0] == 200

    assert server.box.get("/is_sleeping") == (200, '{"is_sleeping":true}')
    assert 'sleep_state="awake"} 0.0' in server.box.get("/metrics")[1]
    assert server.box.complete()[0] == 500
    assert server.exit_code() == 0


# --- in a container


@pytest.mark.docker
def test_in_a_container_the_engine_is_killed_by_its_host_process_number(vllm_box: VllmBox) -> None:
    box = vllm_box(env={"SIM_WATCHDOG_SECONDS": "0.5"}).wait_ready()
    assert box.complete()[0] == 200

    box.kill_engine()

    assert box.wait_exit() == 0
    assert box.state["OOMKilled"] is False
    assert "engine core exited unexpectedly" in box.logs()


@pytest.mark.docker
def test_in_a_container_a_start_that_failed_twice_succeeds(vllm_box: VllmBox) -> None:
    env = {"SIM_FAIL_START": "gpu_memory_taken", "SIM_FAIL_TIMES": "2"}

    box = vllm_box(env=env, restart_policy="on-failure").wait_ready()

    box.container.reload()
    assert box.container.attrs["RestartCount"] == 2


@pytest.mark.docker
def test_in_a_container_memory_that_runs_out_kills_the_engine_only(vllm_box: VllmBox) -> None:
    box = vllm_box(mem_limit="96m", memswap_limit="96m", env={"SIM_WATCHDOG_SECONDS": "0.5"})
    box.wait_ready().fault("eat_memory")

    assert box.wait_exit() == 0
    assert "engine core exited unexpectedly" in box.logs()
