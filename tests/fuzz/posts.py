"""What is posted to Alertmanager's API: taken whole, or refused in words; never a fault of ours.

What is taken can be written anywhere: as JSON, into a fingerprint, and reckoned with.
"""

import json
import random
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from sentinel.api.alertmanager.errors import ApiError
from sentinel.api.alertmanager.posted import read_alerts
from sentinel.api.alertmanager.silences import read_silence
from sentinel.api.snapshot import to_json
from sentinel.core.dispatch.alert import fingerprint
from tests.fuzz.mutation import mutated

NOW = datetime(2030, 1, 1, 12, tzinfo=UTC)
FAR = timedelta(days=3650)

_TIMES = ("2030-01-01T12:00:00Z", "2030-01-01T13:00:00.123456789+08:00", "0001-01-01T00:00:00Z",
          "9999-12-31T23:59:59.999Z", "0001-01-01T00:00:00-23:59", "", "x", 5, None, "2030-02-30T00:00:00Z",
          "2030-01-01 14:00:00", "2030-01-01T24:00:00Z", "2030-01-01T12:00:00+99:99")  # fmt: skip
_TEXTS: tuple[Any, ...] = ("", "x", "t1-a", "中", "\ud800", "\x00", "a" * 5000, None, 1, [], {}, True, "a|b", ".*", "(",
          "(a*)*b", "\udfff\ud800", "�", "__name__", "incident")  # fmt: skip
_URIS = ("", "http://p/graph", "/graph", "x", "http://%", "a:%41", None, 1, "javascript:alert(1)")
_ODD: tuple[Any, ...] = (None, [], {}, "", 0, -1, 1.5, True, [[]], {"a": {}}, 10**40, [None])


@dataclass(frozen=True, slots=True)
class Post:
    is_silence: bool
    body: bytes


def make(dice: random.Random) -> Post:
    is_silence = dice.random() < 0.5
    value = _silence(dice) if is_silence else [_alert(dice) for _ in range(dice.randrange(4))]
    if dice.random() < 0.3:
        value = _spoilt(value, dice)
    body = json.dumps(value).encode()
    return Post(is_silence, mutated(body, dice) if dice.random() < 0.3 else body)


def _alert(dice: random.Random) -> Any:
    return {
        "labels": {_key(dice): dice.choice(_TEXTS[:7]) for _ in range(dice.randrange(3))},
        "annotations": {_key(dice): dice.choice(_TEXTS[:7])},
        "startsAt": dice.choice(_TIMES),
        "endsAt": dice.choice(_TIMES),
        "generatorURL": dice.choice(_URIS),
    }


def _silence(dice: random.Random) -> Any:
    flags = (True, False, False, None, "x")
    return {
        "id": dice.choice(("", None, "x", "35360c0f-3945-4cfd-ae5a-fdf2a1bb6a61")),
        "matchers": [
            {
                "name": dice.choice(_TEXTS),
                "value": dice.choice(_TEXTS),
                "isRegex": dice.choice(flags),
                "isEqual": dice.choice(flags),
            }
            for _ in range(dice.randrange(3))
        ],
        "startsAt": dice.choice(_TIMES),
        "endsAt": dice.choice(_TIMES),
        "createdBy": dice.choice(_TEXTS),
        "comment": dice.choice(_TEXTS),
    }


def _key(dice: random.Random) -> str:
    return dice.choice(("alertname", "target", "a-b", "中", "", "\ud800", "x" * 300))


def _spoilt(value: Any, dice: random.Random) -> Any:
    if isinstance(value, list) and value and dice.random() < 0.9:
        at = dice.randrange(len(value))
        return [*value[:at], _spoilt(value[at], dice), *value[at + 1 :]]
    if isinstance(value, dict) and value and dice.random() < 0.9:
        key = dice.choice(list(value))
        return {**value, key: _spoilt(value[key], dice)}
    return dice.choice(_ODD)


def check(post: Post) -> None:
    try:
        if post.is_silence:
            _check_silence(post.body)
        else:
            _check_alerts(post.body)
    except ApiError as error:
        _check_refusal(error)


def _check_refusal(refusal: ApiError) -> None:
    assert 400 <= refusal.status < 500
    assert refusal.message
    json.loads(bytes(refusal.answer().body))


def _check_silence(body: bytes) -> None:
    silence = read_silence(body, NOW)(by="fuzz")
    assert silence.starts_at < silence.ends_at
    assert silence.ends_at >= NOW
    assert silence.ends_at + FAR > NOW
    assert silence.matchers
    for matcher in silence.matchers:
        matcher.matches("t1-a")
        matcher.name.encode()
        matcher.value.encode()
    (silence.comment + silence.created_by + (silence.id or "")).encode()


def _check_alerts(body: bytes) -> None:
    good, faults = read_alerts(body)
    assert all(faults)
    for alert in good:
        assert alert.labels
        fingerprint(alert.labels)
        json.loads(to_json([alert.labels, alert.annotations, alert.generator_url]))
        for at in (alert.starts_at, alert.ends_at):
            assert at is None or (at - FAR < at < at + FAR and at.tzinfo)
