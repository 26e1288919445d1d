"""Joins the parts of the loop. Starts nothing; knows no adapter."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sentinel.core.alerting.needs import needs_of
from sentinel.core.model.series import Store
from sentinel.core.recreate.port import ContainerRecreation
from sentinel.ports import (
    Clock,
    ConnectionEyes,
    ContainerEyes,
    ContainerHands,
    ContainerLogs,
    GpuEyes,
    ProcessEyes,
)
from sentinel.runtime.act import Actor
from sentinel.runtime.announce import Announcer
from sentinel.runtime.audit import Audit
from sentinel.runtime.bench import Bench
from sentinel.runtime.casebook import Casebook
from sentinel.runtime.channels import Book
from sentinel.runtime.circumstances import Circumstances
from sentinel.runtime.connections import ConnectionWatch, Sightless
from sentinel.runtime.decide import Decider
from sentinel.runtime.deliver import Deliver, Submit
from sentinel.runtime.depict import Painter
from sentinel.runtime.diagnose import Diagnoser
from sentinel.runtime.dispatch import Dispatch
from sentinel.runtime.evidence import Evidence
from sentinel.runtime.explain import Explainer
from sentinel.runtime.find import Finder
from sentinel.runtime.follow import Follower, Unread, nobody
from sentinel.runtime.follow import Submit as Follow
from sentinel.runtime.gpus import Blind, Gpus
from sentinel.runtime.hindsight import LookBack
from sentinel.runtime.history import History
from sentinel.runtime.hostwatch import HostWatch, Surroundings
from sentinel.runtime.inbox import Inbox
from sentinel.runtime.judge import Judge
from sentinel.runtime.lanes import Lane
from sentinel.runtime.looks import load_of
from sentinel.runtime.loop import Loop, Shown
from sentinel.runtime.maintain import Maintenance
from sentinel.runtime.mirror import Mirror
from sentinel.runtime.outside import OutsideRules, Place
from sentinel.runtime.parts import Parts
from sentinel.runtime.plan import Plan
from sentinel.runtime.power import Powers
from sentinel.runtime.probe import Prober
from sentinel.runtime.proof import Proof
from sentinel.runtime.prospects import Prospects
from sentinel.runtime.recreate import Recreate
from sentinel.runtime.recreations import Recreations
from sentinel.runtime.remember import SeriesFile
from sentinel.runtime.restart import Restart
from sentinel.runtime.resume import Past, evaluator_of
from sentinel.runtime.scrape import Scraper, TargetHttp
from sentinel.runtime.scrape import Submit as Ask
from sentinel.runtime.sightcheck import SightCheck
from sentinel.runtime.stoploop import StopLoop
from sentinel.runtime.swap import Swap
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
    recreation: Callable[[], ContainerRecreation]  # a pair of hands for each lane that asks
    http: TargetHttp
    ask: Ask  # runs a request to a target
    send: Submit  # runs the sending of a message
    shown: Shown
    metrics: Metrics
    lane: Callable[[str], Lane] = Lane
    evidence: Evidence | None = None
    series: SeriesFile | None = None
    logs: ContainerLogs = field(default_factory=Unread)
    follow: Follow = nobody  # runs the following of a log
    gpu_eyes: GpuEyes = field(default_factory=Blind)
    processes: ProcessEyes = field(default_factory=Blind)
    around: Surroundings = field(default_factory=Surroundings)
    connections: ConnectionEyes = field(default_factory=Sightless)
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
    history = History(memory.incidents, Audit(memory.outbox, plan, book.channels))
    store = Store(keep=keep_of(plan), retention_ms=retention_of(plan))
    loaded = outside.series.load(store) if outside.series else None
    fed_since = loaded or clock.now()
    past = Past(watched_until=watched_until, fed_since=fed_since, has_looked=False)
    watch = Watch(outside.eyes, clock, memory, history, plan, inbox, outside.lane("docker-eyes"))
    casebook = Casebook(memory, history, plan)
    casebook.read(clock.now())
    dispatch = Dispatch(memory, casebook, plan, book.addresses, clock.now())
    gpus = Gpus(
        outside.gpu_eyes,
        outside.processes,
        outside.lane("nvml"),
        clock,
        store,
        memory,
        inbox,
        plan,
    )
    hostwatch = HostWatch(
        outside.around,
        outside.lane,
        clock,
        store,
        memory,
        watch.ledger.counts,
        inbox,
        plan,
        gpus.hear_kernel,
        watched_until,
    )
    scraper = Scraper(outside.http, outside.ask, clock, store, plan, inbox)
    prospects = Prospects(
        outside.recreation(),
        clock,
        memory,
        inbox,
        outside.lane("docker-prospects"),
        lambda target, now: load_of(
            store, target, decider.plan.scrape_interval, now, gpus.readings_of(target.name)
        ),
    )
    circumstances = Circumstances(memory, casebook, gpus.of_target)
    decider = Decider(memory, history, casebook, plan, circumstances, prospects)
    hands = outside.lane("docker-hands")
    bench = Bench(clock, memory, history, inbox, hands, outside.evidence, gpus.are_held_by)
    restart = Restart(outside.hands, clock, memory, decider, bench)
    log_of = outside.evidence.log_of if outside.evidence else lambda _container_id: ""
    recreations, anew = Recreations(clock, memory, bench), outside.recreation()
    proof = Proof(memory, recreations, bench, log_of)
    swap = Swap(anew, clock, recreations, decider, bench, proof)
    recreate = Recreate(anew, recreations, decider, bench, swap)
    stop_loop = StopLoop(anew, clock, memory, decider, bench)
    actor = Actor(memory, decider, bench, restart, recreate, stop_loop)

    follower = Follower(outside.logs, outside.follow, memory, watch.ledger, inbox, clock)
    follower.on_detached = gpus.read_log
    watch.ledger.patterns = lambda: scraper.plan.log_patterns
    watch.ledger.followed, watch.ledger.driver = follower.launch, lambda: gpus.driver
    watch.finder = Finder(outside.http, outside.ask, inbox, watch.look_again)
    deliver = Deliver(
        memory.outbox,
        book.channels,
        outside.send,
        lambda done: inbox.put(lambda: loop.delivered(done)),
        fallback=book.fallback,
    )
    explainer = Explainer(memory, casebook, decider, inbox)
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
            follower=follower,
            scraper=scraper,
            prober=Prober(outside.http, outside.ask, clock, inbox, lambda: scraper.plan),
            connections=ConnectionWatch(outside.connections, outside.lane("sockets"), clock, inbox),
            gpus=gpus,
            hostwatch=hostwatch,
            vitals=Vitals(store, Powers(store, gpus.of_target)),
            sight=SightCheck(store),
            judge=Judge(memory, store, history, actor),
            evaluator=evaluator_of(plan, store, memory, clock.now(), past),
            elsewhere=elsewhere,
            series=outside.series,
            fed_since=fed_since,
            casebook=casebook,
            diagnoser=Diagnoser(casebook, memory, watch.ledger.told),
            decider=decider,
            actor=actor,
            maintenance=Maintenance(memory, casebook, decider),
            lookback=LookBack(memory),
            dispatch=dispatch,
            announcer=Announcer(memory, dispatch, plan, book.addresses),
            deliver=deliver,
            mirror=Mirror(store, watch, deliver, clock),
            tally=Tally(outside.metrics),
            painter=Painter(memory, casebook, dispatch, explainer, gpus.of_target, daemon),
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
