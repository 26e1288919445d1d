"""`sentinel diagnose`: files in, a cause out, and the exit status says whether there is one."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Sentinel, process

FIXTURES = Path(__file__).parents[1] / "fixtures"
KV = FIXTURES / "vllm-0.22.1-h200" / "log_gpu_start_kv_too_small.txt"
HUNG = [FIXTURES / "vllm-0.32.0-cpu" / f"metrics_0.32_hung_inflight_t{n}.txt" for n in (0, 15)]


@pytest.fixture
def inspect(tmp_path: Path) -> Path:
    file = tmp_path / "inspect.json"
    file.write_text(
        json.dumps([{"State": {"Status": "exited", "ExitCode": 137, "OOMKilled": True}}])
    )
    return file


def test_a_cause_its_evidence_and_what_to_do(alone: Sentinel) -> None:
    result = alone("diagnose", str(KV), "--exit-code", "1")

    text = " ".join(result.stdout.split())
    assert result.exit_code == 0
    assert text.startswith("kv_cache_too_small (config, 98% sure): one request of --max-model-len")
    assert "log:50 ValueError: To serve at least one request" in text
    assert "exit_code exit code 1" in text
    assert "Do: It needs --max-model-len ≤ 8656" in text
    assert "Mind: Do not lower --max-num-seqs" in text


def test_json_has_the_keys_of_the_contract(alone: Sentinel) -> None:
    result = alone("diagnose", str(KV), "--json")

    found = json.loads(result.stdout)
    assert {"cause", "kind", "confidence", "evidence", "advice", "restart_helps", "lower_max_num_seqs_helps", "act"} <= set(found)  # fmt: skip
    assert found["cause"] == "kv_cache_too_small"
    assert found["evidence"][0]["line"] == 50


def test_two_looks_at_the_metrics_need_no_log(alone: Sentinel) -> None:
    args = [word for file in HUNG for word in ("--metrics", str(file))]

    result = alone("diagnose", *args, "--apart", "15s", "--json")

    assert json.loads(result.stdout)["cause"] == "engine_hung"
    assert "nothing moved in 15 s" in result.stdout


def test_an_inspect_needs_no_log(alone: Sentinel, inspect: Path) -> None:
    result = alone("diagnose", "--inspect", str(inspect), "--json")

    assert result.exit_code == 0
    assert json.loads(result.stdout)["cause"] == "cgroup_oom"


def test_what_is_unknown_exits_1(alone: Sentinel, tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("nothing of interest\n")

    result = alone("diagnose", str(log))

    assert result.exit_code == 1
    assert result.stdout.startswith("unknown ")


def test_a_log_is_read_from_standard_input() -> None:
    with KV.open("rb") as log, process("diagnose", "-", "--json", stdin=log) as child:
        found, _ = child.communicate(timeout=30)

    assert child.returncode == 0
    assert json.loads(found)["cause"] == "kv_cache_too_small"


@pytest.mark.parametrize(
    "args",
    [
        [],
        ["--exit-code", "1"],
        ["--metrics", str(HUNG[0])],
        ["absent.txt"],
        [str(KV), "--apart", "soon"],
        [str(KV), "--inspect", str(KV)],
        [str(KV), "--patterns", "absent.yaml"],
    ],
)
def test_what_cannot_be_read_is_a_wrong_use(alone: Sentinel, args: list[str]) -> None:
    assert alone("diagnose", *args).exit_code == 2


def test_patterns_of_ones_own_come_first(alone: Sentinel, tmp_path: Path) -> None:
    patterns, log = tmp_path / "patterns.yaml", tmp_path / "log"
    patterns.write_text(
        "patterns:\n"
        "  - cause: disk_full\n"
        "    match: 'quota of \\S+ is used up'\n"
        "    says: the team's quota is used up\n"
        "    advice: ask for more at the storage desk\n"
    )
    log.write_text(
        "the quota of nlp is used up\nValueError: No available memory for the cache blocks\n"
    )

    result = alone("diagnose", str(log), "--patterns", str(patterns))

    text = " ".join(result.stdout.split())
    assert "the team's quota is used up" in text
    assert "Do: ask for more at the storage desk" in text
    assert "log:1" in text


def test_a_faulty_pattern_file_names_the_place(alone: Sentinel, tmp_path: Path) -> None:
    patterns = tmp_path / "patterns.yaml"
    patterns.write_text(
        "patterns:\n"
        "  - cause: gremlins\n"
        "    match: x\n"
        "  - cause: disk_full\n"
        "    match: '('\n"
        "  - cause: disk_full\n"
        "    match: 'x*'\n"
        "  - cause: disk_full\n"
        "    matches: x\n"
    )

    result = alone("diagnose", str(KV), "--patterns", str(patterns))

    lines = [line.removeprefix(str(patterns)) for line in result.stdout.splitlines()]
    assert result.exit_code == 2
    assert [line.split(":")[1] for line in lines] == ["2", "5", "7", "8", "9"]
    assert "'gremlins' is no cause" in lines[0]
