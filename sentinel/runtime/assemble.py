"""Joins the parts of the loop. Starts nothing; knows no adapter."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sentinel.core.alerting.needs import needs_of
from sentinel.core.model.series import Store
from sentinel.ports import Clock, ContainerEyes, ContainerHands
from sentinel.runtime.act import Actor
from sentinel.runtime.announce import Announcer
from sentinel.runtime.casebook import Casebook
from sentinel.runtime.channels import Book
from sentinel.runtime.decide import Decider
from sentinel.runtime.deliver import Deliver, Submit
from sentinel.runtime.depict import Painter
from sentinel.runtime.dispatch import Dispatch
from sentinel.runtime.evidence import Evidence
from sentinel.runtime.explain import Explainer
from sentinel.runtime.find import Finder
from sentinel.runtime.history import History
from sentinel.runtime.inbox import Inbox
from sentinel.runtime.judge import Judge
from sentinel.runtime.lanes import Lane
from sentinel.runtime.loop import Loop, Parts, Shown
from sentinel.runtime.mirror import Mirror
from sentinel.runtime.outside import OutsideRules, Place
from sentinel.runtime.plan import Plan
from sentinel.runtime.remember import SeriesFile
from sentinel.runtime.resume import Past, evaluator_of
from sentinel.runtime.scrape import Scraper, TargetHttp
from sentinel.runtime.scrape import Submit as Ask
from sentinel.runtime.tally import Tally
from sentinel.runtime.vitals import METRICS, Vitals
from sentinel.runtime.watch import Watch
from sentinel.store.memory import Memory
from sentinel.telemetry.metrics import Metrics


@dataclass(frozen=True, slots=True, kw_only=True)
class Outside:
    """The world, as far as the loop meets it."""

    clock: Clock
    eyes: ContainerEyes
    hands: ContainerHands
    http: TargetHttp
    ask: Ask  # runs a request to a target
    send: Submit  # runs the sending of a message
    shown: Shown
    metrics: Metrics
    lane: Callable[[str], Lane] = Lane
    evidence: Evidence | None = None
    series: SeriesFile | None = None
    rules_at: Place | None = None  # an outside Prometheus that evaluates rules


def assemble(
    outside: Outside,
    memory: Memory,
    plan: Plan,
    book: Book,
    *,
    daemon: dict[str, Any],
    watched_until: datetime | None = None,
) -> Loop:
    """`watched_until`: when a loop over the same state last beat, if ever."""
    clock, inbox = outside.clock, Inbox()
    history = History(memory.incidents)
    store = Store(keep=keep_of(plan), retention_ms=retention_of(plan))
    loaded = outside.series.load(store) if outside.series else None
    fed_since = loaded or clock.now()
    past = Past(watched_until=watched_until, fed_since=fed_since, has_looked=False)
    watch = Watch(outside.eyes, clock, memory, history, plan, inbox, outside.lane("docker-eyes"))
    casebook = Casebook(memory, history, plan)
    casebook.read(clock.now())
    dispatch = Dispatch(memory, casebook, plan, book.addresses, clock.now())
    decider = Decider(memory, history, casebook, plan)
    actor = Actor(
        outside.hands,
        clock,
        memory,
        history,
        decider,
        inbox,
        outside.lane("docker-hands"),
        outside.evidence,
    )

    watch.finder = Finder(outside.http, outside.ask, inbox, watch.look_again)
    deliver = Deliver(
        memory.outbox,
        book.channels,
        outside.send,
        lambda done: inbox.put(lambda: loop.delivered(done)),
        fallback=book.fallback,
    )
    elsewhere = OutsideRules(clock, inbox, outside.lane)
    elsewhere.use(outside.rules_at, plan)

    loop = Loop(
        Parts(
            clock=clock,
            inbox=inbox,
            memory=memory,
            store=store,
            history=history,
            watch=watch,
            scraper=Scraper(outside.http, outside.ask, clock, store, plan, inbox),
            vitals=Vitals(store),
            judge=Judge(memory, store, history, actor),
            evaluator=evaluator_of(plan, store, memory, clock.now(), past),
            elsewhere=elsewhere,
            series=outside.series,
            fed_since=fed_since,
            casebook=casebook,
            decider=decider,
            actor=actor,
            dispatch=dispatch,
            announcer=Announcer(memory, dispatch, plan, book.addresses),
            deliver=deliver,
            mirror=Mirror(store, watch, deliver, clock),
            tally=Tally(outside.metrics),
            painter=Painter(
                memory, casebook, dispatch, Explainer(memory, casebook, decider), daemon
            ),
        ),
        plan,
        outside.shown,
    )
    return loop


_OF_SCRAPES = ("up", "scrape_duration_seconds")  # few, and what every dashboard asks for
_OWN = "sentinel_"


def keep_of(plan: Plan) -> Callable[[str], bool] | None:
    """Which series the store keeps, by metric name; None keeps all."""
    if plan.keep_all:
        return None
    needs = needs_of(plan.rules)
    return lambda name: (
        name in METRICS or name in _OF_SCRAPES or name.startswith(_OWN) or needs.keeps(name)
    )


def retention_of(plan: Plan) -> int:
    """Milliseconds: what rules look back, and what is kept for queries."""
    wanted = round(plan.metrics_retention.total_seconds() * 1000)
    return max(wanted, needs_of(plan.rules).reach_ms)
