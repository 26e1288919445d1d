"""How to make an engine work for one token, and what its answer says of it.

`/health` only says that the engine is not known to be dead; nothing but work shows that it
works. A refusal by the API server in front of it (no such API, no such key) proves nothing
either way, and is never to be taken for a dead engine.
"""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from sentinel.core.model.target import Answer


class Form(NamedTuple):
    """One way to ask, and the key its answer shows in."""

    path: str
    ask: Mapping[str, Any]
    answered_in: str


_ONE_TOKEN = {"max_tokens": 1, "temperature": 0}

FORMS = (  # in this order: what most servers have, first
    Form("/v1/completions", {"prompt": "1", **_ONE_TOKEN}, "choices"),
    Form(
        "/v1/chat/completions",
        {"messages": [{"role": "user", "content": "1"}], **_ONE_TOKEN},
        "choices",
    ),
    Form("/v1/embeddings", {"input": "1"}, "data"),
    Form("/pooling", {"input": "1"}, "data"),
    Form("/classify", {"input": "1"}, "data"),
)


def first_model(answer: Answer) -> str | None:
    """The first model of the list that is served for itself: a LoRA names its parent."""
    data = _json(answer).get("data") if answer.ok else None
    cards = [card for card in data if isinstance(card, dict)] if isinstance(data, list) else []
    named = [card for card in cards if isinstance(card.get("id"), str)]
    first = next((card for card in named if not card.get("parent")), named[0] if named else None)
    return None if first is None else str(first["id"])


def is_not_offered(answer: Answer) -> bool:
    """The server does not have this API at all; that says nothing of its engine."""
    if answer.failure:
        return False
    text = answer.body[:4096]
    if answer.status == 404:
        return b"does not exist" not in text  # that would be the model
    if answer.status == 400:
        return b"not support" in text or b"nsupported" in text
    return answer.status in (405, 501)


def is_refusal(answer: Answer) -> bool:
    """The API server said no by itself, whatever for; that says nothing of its engine."""
    return not answer.failure and answer.status is not None and 300 <= answer.status < 500


def why_no_token(answer: Answer, form: Form | None) -> str:
    """Why this is not an answer with a token, in a few words; empty if it is one."""
    if answer.failure:
        return answer.says
    if not answer.ok:
        return short(f"HTTP {answer.status}: {_message(answer)}".rstrip(": "))
    if form is None:
        return "the server lists no model"
    return "" if _json(answer).get(form.answered_in) else "the answer holds nothing"


def short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= 200 else f"{text[:199]}…"


def _message(answer: Answer) -> str:
    said = _json(answer)
    error = said.get("error")
    inner = error.get("message") if isinstance(error, dict) else error
    return str(inner or said.get("message") or said.get("detail") or "")


def _json(answer: Answer) -> dict[str, Any]:
    try:
        said = json.loads(answer.body)
    except (ValueError, RecursionError):
        return {}
    return said if isinstance(said, dict) else {}
