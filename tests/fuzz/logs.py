"""Logs and inspects: damaged as they may be, they are read to an end, and pieces change nothing."""

import json
import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sentinel.core.diagnosis.cause import CAUSES
from sentinel.core.diagnosis.diagnose import diagnose
from sentinel.core.diagnosis.reader import LogReader
from tests.fuzz.mutation import mutated, mutated_text

TESTS = Path(__file__).parents[1]
LOGS = sorted([*TESTS.glob("core/diagnosis/logs/*.txt"), *TESTS.glob("fixtures/*/log_*.txt")])
METRICS = sorted(TESTS.glob("fixtures/*/metrics_*.txt"))
_ODD: tuple[Any, ...] = (None, -1, 0, 137, 10**30, "x", "", [], {}, [[]], True, "\ud800")
_INSPECT = {
    "Id": "c",
    "State": {"Status": "exited", "ExitCode": 137, "OOMKilled": True, "Error": "x"},
    "HostConfig": {"Memory": 1 << 34, "ShmSize": 1 << 26, "IpcMode": "private"},
}


@dataclass(frozen=True, slots=True)
class Case:
    log: bytes
    pieces: tuple[int, ...]
    inspect: Any
    metrics: tuple[str, ...]


def make(dice: random.Random) -> Case:
    log = dice.choice(LOGS).read_bytes()[-dice.choice((500, 20_000, 200_000)) :]
    return Case(
        log=mutated(log, dice, most=20),
        pieces=tuple(dice.randint(1, 5000) for _ in range(dice.randrange(50))),
        inspect=_spoilt(_INSPECT, dice),
        metrics=tuple(
            mutated_text(dice.choice(METRICS).read_text(), dice) for _ in range(dice.randrange(3))
        ),
    )


def _spoilt(document: Any, dice: random.Random) -> Any:
    document = json.loads(json.dumps(document))
    for _ in range(dice.randrange(4)):
        place = dice.choice((document, document["State"], document["HostConfig"]))
        if isinstance(place, dict) and place:
            key = dice.choice(list(place))
            if key not in ("State", "HostConfig"):
                place[key] = dice.choice(_ODD)
    return dice.choice((document, [document], *_ODD))


def check(case: Case) -> None:
    found = diagnose(case.log, inspect=case.inspect, metrics=case.metrics, apart=15.0)
    assert found.cause in CAUSES
    assert 0 <= found.confidence <= 1
    json.dumps(found.as_json())
    whole, parts = LogReader(), LogReader()
    expected = [*whole.feed(case.log), *whole.close()]
    events, at = [], 0
    for size in (*case.pieces, len(case.log) + 1):
        events += parts.feed(case.log[at : at + size])
        at += size
    assert [*events, *parts.close()] == expected
