"""What the person who runs the simulation may choose, read from SIM_* in the environment.

What vLLM itself reads from its command line or environment keeps vLLM's names and lives in
`arguments.py`; SIM_* is only for what no real server could be told.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    start_seconds: float = 5.0
    """SIM_START_SECONDS: from start to ready. Real: about 50 on two CPU cores, 70 on an H200."""

    step_seconds: float = 0.02
    """SIM_STEP_SECONDS: one engine step, so one token of every running request."""

    prefill_rate: float = 20_000.0
    """SIM_PREFILL_RATE: prompt tokens a second."""

    kv_blocks: int = 16_384
    """SIM_KV_BLOCKS: unless --num-gpu-blocks-override says otherwise."""

    teardown_seconds: float = 0.4
    """SIM_TEARDOWN_SECONDS: from the last log line to the end of the process."""

    watchdog_seconds: float = 5.0
    """SIM_WATCHDOG_SECONDS: how often an idle API server looks whether its engine is dead."""

    load: float = 0.0
    """SIM_LOAD: requests a second that the simulation sends itself."""

    load_prompt: int = 100
    """SIM_LOAD_PROMPT: tokens in each of their prompts."""

    load_tokens: int = 50
    """SIM_LOAD_TOKENS: tokens each of them asks for."""

    fail_start: str = ""
    """SIM_FAIL_START: name of a start-up failure; `sampler_oom:64` fails only above 64."""

    fail_times: int = 0
    """SIM_FAIL_TIMES: fail that many starts of this container, then succeed; 0 = always fail."""

    stop_answers: int = 0
    """SIM_STOP_ANSWERS=1: a SIGTERM fails requests in flight with 500 and leaves at once, as one
    of four real ones did. The other three never answered them and waited until they gave up."""

    fault: str = ""
    """SIM_FAULT: commands after becoming ready: `die@30`, `slow_first_token=3@10,ok@60`."""

    control_file: str = ""
    """SIM_CONTROL_FILE: a file whose first line is a command, looked at once a second."""

    keep_alive: bool = False
    """VLLM_KEEP_ALIVE_ON_ENGINE_DEATH, as in vLLM."""

    dev_mode: bool = False
    """VLLM_SERVER_DEV_MODE, as in vLLM: /sleep, /wake_up and /is_sleeping exist."""


def read_settings(environment: Mapping[str, str] | None = None) -> Settings:
    given = os.environ if environment is None else environment
    defaults = Settings()
    numbers = {
        name: type(getattr(defaults, name))(value)
        for name in Settings.__dataclass_fields__
        if (value := given.get(f"SIM_{name.upper()}", ""))
    }
    numbers.pop("keep_alive", None)
    numbers.pop("dev_mode", None)
    return Settings(
        **numbers,
        keep_alive=given.get("VLLM_KEEP_ALIVE_ON_ENGINE_DEATH", "0") not in ("", "0"),
        dev_mode=given.get("VLLM_SERVER_DEV_MODE", "0") not in ("", "0"),
    )
