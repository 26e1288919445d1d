"""Sequences of alerts and silences at random, and what our lifecycle says of them.

What happens, happens on whole seconds. A trial is fit for a comparison only if what is said
does not hang on a fraction of a second: it is played several times with everything a little
late, and must come out the same.
"""

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from sentinel.core.dispatch.dispatcher import Dispatcher, Due, Ear, Routing
from sentinel.core.dispatch.inhibit import InhibitRule
from sentinel.core.dispatch.interval import Interval, Span, Times
from sentinel.core.dispatch.receive import receive
from sentinel.core.dispatch.route import Route
from sentinel.core.dispatch.silence import expire, set_silence
from sentinel.core.model.command import PostedAlert, SetSilence
from sentinel.core.model.labels import Matcher

BEGIN = 8.4
"""How long after the start of Alertmanager trials begin: one clean-up falls into each."""

PHASES = 4
"""Trials begin one after the other within a second, so that there is never too much to do."""

LAST = 22
"""The last second in which something happens."""

LENGTH = LAST + 5.5
RESOLVE_TIMEOUT = timedelta(seconds=6)
LATE = 0.2
"""How late whatever happens may be, in seconds."""

_START = datetime(2026, 1, 1, tzinfo=UTC)  # of a Dispatcher: clean-ups are at its half minutes
INTERVALS = {
    "always": Interval((Times(years=(Span(2000, 2999),)),)),
    "never": Interval((Times(years=(Span(1900, 1901),)),)),
}
_NAMES, _GRAVE, _PLACES = ("A", "B"), ("crit", "warn"), ("1", "2")


@dataclass(frozen=True, slots=True)
class Post:
    labels: Mapping[str, str]
    starts: float | None = None  # seconds of the trial
    ends: float | None = None


@dataclass(frozen=True, slots=True)
class Hush:
    """Make a silence, or change the one that was made as number `which`."""

    which: int
    matchers: tuple[Matcher, ...]
    starts: float | None  # None: as it is, if there is one
    ends: float


@dataclass(frozen=True, slots=True)
class Unhush:
    which: int


@dataclass(frozen=True, slots=True)
class Event:
    at: int
    what: tuple[Post, ...] | Hush | Unhush


@dataclass(frozen=True, slots=True)
class Trial:
    number: int
    route: Route
    rules: tuple[InhibitRule, ...]
    ears: Mapping[str, tuple[Ear, ...]]
    events: tuple[Event, ...]

    @property
    def begin(self) -> float:
        """Seconds after the start of Alertmanager."""
        return BEGIN + self.number % PHASES / PHASES


@dataclass(frozen=True, slots=True)
class Note:
    """One message: when, to whom, and what it says of which alerts in which order."""

    at: float
    receiver: str
    labels: Mapping[str, str]
    alerts: tuple[tuple[str, str, float, float | None], ...]  # print, status, start, end

    @property
    def said(self) -> object:
        return self.receiver, dict(self.labels), [one[:2] for one in self.alerts]

    def is_like(self, other: "Note", within: float) -> bool:
        times = [(self.at, other.at)]
        for mine, theirs in zip(self.alerts, other.alerts, strict=False):
            times.append((mine[2], theirs[2]))
            if mine[3] is not None and theirs[3] is not None:
                times.append((mine[3], theirs[3]))
        return self.said == other.said and all(abs(a - b) <= within for a, b in times)


Story = dict[tuple[str, str], list[Note]]
"""What each channel heard of each group."""


def differ(one: Story, other: Story, within: float) -> str | None:
    """Where two stories part; None if they are the same."""
    for key in sorted(one.keys() | other.keys()):
        mine, theirs = one.get(key, []), other.get(key, [])
        if len(mine) != len(theirs) or not all(
            a.is_like(b, within) for a, b in zip(mine, theirs, strict=False)
        ):
            return "\n".join([f"{key}:", *map(str, mine), "--- but", *map(str, theirs)])
    return None


