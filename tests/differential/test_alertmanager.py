"""The same alerts, silences and routes: what we say of them, and what Alertmanager says.

All trials run at once against one real process, in real time; ours is on virtual time.
"""

import random
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
import yaml

from sentinel.core.dispatch.silence import Silence, expire, set_silence
from sentinel.core.model.command import SetSilence
from sentinel.core.model.errors import Permanent
from sentinel.core.model.labels import Matcher
from tests.differential.alertmanager_real import (
    Alertmanager,
    Heard,
    Listener,
    Pulse,
    needs_alertmanager,
    running_alertmanager,
)
from tests.differential.alertmanager_trial import (
    BEGIN,
    LATE,
    LENGTH,
    Event,
    Hush,
    Note,
    Post,
    Story,
    Trial,
    Unhush,
    config_of,
    differ,
    play,
    trials,
)

SEED = 25
TRIALS = 260
COMPARED = 200


@pytest.fixture
def listener() -> Iterator[Listener]:
    made = Listener()
    yield made
    made.close()


@pytest.mark.slow
@pytest.mark.timeout(240)
@needs_alertmanager
def test_each_channel_hears_what_alertmanager_would_tell_it(
    tmp_path: Path, listener: Listener
) -> None:
    made = list(trials(random.Random(SEED), TRIALS))
    config = yaml.safe_dump(config_of(made, listener.url))
    with running_alertmanager(tmp_path, config) as alertmanager:
        start = alertmanager.began_at
        with Pulse(alertmanager.again(), LATE) as pulse:
            late = Stage(alertmanager, start).perform(made)
            sleep_until(start + BEGIN + 1 + LENGTH)
    theirs = _stories(made, listener.heard, start)

    compared = [trial for trial in made if trial.number not in late]
    parted = {
        trial.number: found
        for trial in compared
        if (found := differ(play(trial), theirs[trial.number], 0.5))
    }
    shown = "\n\n".join(f"trial {number}: here {found}" for number, found in parted.items())
    assert not parted or pulse.was_late, f"{len(parted)} of {len(compared)} differ:\n{shown}"
    equal = len(compared) - len(parted)
    assert equal >= COMPARED, f"too slow for {len(late)} of {TRIALS}, and {len(parted)} differ"


class Stage:
    """Puts trials before Alertmanager as they happen, and notes where it was late."""

    def __init__(self, alertmanager: Alertmanager, start: float) -> None:
        self._alertmanager, self._start = alertmanager, start
        self._silences: dict[tuple[int, int], str] = {}
        self._late: set[int] = set()

    def perform(self, made: list[Trial]) -> set[int]:
        """The numbers of the trials that cannot be compared."""
        happening: dict[float, list[tuple[Trial, Event]]] = {}
        for trial in made:
            for event in trial.events:
                happening.setdefault(trial.begin + event.at, []).append((trial, event))
        for second, events in sorted(happening.items()):
            sleep_until(self._start + second)
            posts = [(t, post) for t, e in events if isinstance(e.what, tuple) for post in e.what]
            self._ask("POST", "alerts", [self._alert(trial, post) for trial, post in posts])
            self._check(second, [trial for trial, _ in posts])
            for trial, event in events:
                if not isinstance(event.what, tuple):
                    self._silence(trial, event.what)
                    self._check(second, [trial])
        return self._late

    def _check(self, second: float, of: list[Trial]) -> None:
        if time.time() > self._start + second + LATE:
            self._late |= {trial.number for trial in of}

    def _alert(self, trial: Trial, post: Post) -> dict[str, Any]:
        times = {"startsAt": post.starts, "endsAt": post.ends}
        return {"labels": dict(post.labels)} | {
            name: self._stamp(trial, at) for name, at in times.items() if at is not None
        }

    def _silence(self, trial: Trial, what: Hush | Unhush) -> None:
        known = self._silences.get((trial.number, what.which))
        if isinstance(what, Unhush):
            self._ask("DELETE", f"silence/{known}")
            return
        if what.starts is not None:
            starts = self._stamp(trial, what.starts)
        elif known is not None:
            starts = self._ask("GET", f"silence/{known}")["startsAt"]
        else:
            starts = _text(time.time())
        wanted = {
            "matchers": [_matcher(one) for one in what.matchers],
            "startsAt": starts,
            "endsAt": self._stamp(trial, what.ends),
            "createdBy": "test",
            "comment": "test",
        } | ({"id": known} if known else {})
        answer = self._ask("POST", "silences", wanted)
        self._silences[trial.number, what.which] = answer["silenceID"]

    def _ask(self, method: str, path: str, body: object = None) -> Any:
        status, answer = self._alertmanager.ask(method, path, body)
        assert status == 200, f"{method} {path} {body}: {status} {answer}"
        return answer

    def _stamp(self, trial: Trial, second: float) -> str:
        return _text(self._start + trial.begin + second)


def sleep_until(at: float) -> None:
    time.sleep(max(0, at - time.time()))


