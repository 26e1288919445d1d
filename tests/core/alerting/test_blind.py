from pathlib import Path

import pytest

from sentinel.config.rulefile import load_rule_files
from sentinel.core.alerting.blind import (
    Told,
    is_another,
    missing_from,
    readers_of,
    told_in,
)
from sentinel.core.alerting.rule import RuleGroup

ROOT = Path(__file__).parents[3]
SHIPPED = readers_of(load_rule_files(sorted((ROOT / "rules").glob("*.yaml"))))
VERSIONS = ROOT / "tests" / "rules" / "versions"


def groups(folder: Path, text: str) -> list[RuleGroup]:
    (folder / "mine.yaml").write_text(text)
    return load_rule_files([folder / "mine.yaml"])


def missing(exposition: str) -> dict[str, tuple[str, ...]]:
    return missing_from(told_in(exposition), SHIPPED)


@pytest.mark.parametrize(
    ("version", "lacks"),
    [
        ("0.33.0", {}),
        ("0.22.1", {}),
        ("0.10.2", {}),
        ("0.8.5-v1", {}),
        ("0.8.5-v0", {}),
        ("0.6.6", {}),
        ("0.5.5", {"vllm:request_queue_time_seconds": ("VllmQueueTimeHigh",)}),
    ],
)
def test_what_each_release_lacks_of_what_the_shipped_rules_read(
    version: str, lacks: dict[str, tuple[str, ...]]
) -> None:
    assert missing((VERSIONS / f"{version}.txt").read_text()) == lacks


def test_a_metric_that_is_gone_blinds_those_that_read_it() -> None:
    text = (VERSIONS / "0.33.0.txt").read_text().replace("vllm:num_preemptions_total", "x")

    assert missing(text) == {"vllm:num_preemptions_total": ("VllmPreemptionStorm",)}


def test_a_metric_that_is_only_announced_is_not_told() -> None:
    text = "# TYPE vllm:num_preemptions counter\nvllm:num_requests_running 1\n"

    assert "vllm:num_preemptions_total" in missing(text)


def test_who_tells_nothing_of_vllm_is_another_case() -> None:
    assert missing("python_info 1\n") == {}


def test_a_rule_that_reads_what_another_records_is_blind_too(tmp_path: Path) -> None:
    found = readers_of(
        groups(
            tmp_path,
            """\
groups:
  - name: mine
    rules:
      - {record: "a:b:rate", expr: "rate(vllm:mine_total[5m])"}
      - {record: "a:c:rate", expr: "a:b:rate * 2 or a:c:rate"}
      - {alert: Mine, expr: "a:c:rate > 1 and up == 1"}
      - {alert: Other, expr: "vllm:mine_total > 1"}
""",
        )
    )

    assert found == {"vllm:mine_total": ("Mine", "Other")}


def test_the_model_is_told_by_labels() -> None:
    text = 'vllm:num_requests_running{engine="0",model_name="a/b"} 1\nup{model_name="x"} 1\n'

    assert told_in(text) == Told(frozenset({"vllm:num_requests_running"}), frozenset({"a/b"}))


@pytest.mark.parametrize(
    ("expected", "models", "another"),
    [
        ("tiny", ["tiny"], False),
        ("/models/tiny/", ["tiny"], False),
        ("Qwen/Qwen3-8B", ["qwen3-8b"], False),
        ("tiny", ["/models/tiny", "adapter"], False),
        ("tiny", ["large"], True),
        ("/models/tiny", ["/models/large"], True),
        ("tiny", [], False),
    ],
)
def test_another_model_is_one_by_no_name(expected: str, models: list[str], another: bool) -> None:
    assert is_another(expected, Told(frozenset(), frozenset(models))) is another
