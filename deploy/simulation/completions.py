"""The OpenAI face: what is refused, and the shape of whole and streamed answers, as in 0.32."""

import json
import time
import uuid
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any

from .calls import Call, EngineDeadError
from .web import Answer, Request, json_answer

FINGERPRINT = "vllm-0.32.0-e2efb053"


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    chat: bool
    model: str
    prompt: int
    limit: int
    stream: bool
    usage_in_stream: bool


def failure(message: str, kind: str, status: int, param: str | None = None) -> Answer:
    error = {"message": message, "type": kind, "param": param, "code": status}
    return json_answer({"error": error}, status)


def engine_dead(error: EngineDeadError) -> Answer:
    answer = failure(str(error), "InternalServerError", 500)
    answer.extra["connection"] = "close"
    return answer


def read(request: Request, *, names: list[str], max_len: int) -> Asked | Answer:
    """What was asked for, or the refusal."""
    if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
        text = "1 validation error:\n  Unsupported Media Type: Only 'application/json' is allowed"
        return failure(text, "Bad Request", 400)
    try:
        body: dict[str, Any] = dict(json.loads(request.body))
    except (ValueError, TypeError):
        return failure("1 validation error:\n  JSON decode error", "Bad Request", 400, "body")
    model = body.get("model") or names[0]
    if model not in names:
        text = f"The model `{model}` does not exist. Valid aliases: {', '.join(names)}."
        return failure(text, "NotFoundError", 404, "model")
    chat = request.path.endswith("/chat/completions")
    prompt = _prompt_tokens(body, chat=chat)
    if not prompt:
        text = "Either prompt or prompt_embeds must be provided and non-empty. (parameter=prompt)"
        return failure(text, "BadRequestError", 400, "prompt")
    refusal, limit = _limit(body, prompt, max_len, chat=chat)
    if refusal:
        return refusal
    stream = bool(body.get("stream"))
    usage = bool((body.get("stream_options") or {}).get("include_usage"))
    return Asked(
        chat=chat, model=model, prompt=prompt, limit=limit, stream=stream, usage_in_stream=usage
    )


def _prompt_tokens(body: dict[str, Any], *, chat: bool) -> int:
    if chat:
        words = [str(m.get("content", "")) for m in body.get("messages") or []]
        return sum(len(w.split()) + 4 for w in words)
    prompt = body.get("prompt")
    if isinstance(prompt, list):  # of token numbers, or of texts of which we count the first
        return len(prompt) if prompt and isinstance(prompt[0], int) else len(str(prompt[:1]))
    return len(str(prompt or "").split()) or len(str(prompt or ""))


def _limit(
    body: dict[str, Any], prompt: int, max_len: int, *, chat: bool
) -> tuple[Answer | None, int]:
    asked = body.get("max_completion_tokens") or body.get("max_tokens")
    if asked is None:
        asked = max_len - prompt if chat else 16
    limit = int(asked)
    value = f"(parameter=max_tokens, value={limit})"
    if limit < 1:
        text = f"max_tokens must be at least 1, got {limit}. {value}"
        return failure(text, "BadRequestError", 400, "max_tokens"), 0
    if limit > max_len:
        text = (
            f"max_tokens={limit} cannot be greater than max_model_len={max_len}. "
            f"Please request fewer output tokens. {value}"
        )
        return failure(text, "BadRequestError", 400, "max_tokens"), 0
    if prompt + limit > max_len:
        text = (
            f"This model's maximum context length is {max_len} tokens. However, you requested "
            f"{limit} output tokens and your prompt contains {prompt} input tokens, for a total of "
            f"{prompt + limit} tokens. Please reduce the length of the input prompt or the number "
            "of requested output tokens."
        )
        return failure(text, "BadRequestError", 400, "input_tokens"), 0
    return None, limit


def whole(asked: Asked) -> Answer:
    text = " token" * asked.limit
    usage = _usage(asked) | {"prompt_tokens_details": None, "completion_tokens_details": None}
    choice: dict[str, Any] = {"index": 0}
    if asked.chat:
        choice["message"] = {"role": "assistant", "content": text, "reasoning": None}
    else:
        choice["text"] = text
    choice |= {"logprobs": None, "finish_reason": "length", "stop_reason": None, "token_ids": None}
    tail = {"service_tier": None, "system_fingerprint": FINGERPRINT, "usage": usage}
    return json_answer(
        {**_frame(asked, chunk=False), "choices": [choice], **tail, "kv_transfer_params": None}
    )


async def streamed(asked: Asked, call: Call, end: Callable[[Call], None]) -> AsyncIterator[bytes]:
    """Server-sent events, one a token. An engine that dies ends the stream with an error event."""
    frame = _frame(asked, chunk=True)
    if asked.chat:
        first = {"index": 0, "delta": {"role": "assistant", "content": ""}, "finish_reason": None}
        yield _event({**frame, "choices": [first]})
    try:
        done = False
        while not done:
            done = await call.next_token()
            choice: dict[str, Any] = {"index": 0, "logprobs": None}
            choice |= {"delta": {"content": " token"}} if asked.chat else {"text": " token"}
            choice["finish_reason"] = "length" if done else None
            yield _event({**frame, "choices": [choice]})
        if asked.usage_in_stream:
            yield _event({**frame, "choices": [], "usage": _usage(asked)})
    except EngineDeadError as error:
        text = {"message": str(error), "type": "InternalServerError", "param": None, "code": 500}
        yield _event({"error": text})
    finally:
        end(call)
    yield b"data: [DONE]\n\n"


def _frame(asked: Asked, *, chunk: bool) -> dict[str, Any]:
    kind = ("chat.completion.chunk" if chunk else "chat.completion") if asked.chat else ""
    prefix = "chatcmpl" if asked.chat else "cmpl"
    return {
        "id": f"{prefix}-{uuid.uuid4().hex[:16]}",
        "object": kind or "text_completion",
        "created": int(time.time()),
        "model": asked.model,
    }


def _usage(asked: Asked) -> dict[str, Any]:
    total = asked.prompt + asked.limit
    return {
        "prompt_tokens": asked.prompt,
        "total_tokens": total,
        "completion_tokens": asked.limit,
    }


def _event(value: object) -> bytes:
    return b"data: " + json.dumps(value, separators=(",", ":")).encode() + b"\n\n"