# --- at random


def trials(dice: random.Random, count: int) -> Iterator[Trial]:
    for number in range(count):
        while not is_sure(trial := _trial(dice, number)):
            pass
        yield trial


def is_sure(trial: Trial) -> bool:
    """Whether it comes out the same however late things are, and says something."""
    told = play(trial)
    dice = random.Random(trial.number)
    return bool(told) and all(
        differ(told, play(trial, Lateness(dice, number)), 2 * LATE) is None for number in range(8)
    )


def _trial(dice: random.Random, number: int) -> Trial:
    case = Matcher("case", "=", str(number))
    receivers = [f"c{number}-{n}" for n in range(dice.randint(1, 3))]
    ears = {
        name: tuple(
            Ear(channel=f"{name}-{n}", send_resolved=dice.random() < 0.7)
            for n in range(dice.choice((1, 1, 2)))
        )
        for name in receivers
    }
    below = replace(
        _route(dice, receivers, 2), matchers=(case,), continues=False, mute_time_intervals=()
    )
    rules = tuple(_rule(dice, case) for _ in range(dice.choice((0, 0, 1, 1, 2))))
    events = tuple(_events(dice, case))
    return Trial(number, Route(receiver="nobody", routes=(below,)), rules, ears, events)


def _route(dice: random.Random, receivers: list[str], depth: int) -> Route:
    children = dice.choice((0, 1, 2, 3)) if depth else 0
    odd = dice.random()
    return Route(
        receiver=dice.choice(receivers),
        matchers=tuple(_matcher(dice) for _ in range(dice.choice((0, 1, 1, 1, 2)))),
        continues=dice.random() < 0.5,
        group_by=frozenset(dice.sample(("alertname", "sev", "inst", "none"), dice.randint(1, 2))),
        groups_by_all=dice.random() < 0.1,
        group_wait=timedelta(seconds=dice.choice((0, 0.4, 0.5, 1.5, 2.4))),
        group_interval=timedelta(seconds=dice.choice((1, 2, 3, 1.6, 2.5))),
        repeat_interval=timedelta(seconds=dice.choice((3.5, 5.3, 7.7, 60))),
        mute_time_intervals=("always",) if odd < 0.03 else ("never",) if odd < 0.2 else (),
        active_time_intervals=("never",) if odd > 0.98 else ("never", "always") * (odd > 0.9),
        routes=tuple(_route(dice, receivers, depth - 1) for _ in range(children)),
    )


def _matcher(dice: random.Random) -> Matcher:
    return dice.choice(
        (
            Matcher("alertname", dice.choice(("=", "!=")), dice.choice(_NAMES)),
            Matcher("sev", dice.choice(("=", "!=")), dice.choice(_GRAVE)),
            Matcher("inst", dice.choice(("=~", "!~")), dice.choice(("1|3", "[12]", ".*", "2?"))),
        )
    )


def _rule(dice: random.Random, case: Matcher) -> InhibitRule:
    return InhibitRule(
        source=(case, _matcher(dice)),
        target=(case, *(_matcher(dice) for _ in range(dice.randint(0, 1)))),
        equal=tuple(dice.sample(("inst", "alertname", "none"), dice.randint(0, 2))),
    )


def _events(dice: random.Random, case: Matcher) -> Iterator[Event]:
    pool = [
        {"case": case.value, "alertname": name, "sev": sev, "inst": inst}
        for name, sev, inst in dice.sample(
            [(n, s, i) for n in _NAMES for s in _GRAVE for i in (*_PLACES, "")], dice.randint(2, 4)
        )
    ]
    hushed = 0
    for at in range(LAST + 1):
        chance = dice.random()
        if chance < 0.45:
            posted = dice.sample(pool, dice.choice((1, 1, 1, 2)))
            yield Event(at, tuple(_post(dice, labels, at) for labels in posted))
        elif chance < 0.53:
            which = dice.randint(0, hushed)
            hushed += which == hushed
            yield Event(at, _hush(dice, which, case, at))
        elif chance < 0.56 and hushed:
            yield Event(at, Unhush(dice.randrange(hushed)))


