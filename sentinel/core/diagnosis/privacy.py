"""What must not be kept in evidence: what users sent, and what opens doors.

Names decide what is a secret, of variables, flags and keys alike; a value that is one is
replaced whole, so that not even its length is told.
"""

import re
from collections.abc import Mapping
from typing import Any

from sentinel.core.diagnosis.line import undress
from sentinel.core.diagnosis.users import UsersText

SECRET = "<secret>"  # noqa: S105 - what stands in its place
_PROMPT = "<a request; what users send is not kept>"
_NAME = r"[\w.-]*(?:key|token(?!s|iz)|secret|passw|credential|cookie|auth)[\w.-]*"
_TELLING = re.compile(_NAME, re.IGNORECASE)
_USERS_VALUE = re.compile(
    r"(input_value=)(?!(?:-?\d+(?:\.\d+)?|None|True|False)(?:,|\]|$)).*?(?=, input_type=|$)"
)
_IN_TEXT = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"(--{_NAME}(?:=|\s+))(?:'[^']*'|\"[^\"]*\"|[^\s'\"]+)",  # a flag and its value
        rf"(\b{_NAME}=)(?:'[^']*'|\"[^\"]*\"|[^\s,;'\"]+)",  # NAME=value
        rf"(['\"]{_NAME}['\"]\s*:\s*)(?:\[[^\]]*\]|'[^']*'|\"[^\"]*\"|[^\s,}}]+)",  # 'name': value
        r"(Bearer\s+)[\w.~+/=-]+",
        r"(://)[^/\s:@]+:[^/\s@]+(?=@)",  # user:password@
    )
)


def without_prompts(text: str) -> str:
    """A log without what users sent, and without secrets."""
    users = UsersText()
    lines = (_PROMPT if users.hides(undress(line)) else line for line in text.splitlines())
    return "\n".join(without_secrets(_USERS_VALUE.sub(rf"\1{SECRET}", line)) for line in lines)


def without_secrets(text: str) -> str:
    for pattern in _IN_TEXT:
        text = pattern.sub(rf"\g<1>{SECRET}", text)
    return text


def redacted(value: Any, name: str = "") -> Any:
    """JSON from outside, such as an inspect, without secrets."""
    if isinstance(value, Mapping):
        return {key: redacted(inner, str(key)) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return _redacted_words(list(value))
    if not isinstance(value, str):
        return value
    return SECRET if value and _TELLING.fullmatch(name) else without_secrets(value)


def _redacted_words(words: list[Any]) -> list[Any]:
    """A command line: the word after `--api-key` is its value; so are those up to the next flag."""
    found: list[Any] = []
    secret = False
    for word in words:
        if isinstance(word, str) and word.startswith("-"):
            secret = "=" not in word and _TELLING.fullmatch(word.lstrip("-")) is not None
            found.append(_redacted_variable(word))
        elif isinstance(word, str):
            found.append(SECRET if secret else _redacted_variable(word))
        else:
            found.append(redacted(word))
    return found


def _redacted_variable(word: str) -> str:
    """`NAME=value`, whatever the value holds; anything else is text."""
    name, equals, _ = word.partition("=")
    if equals and _TELLING.fullmatch(name.lstrip("-")):
        return f"{name}={SECRET}"
    return without_secrets(word)
