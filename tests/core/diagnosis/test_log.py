"""Real logs, read as a person would read them."""

import re
from pathlib import Path

import pytest

from sentinel.core.diagnosis.cause import CAUSES
from sentinel.core.diagnosis.log import LogReading, read_log
from sentinel.core.diagnosis.pattern import Pattern, Rank

FIXTURES = Path(__file__).parents[2] / "fixtures"


def read(name: str) -> LogReading:
    found = list(FIXTURES.glob(f"*/{name}"))
    assert found, name
    return read_log(found[0].read_text())


@pytest.mark.parametrize(
    ("name", "cause"),
    [
        pytest.param("log_0.32_enginecore_sigkill_rc0.txt", "engine_died", id="engine killed"),
        pytest.param("log_0.32_worker_sigkill_rc0.txt", "worker_died", id="worker killed: cut off"),
        pytest.param("log_0.32_worker_hang_rpc_timeout_rc0.txt", "worker_hung", id="worker hung"),
        pytest.param("log_0.32_start_badarg.txt", "bad_arguments", id="unknown flag"),
        pytest.param("log_0.32_start_mns0.txt", "bad_arguments", id="max-num-seqs 0"),
        pytest.param("log_0.32_start_toolong.txt", "bad_arguments", id="max-model-len too long"),
        pytest.param("log_0.32_start_portconflict.txt", "port_in_use", id="port taken"),
        pytest.param("log_0.32_start_kvsmall.txt", "unknown", id="the root cause is cut off"),
        pytest.param("log_gpu_runtime_oom.txt", "cuda_oom_runtime", id="CUDA OOM while serving"),
        pytest.param("log_gpu_start_kv_too_small.txt", "kv_cache_too_small", id="KV on a GPU"),
    ],
)
def test_the_first_cause_is_named(name: str, cause: str) -> None:
    reading = read(name)

    assert reading.cause == cause
    assert reading.died
    assert not reading.told_to_stop
    assert CAUSES[reading.cause].says


def test_a_clean_stop_with_requests_in_flight_is_no_death() -> None:
    reading = read("log_0.32_sigterm_drain30_rc0.txt")

    assert reading.told_to_stop
    assert not reading.died
    assert reading.cause == "unknown"


def test_a_healthy_log_says_nothing() -> None:
    reading = read("log_gpu_healthy.txt")

    assert reading == LogReading(was_ready=True, facts=reading.facts)


@pytest.mark.parametrize(
    "line",
    [
        "INFO [logger.py:1] Received request c-1: prompt: 'CUDA out of memory. Tried to allocate'",
        'INFO:     127.0.0.1:5 - "POST /v1/x?engine core exited unexpectedly HTTP/1.1" 200 OK',
    ],
    ids=["a prompt", "the access log"],
)
def test_what_users_send_is_never_evidence(line: str) -> None:
    assert read_log(f"INFO:     Application startup complete.\n{line}\n").cause == "unknown"


def test_the_first_cause_wins_over_its_consequences() -> None:
    text = (
        "ERROR 1 [x.py:1] torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB\n"
        "ERROR 1 [core.py:1] EngineCore failed to start.\n"
        "RuntimeError: Engine core initialization failed. See root cause above.\n"
    )
    assert read_log(text).cause == "cuda_oom_startup"


def test_a_worker_that_died_is_named_before_the_engine_that_followed() -> None:
    text = (
        "ERROR 1 [x.py:1] Worker proc VllmWorker-0 died unexpectedly (exit code: -9)\n"
        "ERROR 1 [core.py:1] EngineCore encountered a fatal error.\n"
    )
    assert read_log(text).cause == "worker_died"


def test_a_pattern_of_ones_own_names_a_cause_and_says_nothing_of_an_end() -> None:
    own = [Pattern(cause="disk_full", match=re.compile("used up"), rank=Rank.OPERATOR)]
    said = "INFO 1 [x.py:1] the quota is used up\n"
    stop = "INFO 1 [launcher.py:1] [shutdown] API server: shutdown triggered\n"
    death = "ERROR 1 [core.py:1] EngineCore encountered a fatal error.\n"

    for text, ended in ((said, ""), (said + stop, "told"), (said + stop + death, "told"),
                        (said + death, "died"), (said + death + stop, "died")):  # fmt: skip
        reading = read_log(text, own)
        assert reading.cause == "disk_full"
        assert (reading.died, reading.told_to_stop) == (ended == "died", ended == "told")


def test_what_a_start_got_over_is_no_cause() -> None:
    tried = (
        "ERROR 1 [autotune.py:1] torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB\n"
        "ERROR 1 [registry.py:1] ValueError: x failed to start\n"
    )
    served = "INFO:     Application startup complete.\n"
    died = "ERROR 1 [core.py:1] EngineCore encountered a fatal error.\n"

    assert not read_log(tried + served).died
    assert read_log(tried + served + died).cause == "engine_died"
    assert read_log(tried + died).cause == "cuda_oom_runtime"


def test_a_stop_before_the_death_is_what_caused_it() -> None:
    text = (
        "INFO 1 [launcher.py:1] [shutdown] API server: shutdown triggered\n"
        "WARNING 1 [core_client.py:1] [shutdown] MPClient: engine core exited unexpectedly\n"
    )
    assert read_log(text).told_to_stop