def _post(dice: random.Random, labels: Mapping[str, str], at: int) -> Post:
    starts = dice.choice((None, None, at - 0.3, at - 2.3, at - 5.3))
    match dice.choice(("go on", "go on", "go on", "until", "end", "end", "past")):
        case "go on":
            return Post(labels, starts)
        case "until":
            return Post(labels, starts, at + dice.choice((1.3, 3.7, 30)))
        case "end":
            return Post(labels, starts, at - 0.2)
        case _:
            return Post(labels, at - 3.3, at - dice.choice((1.3, 2.3)))


def _hush(dice: random.Random, which: int, case: Matcher, at: int) -> Hush:
    matchers = (case, _matcher(dice)) if dice.random() < 0.6 else (case,)
    starts = dice.choice((None, None, at - 4.0, at + 2.3))
    return Hush(which, matchers, starts, at + dice.choice((3.3, 4.7, 8.3)))


# --- what is said of it here


class Lateness:
    """Everything a little late: what comes first most, what comes last most, or at random."""

    def __init__(self, dice: random.Random, number: int) -> None:
        self._dice, self._number = dice, number
        self.one_by_one = number % 4 < 2
        self.cleanups = dice.uniform(-LATE, LATE)
        self.log = timedelta(seconds=dice.uniform(0, LATE))

    def order(self, posts: tuple[Post, ...]) -> tuple[Post, ...]:
        """Who groups and who inhibits do not learn of what came together in the same order."""
        return posts[:: 1 if self._number % 2 else -1]

    def of(self, event: Event) -> float:
        share = event.at / LAST
        return LATE * (1 - share, share, self._dice.random())[min(self._number, 2)]


def play(trial: Trial, lateness: Lateness | None = None) -> Story:
    return _Play(trial, lateness).story()


class _Play:
    def __init__(self, trial: Trial, lateness: Lateness | None) -> None:
        self._trial, self._late = trial, lateness
        self._begin = _START + timedelta(
            seconds=trial.begin + (lateness.cleanups if lateness else 0)
        )
        self._now = self._begin
        routing = Routing(
            root=_later(trial.route, lateness.log) if lateness else trial.route,
            inhibit_rules=trial.rules,
            intervals=INTERVALS,
            ears=trial.ears,
        )
        self._dispatcher = Dispatcher(routing, _START)
        self._ids: dict[int, str] = {}
        self._made = 0
        self._story: Story = {}

    def story(self) -> Story:
        for event in self._trial.events:
            self._pass(event.at + (self._late.of(event) if self._late else 0))
            self._happen(event.what)
        self._pass(LENGTH)
        return self._story

    def _pass(self, until: float) -> None:
        end = self._begin + timedelta(seconds=until)
        while (due := self._dispatcher.due_at()) is not None and due <= end:
            self._now = max(self._now, due)
            self._flush()
        self._now = end
        self._flush()

    def _happen(self, what: tuple[Post, ...] | Hush | Unhush) -> None:
        if isinstance(what, Hush):
            self._hush(what)
        elif isinstance(what, Unhush):
            self._dispatcher.set_silences(
                expire(self._dispatcher.silences, self._ids[what.which], self._now)
            )
        else:
            for one in what if self._late is None else self._late.order(what):
                self._post(one)
                if self._late is None or self._late.one_by_one:
                    self._flush()
        self._flush()

    def _post(self, one: Post) -> None:
        posted = PostedAlert(
            labels=one.labels,
            starts_at=None if one.starts is None else self._at(one.starts),
            ends_at=None if one.ends is None else self._at(one.ends),
        )
        labels = {name: value for name, value in one.labels.items() if value}
        known = next((a for a in self._dispatcher.alerts.values() if a.labels == labels), None)
        alert = receive(posted, known, self._now, RESOLVE_TIMEOUT)
        self._dispatcher.put(alert, self._now)

    def _hush(self, what: Hush) -> None:
        known = self._dispatcher.silences.get(self._ids.get(what.which, ""))
        starts = self._now if known is None else known.starts_at
        wanted = SetSilence(
            by="test",
            id=known.id if known else None,
            matchers=what.matchers,
            starts_at=starts if what.starts is None else self._at(what.starts),
            ends_at=self._at(what.ends),
            created_by="test",
            comment="",
        )
        changed = set_silence(self._dispatcher.silences, wanted, self._now, self._new_id)
        self._dispatcher.set_silences(changed)
        self._ids[what.which] = changed[-1].id

    def _new_id(self) -> str:
        self._made += 1
        return f"s{self._made}"

    def _flush(self) -> None:
        for due in self._dispatcher.flush(self._now):
            self._story.setdefault((due.channel, due.group_key), []).append(self._note(due))

    def _note(self, due: Due) -> Note:
        return Note(
            at=self._second(self._now),
            receiver=due.receiver,
            labels=due.group_labels,
            alerts=tuple(
                (
                    alert.fingerprint,
                    "resolved" if is_resolved else "firing",
                    self._second(alert.starts_at),
                    self._second(alert.ends_at) if alert.ends_at else None,
                )
                for alert, is_resolved in due.alerts
            ),
        )

    def _at(self, second: float) -> datetime:
        return self._begin + timedelta(seconds=second)

    def _second(self, at: datetime) -> float:
        return (at - self._begin).total_seconds()


