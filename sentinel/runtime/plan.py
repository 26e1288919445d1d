"""What the operator wants, in the core's words: settings turned into frozen values.

Built whole from `Settings` and swapped whole on a reload, between two turns.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from sentinel.core.alerting.rule import RuleGroup
from sentinel.core.diagnosis.pattern import Pattern
from sentinel.core.dispatch.inhibit import InhibitRule
from sentinel.core.dispatch.interval import Interval
from sentinel.core.dispatch.route import Route
from sentinel.core.model.intent import Mode
from sentinel.core.policy.discover import DEFAULT, EXCLUDED, Sieve
from sentinel.core.policy.guard import Budget, ManyFailing
from sentinel.core.policy.remedy import Remedy
from sentinel.core.policy.witness import Patience


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetPlan:
    """What holds for one target."""

    mode: Mode = Mode.WATCH
    endpoint: str | None = None  # found if not given
    api_key: Callable[[], str | None] = lambda: None
    patience: Patience = field(default_factory=Patience)
    probe_when: str = "suspicion"  # suspicion | always | never
    probe_interval: timedelta = timedelta(seconds=60)
    probe_deadline: timedelta = timedelta(seconds=20)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    host: str
    mode: Mode = Mode.WATCH
    language: str = "en"
    external_labels: Mapping[str, str] = field(default_factory=dict)
    discover: Sequence[Sieve] = DEFAULT
    exclude: Sequence[Sieve] = EXCLUDED
    looks_default: bool = True  # discovery was not configured: `vllm:` series count too
    target: Callable[[str], TargetPlan] = lambda _name: TargetPlan()
    pool_of: Callable[[str], str | None] = lambda _name: None
    min_healthy: Mapping[str, int] = field(default_factory=dict)  # by pool
    switched: frozenset[str] = frozenset()  # pools that have a switch
    maintenance: Sequence[tuple[str, Sequence[str]]] = ()  # a time interval, globs on names
    scrape_interval: timedelta = timedelta(seconds=5)
    scrape_timeout: timedelta = timedelta(seconds=3)
    evaluation_interval: timedelta = timedelta(seconds=5)
    reconcile_interval: timedelta = timedelta(seconds=15)
    remedies: Sequence[Remedy] = ()
    cooldown: timedelta = timedelta(minutes=15)
    budget: Budget = Budget()
    many_failing: ManyFailing = field(default_factory=ManyFailing)
    verify_within: timedelta = timedelta(minutes=15)
    approval_expires: timedelta = timedelta(minutes=30)
    group_interval: timedelta = timedelta(seconds=5)
    route: Route = field(default_factory=lambda: Route(receiver="log"))
    inhibit_rules: Sequence[InhibitRule] = ()
    intervals: Mapping[str, Interval] = field(default_factory=dict)
    resolve_timeout: timedelta = timedelta(minutes=5)
    accept_external: bool = False
    as_alertmanager: str = ""  # the routes as an alertmanager.yml, without secrets
    rules: Sequence[RuleGroup] = ()
    log_patterns: Sequence[Pattern] = ()  # of the operator's, tried before the shipped
    share_logs: bool = False
    stop_files: Sequence[str] = ()
    problems: Sequence[str] = ()  # said loudly: no receiver, keys not yet in force …
    history_for: timedelta = timedelta(days=90)
    keep_all: bool = False  # every series; else those that rules and states read
    metrics_retention: timedelta = timedelta(hours=1)
    fingerprint: str = ""
