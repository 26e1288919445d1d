"""Nothing that users sent and nothing that opens doors is kept."""

import json

import pytest

from sentinel.core.diagnosis.privacy import SECRET, redacted, without_prompts


@pytest.mark.parametrize(
    "line",
    [
        "INFO Received request cmpl-1: prompt: 'my s3cr3t life', params: SamplingParams(n=1)",
        '{"levelname": "INFO", "message": "Received request cmpl-1: prompt: \'my s3cr3t\\nlife\', params: x"}',
        '{"levelname": "DEBUG", "message": "Request cmpl-1 JSON body: {\\"prompt\\":\\"s3cr3t\\"}"}',
        'DEBUG 01-02 03:04:05 [x.py:1] Request cmpl-1 JSON body: {"prompt":"s3cr3t"}',
        "ERROR:    Exception in ASGI application\nTraceback (most recent call last):\nValueError: s3cr3t",
        "ERROR Dumping input data for V1 LLM engine: prompt_token_ids=[s3cr3t]",
        "INFO non-default args: {'api_key': ['s3cr3t'], 'model': 'm'}",
        "INFO non-default args: {'hf_token': 's3cr3t', 'model': 'm'}",
        "vllm serve m --api-key s3cr3t --port 8000",
        "vllm serve m --api-key=s3cr3t",
        "HF_TOKEN=s3cr3t python -m vllm",
        "Authorization: Bearer s3cr3t",
        "https://ada:s3cr3t@registry.example/v2",
        "1 validation error: input_value={'prompt': 's3cr3t'}, input_type=dict",
    ],
)
def test_no_secret_and_no_prompt_is_left_in_a_log(line: str) -> None:
    assert "s3cr3t" not in without_prompts(f"before\n{line}\nafter")


def test_a_prompt_of_several_lines_is_left_out_whole() -> None:
    kept = without_prompts(
        "INFO 01-02 03:04:05 logger.py:37] Received request cmpl-1: prompt: 'my s3cr3t\n"
        "ERROR 01-02 03:04:05 [core.py:1] s3cr3t\n"
        "s3cr3t', params: SamplingParams(n=1), lora_request: None.\n"
        "INFO 01-02 03:04:06 [x.py:1] it goes on"
    )

    assert "s3cr3t" not in kept
    assert kept.endswith("it goes on")
    assert kept.count("\n") == 3


@pytest.mark.parametrize(
    "line",
    [
        "ERROR engine core exited unexpectedly",
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB",
        'INFO: 127.0.0.1:1 - "POST /v1/completions HTTP/1.1" 500',
        "INFO generation_tokens=5, max_num_seqs=256",
        "vllm serve m --max-num-batched-tokens 8192 --tokenizer t --kv-cache-dtype fp8",
    ],
)
def test_what_tells_of_the_failure_is_left_as_it_is(line: str) -> None:
    assert without_prompts(line) == line


def test_an_inspect_keeps_everything_but_the_secrets() -> None:
    raw = {
        "Config": {
            "Env": ["PATH=/bin", "HF_TOKEN=s3cr3t, with spaces", "AWS_SECRET_ACCESS_KEY=s3cr3t"],
            "Cmd": ["vllm", "serve", "m", "--api-key", "s3cr3t", "s3cr3t", "--port", "8000"],
            "Entrypoint": ["sh", "-c", "exec vllm serve m --api-key 's3cr3t' --port 8000"],
            "Labels": {"deploy.password": "s3cr3t", "team": "nlp"},
        },
        "Args": ["--api-key=s3cr3t"],
        "State": {"ExitCode": 0, "OOMKilled": False},
    }

    kept = redacted(raw)

    assert "s3cr3t" not in json.dumps(kept)
    assert kept["Config"]["Env"][0] == "PATH=/bin"
    assert kept["Config"]["Env"][1] == f"HF_TOKEN={SECRET}"
    assert kept["Config"]["Cmd"][-2:] == ["--port", "8000"]
    assert kept["Config"]["Labels"]["team"] == "nlp"
    assert kept["State"] == raw["State"]
