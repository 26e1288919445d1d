"""What the API server knows of the requests it has passed to the engine, and what it counts.

Everything is counted when the engine says something, never by the clock. Keep it so: that
the figures stand still when the engine does is the point of the simulation.
"""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from .exposition import Exposition


class EngineDeadError(Exception):
    """Its text is what clients get."""

    def __init__(self) -> None:
        super().__init__(
            "EngineCore encountered an issue. See stack trace (above) for the root cause."
        )


@dataclass(slots=True, eq=False)
class Call:
    id: int
    prompt: int
    limit: int
    arrived: float
    first_token: float = 0.0
    last_token: float = 0.0
    produced: int = 0
    tokens: "asyncio.Queue[bool | EngineDeadError]" = field(default_factory=asyncio.Queue)

    async def next_token(self) -> bool:
        """Wait for one token; True if it was the last."""
        item = await self.tokens.get()
        if isinstance(item, EngineDeadError):
            raise item
        return item


class Calls:
    def __init__(self, exposition: Exposition, clock: Callable[[], float] = time.monotonic) -> None:
        self._exposition, self._clock = exposition, clock
        self._open: dict[int, Call] = {}
        self._next = 0
        self._seen_preemptions = 0

    def __len__(self) -> int:
        return len(self._open)

    def open(self, *, prompt: int, limit: int) -> Call:
        self._next += 1
        call = self._open[self._next] = Call(self._next, prompt, limit, self._clock())
        return call

    def forget(self, call: Call) -> bool:
        return self._open.pop(call.id, None) is not None

    def fail_all(self) -> None:
        for call in self._open.values():
            call.tokens.put_nowait(EngineDeadError())
        self._open.clear()

    def take_step(self, event: dict[str, Any]) -> None:
        """Count what one engine step brought."""
        show = self._exposition
        show.set("vllm:num_requests_running", event["running"])
        show.set("vllm:num_requests_waiting", event["waiting"])
        show.set("vllm:num_requests_waiting_by_reason", event["waiting"], 'reason="capacity"')
        show.set("vllm:kv_cache_usage_perc", event["usage"])
        new = event["preemptions"] - self._seen_preemptions
        self._seen_preemptions = event["preemptions"]
        show.add("vllm:num_preemptions_total", new)
        if event["outputs"]:
            show.observe("vllm:iteration_tokens_total", event["tokens"])
        for number, done, in_engine, preempted in event["outputs"]:
            call = self._open.get(number)
            if call is not None:
                self._take_token(call, done=done, in_engine=in_engine, preempted=preempted)

    def _take_token(self, call: Call, *, done: bool, in_engine: float, preempted: int) -> None:
        now, show = self._clock(), self._exposition
        if not call.produced:
            call.first_token = now
            show.observe("vllm:time_to_first_token_seconds", now - call.arrived)
            for name in ("prompt_tokens_total", "prefix_cache_queries_total"):
                show.add(f"vllm:{name}", call.prompt)
            show.add("vllm:prompt_tokens_by_source_total", call.prompt, 'source="local_compute"')
        else:
            show.observe("vllm:inter_token_latency_seconds", now - call.last_token)
        call.produced += 1
        call.last_token = now
        show.add("vllm:generation_tokens_total", 1)
        if done:
            self._open.pop(call.id)
            self._take_end(call, in_engine, preempted)
        call.tokens.put_nowait(done)

    def _take_end(self, call: Call, in_engine: float, preempted: int) -> None:
        decode = call.last_token - call.first_token
        whole = call.last_token - call.arrived
        per_token = decode / (call.produced - 1) if call.produced > 1 else 0.0
        figures = {
            "request_prompt_tokens": call.prompt,
            "request_generation_tokens": call.produced,
            "request_max_num_generation_tokens": call.produced,
            "request_params_n": 1,
            "request_params_max_tokens": call.limit,
            "request_time_per_output_token_seconds": per_token,
            "e2e_request_latency_seconds": whole,
            "request_queue_time_seconds": max(0.0, whole - in_engine),
            "request_inference_time_seconds": in_engine,
            "request_prefill_time_seconds": max(0.0, in_engine - decode),
            "request_decode_time_seconds": decode,
            "request_num_preemptions": preempted,
            "request_prefill_kv_computed_tokens": call.prompt,
        }
        for family, value in figures.items():
            self._exposition.observe(f"vllm:{family}", value)
        self._exposition.add("vllm:request_success_total", 1, 'finished_reason="length"')


class StatsLine:
    """The periodic line of the log. It vanishes after two silent intervals, running or not."""

    def __init__(self, exposition: Exposition) -> None:
        self._exposition = exposition
        self._before = (0.0, 0.0, 0.0)
        self._was_busy = False

    def next(self, seconds: float) -> str | None:
        show = self._exposition.value
        totals = (
            show("vllm:prompt_tokens_total"),
            show("vllm:generation_tokens_total"),
            show("vllm:num_preemptions_total"),
        )
        prompt, generated, preempted = (
            now - before for now, before in zip(totals, self._before, strict=True)
        )
        self._before = totals
        busy, was_busy = bool(prompt or generated), self._was_busy
        self._was_busy = busy
        if not busy and not was_busy:
            return None
        storm = f"Preemptions: {preempted:.0f}, " if preempted else ""
        return (
            f"[loggers.py:335] Engine 000: Avg prompt throughput: {prompt / seconds:.1f} tokens/s, "
            f"Avg generation throughput: {generated / seconds:.1f} tokens/s, "
            f"Running: {show('vllm:num_requests_running'):.0f} reqs, "
            f"Waiting: {show('vllm:num_requests_waiting'):.0f} reqs, {storm}"
            f"CPU KV cache usage: {show('vllm:kv_cache_usage_perc') * 100:.1f}%, "
            "Prefix cache hit rate: 0.0%"
        )