def _later(route: Route, by: timedelta) -> Route:
    """What was told is noted when it has been delivered."""
    return replace(
        route,
        repeat_interval=route.repeat_interval + by,
        routes=tuple(_later(child, by) for child in route.routes),
    )


# --- as Alertmanager is told of it


def config_of(all_trials: list[Trial], url: str) -> dict[str, Any]:
    ears = {name: ears for trial in all_trials for name, ears in trial.ears.items()}
    return {
        "global": {"resolve_timeout": f"{RESOLVE_TIMEOUT.seconds}s"},
        "route": {
            "receiver": "nobody",
            "routes": [_setting(trial.route.routes[0]) for trial in all_trials],
        },
        "inhibit_rules": [
            {
                "source_matchers": [_text(m) for m in rule.source],
                "target_matchers": [_text(m) for m in rule.target],
                "equal": list(rule.equal),
            }
            for trial in all_trials
            for rule in trial.rules
        ],
        "receivers": [{"name": "nobody"}]
        + [
            {
                "name": name,
                "webhook_configs": [
                    {"url": f"{url}/{ear.channel}", "send_resolved": ear.send_resolved}
                    for ear in mine
                ],
            }
            for name, mine in ears.items()
        ],
        "time_intervals": [
            {
                "name": name,
                "time_intervals": [{"years": [f"{one.first}:{one.last}" for one in times.years]}
                                   for times in interval.times],
            }
            for name, interval in INTERVALS.items()
        ],
    }  # fmt: skip


def _setting(route: Route) -> dict[str, Any]:
    return {
        "receiver": route.receiver,
        "matchers": [_text(matcher) for matcher in route.matchers],
        "continue": route.continues,
        "group_by": ["..."] if route.groups_by_all else sorted(route.group_by),
        "group_wait": _span(route.group_wait),
        "group_interval": _span(route.group_interval),
        "repeat_interval": _span(route.repeat_interval),
        "mute_time_intervals": list(route.mute_time_intervals),
        "active_time_intervals": list(route.active_time_intervals),
        "routes": [_setting(child) for child in route.routes],
    }


def _span(span: timedelta) -> str:
    return f"{round(span.total_seconds() * 1000)}ms"


def _text(matcher: Matcher) -> str:
    return f'{matcher.name}{matcher.op}"{matcher.value}"'