def _text(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat()


def _matcher(matcher: Matcher) -> dict[str, Any]:
    return {
        "name": matcher.name,
        "value": matcher.value,
        "isRegex": "~" in matcher.op,
        "isEqual": not matcher.op.startswith("!"),
    }


@pytest.mark.slow
@needs_alertmanager
def test_silences_are_made_changed_ended_and_refused_as_by_alertmanager(tmp_path: Path) -> None:
    dice = random.Random(SEED)
    answers: set[tuple[int, str]] = set()
    with running_alertmanager(tmp_path, "{route: {receiver: a}, receivers: [{name: a}]}") as theirs:
        both = Silences(theirs)
        for _ in range(250):
            asked, mine, other = both.do_one(dice)
            assert mine == other, f"{asked} of {both.ours}"
            answers.add(mine)
        listed = {one["id"]: one for one in theirs.ask("GET", "silences")[1]}

    assert {status for status, _ in answers} == {200, 400, 404, 500}
    assert len(listed) == len(both.ours)
    for id_, silence in both.ours.items():
        found = listed[both.names[id_]]
        assert found["matchers"] == [_matcher(one) for one in silence.matchers]
        for at, said in ((silence.starts_at, "startsAt"), (silence.ends_at, "endsAt")):
            assert abs(at.timestamp() - datetime.fromisoformat(found[said]).timestamp()) < 1


class Silences:
    """Each thing is asked of Alertmanager and of us."""

    def __init__(self, alertmanager: Alertmanager) -> None:
        self._alertmanager = alertmanager
        self.ours: dict[str, Silence] = {}
        self.names: dict[str, str] = {}  # what Alertmanager calls ours

    def do_one(self, dice: random.Random) -> tuple[object, tuple[int, str], tuple[int, str]]:
        """What was asked, and both answers."""
        now = datetime.now(UTC)
        id_ = dice.choice([None, str(UUID(int=1 << 70)), *list(self.ours)[-6:]])
        if id_ is not None and dice.random() < 0.2:
            status, said = self._alertmanager.ask("DELETE", f"silence/{self.names.get(id_, id_)}")
            mine = self._try(lambda: expire(self.ours, id_, now))
            return ("end", id_), (mine[0], mine[1] if mine[0] != 200 else ""), (status, said or "")
        wanted = self._wanted(dice, id_, now)
        status, said = self._alertmanager.ask("POST", "silences", self._body(wanted))
        mine = self._try(lambda: set_silence(self.ours, wanted, now, lambda: str(uuid4())))
        if status == 200 and mine[0] == 200:
            other = said["silenceID"]
            is_same = wanted.id is not None and self.names.get(wanted.id) == other
            self.names[mine[1]] = other
            kept = "changed" if mine[1] == wanted.id else "made"
            return wanted, (200, kept), (200, "changed" if is_same else "made")
        return wanted, mine, (status, said)

    def _try(self, do: Callable[[], tuple[Silence, ...]]) -> tuple[int, str]:
        try:
            changed = do()
        except Permanent as refused:
            return int(str(refused.facts["status"])), refused.message
        self.ours.update((one.id, one) for one in changed)
        return 200, changed[-1].id if changed else ""

    def _wanted(self, dice: random.Random, id_: str | None, now: datetime) -> SetSilence:
        known = self.ours.get(id_ or "")
        starts = now + timedelta(minutes=dice.choice((-60, 60, 90)))
        is_kept = known is not None and dice.random() < 0.6
        refused = (Matcher("a", "=~", ".*"), Matcher("b", "=", ""))
        # Alertmanager ends what it then refuses to replace; we refuse first.
        fresh = dice.choice(
            ((Matcher("a", "=", "1"),), (Matcher("b", "!~", "x"),), *((refused,) * (known is None)))
        )
        return SetSilence(
            by="test",
            id=id_,
            matchers=known.matchers if known and dice.random() < 0.7 else fresh,
            starts_at=known.starts_at if known and is_kept else starts,
            ends_at=now + timedelta(minutes=dice.choice((-30, 75, 120, 180))),
            created_by="test",
            comment="test",
        )

    def _body(self, wanted: SetSilence) -> dict[str, Any]:
        known = {"id": self.names.get(wanted.id, wanted.id)} if wanted.id else {}
        return known | {
            "matchers": [_matcher(one) for one in wanted.matchers],
            "startsAt": wanted.starts_at.isoformat(),
            "endsAt": wanted.ends_at.isoformat(),
            "createdBy": "test",
            "comment": "test",
        }


def _stories(made: list[Trial], heard: list[Heard], start: float) -> dict[int, Story]:
    of_channel = {
        ear.channel: trial for trial in made for ears in trial.ears.values() for ear in ears
    }
    stories: dict[int, Story] = {trial.number: {} for trial in made}
    for one in heard:
        channel = one.path.removeprefix("/")
        trial = of_channel[channel]
        if (note := _note(one, start + trial.begin)).at <= LENGTH:
            story = stories[trial.number]
            story.setdefault((channel, one.body["groupKey"]), []).append(note)
    return stories


def _note(heard: Heard, begin: float) -> Note:
    def second(text: str) -> float:
        return datetime.fromisoformat(text).timestamp() - begin

    return Note(
        at=heard.at - begin,
        receiver=heard.body["receiver"],
        labels=heard.body["groupLabels"],
        alerts=tuple(
            (
                alert["fingerprint"],
                alert["status"],
                second(alert["startsAt"]),
                second(alert["endsAt"]) if alert["status"] == "resolved" else None,
            )
            for alert in heard.body["alerts"]
        ),
    )
