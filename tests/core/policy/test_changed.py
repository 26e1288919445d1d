"""What differs between two launches, as a person reads it."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from sentinel.core.model.launch import By, Launch
from sentinel.core.policy.changed import changed

BEFORE = Launch(
    target="t1-a",
    container_id="c",
    started_at=datetime(2030, 1, 1, tzinfo=UTC),
    by=By.OTHER,
    model="m",
    image="vllm/vllm-openai:v0.10.2",
    image_id="sha256:aaaaaaaaaaaaaaaa",
    argv=("vllm", "serve", "/models/m", "--max-model-len", "8192", "--enable-lora"),
    environment={"VLLM_USE_V1": "1", "HF_TOKEN": "<secret>"},
    devices=("gpu=0",),
    compose_hash="1" * 64,
    driver="550.54",
    facts={"version": "0.10.2", "kv_tokens": 100_000, "load_seconds": 20.0, "max_num_seqs": 256},
)


@pytest.mark.parametrize(
    ("now", "told"),
    [
        pytest.param({}, [], id="nothing"),
        pytest.param(
            {"image_id": "sha256:bbbbbbbbbbbbbbbb"},
            ["image digest aaaaaaaaaaaa → bbbbbbbbbbbb"],
            id="the same tag, another image",
        ),
        pytest.param(
            {"argv": ("vllm", "serve", "/models/m", "--max_model_len=32768", "--enable-lora")},
            ["--max-model-len 8192 → 32768"],
            id="an argument, written differently",
        ),
        pytest.param(
            {"argv": ("vllm", "serve", "/models/n", "--max-model-len", "8192")},
            ["--enable-lora removed", "command vllm serve /models/m → vllm serve /models/n"],
            id="a model, and an argument less",
        ),
        pytest.param(
            {"argv": ("sh", "-c", "vllm serve /models/m --max-model-len 8192 --enable-lora")},
            ["command vllm serve /models/m → sh -c vllm serve /models/m"],
            id="now through a shell",
        ),
        pytest.param(
            {"environment": {"VLLM_USE_V1": "0", "HF_TOKEN": "<secret>", "A": "b"}},
            ["VLLM_USE_V1 1 → 0", "A b added"],
            id="environment",
        ),
        pytest.param({"devices": ()}, ["GPUs gpu=0 → none"], id="GPUs"),
        pytest.param({"driver": ""}, [], id="what is not known is no change"),
        pytest.param({"driver": "560.1"}, ["driver 550.54 → 560.1"], id="driver"),
        pytest.param(
            {"compose_hash": "2" * 64}, ["compose hash 111111111111 → 222222222222"], id="compose"
        ),
        pytest.param(
            {"facts": {**BEFORE.facts, "kv_tokens": 101_000, "load_seconds": 30.0}},
            [],
            id="as starts differ among themselves",
        ),
        pytest.param(
            {"facts": {**BEFORE.facts, "kv_tokens": 50_000, "max_num_seqs": 64}},
            ["max_num_seqs 256 → 64", "KV cache tokens 100000 → 50000"],
            id="what its log told",
        ),
        pytest.param({"facts": {}}, [], id="a log that told nothing"),
    ],
)
def test_what_differs_is_told(now: dict[str, Any], told: list[str]) -> None:
    assert changed(BEFORE, replace(BEFORE, **now)) == told


def test_a_long_value_is_cut() -> None:
    (told,) = changed(BEFORE, replace(BEFORE, model="n" * 500))

    assert len(told) < 150


def test_a_quote_that_is_never_closed_is_a_word() -> None:
    odd = replace(BEFORE, argv=("sh", "-c", "vllm serve --x 'y"))

    assert changed(odd, odd) == []
