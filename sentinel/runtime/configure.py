"""From settings to a plan: every value the loop works with, in the core's words."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from fnmatch import fnmatchcase
from glob import glob
from importlib.resources import files
from pathlib import Path

from sentinel.config.export import as_alertmanager
from sentinel.config.load import Loaded
from sentinel.config.patterns import load_all_patterns
from sentinel.config.remedies import Remedy as RemedySetting
from sentinel.config.rulefile import load_rule_files
from sentinel.config.secrets import read_secret_file
from sentinel.config.settings import Settings
from sentinel.config.targets import Selector
from sentinel.core.alerting.rule import AlertRule, RuleGroup
from sentinel.core.model.errors import SentinelError
from sentinel.core.model.intent import Action
from sentinel.core.policy.discover import Sieve
from sentinel.core.policy.guard import Budget, ManyFailing
from sentinel.core.policy.remedy import Remedy, Rung
from sentinel.core.policy.witness import Patience
from sentinel.runtime.plan import Plan, TargetPlan
from sentinel.runtime.routing import inhibit_rules_of, intervals_of, route_of

STOP_FILE = "STOP"


def plan_of(loaded: Loaded, env: Mapping[str, str]) -> Plan:
    """Raises `ConfigRefused` if a file of rules or of patterns cannot be taken."""
    settings = loaded.settings
    shared, guards = settings.global_, settings.guards
    host = shared.external_labels["host"]
    return Plan(
        host=host,
        mode=settings.mode,
        language=shared.language,
        external_labels=shared.external_labels,
        discover=[_sieve(entry) for entry in settings.targets.discover],
        exclude=[_sieve(entry) for entry in settings.targets.exclude],
        looks_default=settings.targets.by_default,
        target=_targets(settings, env),
        pool_of=_pools(settings),
        min_healthy={name: pool.min_healthy for name, pool in settings.pools.items()},
        switched=frozenset(name for name, pool in settings.pools.items() if pool.switch),
        maintenance=[(each.time_interval, each.targets) for each in settings.maintenance],
        scrape_interval=shared.scrape_interval,
        scrape_timeout=shared.scrape_timeout,
        evaluation_interval=shared.evaluation_interval,
        reconcile_interval=settings.docker.reconcile_interval,
        remedies=[_remedy(remedy) for remedy in settings.remedies],
        cooldown=guards.cooldown,
        budget=Budget(
            target_per_hour=guards.budget.per_target.per_hour,
            target_per_day=guards.budget.per_target.per_day,
            host_at_once=guards.budget.per_host.at_once,
            host_per_hour=guards.budget.per_host.per_hour,
        ),
        many_failing=ManyFailing(
            at_least=guards.many_failing.at_least, within=guards.many_failing.within
        ),
        verify_within=guards.verify_within,
        approval_expires=guards.approval_expires,
        group_interval=settings.route.group_interval or timedelta(seconds=5),
        route=route_of(settings),
        inhibit_rules=inhibit_rules_of(settings),
        intervals=intervals_of(settings),
        resolve_timeout=shared.resolve_timeout,
        accept_external=settings.accept_external,
        as_alertmanager=as_alertmanager(settings),
        rules=rules_of(settings),
        log_patterns=load_all_patterns(settings.log_patterns),
        share_logs=settings.share_logs,
        stop_files=_stop_files(loaded),
        problems=[*_problems(settings), *(str(fault) for fault in loaded.unready)],
        history_for=settings.retention.history,
        keep_all=settings.store.keep == "all",
        metrics_retention=settings.store.metrics_retention,
        fingerprint=loaded.fingerprint,
    )


def rules_of(settings: Settings) -> list[RuleGroup]:
    """The shipped rules and the operator's own less what is disabled, and the presets enabled."""
    chosen = settings.rules
    shipped = shipped_rules() if chosen.shipped else []
    presets = shipped_presets() if chosen.enable else []
    own = [Path(found) for pattern in chosen.files for found in sorted(glob(pattern))]  # noqa: PTH207 - the pattern is absolute
    asked_for = {os.fspath(file): chosen.enable for file in presets}
    groups = load_rule_files([*shipped, *presets, *own])
    return [_chosen(group, chosen.disable, asked_for.get(group.file)) for group in groups]


def shipped_rules() -> list[Path]:
    """The rule files that come with Sentinel, installed or in a checkout."""
    package = Path(str(files("sentinel")))
    folders = (package / "shipped_rules", package.parent / "rules")
    folder = next((found for found in folders if found.is_dir()), None)
    return sorted(folder.glob("*.yaml")) if folder else []


def shipped_presets() -> list[Path]:
    """Those beside them whose alerts are off until they are named."""
    return sorted(
        preset for file in shipped_rules()[:1] for preset in file.parent.glob("presets/*.yaml")
    )


def _chosen(group: RuleGroup, disabled: Sequence[str], enabled: Sequence[str] | None) -> RuleGroup:
    """Without the alerts that are disabled, and of presets with those alone that are enabled."""
    rules = tuple(
        rule
        for rule in group.rules
        if not isinstance(rule, AlertRule)
        or (rule.name not in disabled and (enabled is None or rule.name in enabled))
    )
    return replace(group, rules=rules)


def _sieve(entry: Selector) -> Sieve:
    return Sieve(label=entry.label, image=entry.image, command=entry.command, name=entry.name)


def _targets(settings: Settings, env: Mapping[str, str]) -> Callable[[str], TargetPlan]:
    known: dict[str, TargetPlan] = {}

    def of(name: str) -> TargetPlan:
        if name not in known:
            known[name] = _target(settings, name, env)
        return known[name]

    return of


def _target(settings: Settings, name: str, env: Mapping[str, str]) -> TargetPlan:
    override = settings.override_for(name)
    early = override.hung_after_in_first_minutes
    key_file = override.api_key_file

    def api_key() -> str | None:
        try:
            return read_secret_file(key_file, env) if key_file else None
        except SentinelError:
            return None  # the probe then says 401: a fault of the configuration

    return TargetPlan(
        mode=settings.mode_for(name),
        endpoint=str(override.endpoint).rstrip("/") if override.endpoint else None,
        api_key=api_key,
        patience=Patience(
            startup_deadline=override.startup_deadline,
            hung_after=override.hung_after,
            first_minutes=timedelta(minutes=early.minutes),
            hung_after_in_first_minutes=early.hung_after,
        ),
        probe_when=override.probe.when,
        probe_interval=override.probe.interval,
        probe_deadline=override.probe.deadline,
    )


def _pools(settings: Settings) -> Callable[[str], str | None]:
    def of(name: str) -> str | None:
        for pool, members in settings.pools.items():
            if any(fnmatchcase(name, pattern) for pattern in members.targets):
                return pool
        return None

    return of


def _remedy(setting: RemedySetting) -> Remedy:
    return Remedy(
        match=setting.matchers,
        name=setting.name or "",
        mode=setting.mode,
        ladder=tuple(
            Rung(
                action=Action(step.kind),
                mode=step.options.mode,
                settings=step.options.model_dump(),
            )
            for step in setting.ladder
        ),
    )


def _stop_files(loaded: Loaded) -> list[str]:
    folders = {file.parent for file in loaded.files[:1]} | {loaded.settings.state_dir}
    return [os.fspath(folder / STOP_FILE) for folder in sorted(folders)]


def _problems(settings: Settings) -> list[str]:
    found: list[str] = []
    if not any(receiver.channels for receiver in settings.receivers):
        found.append("no receiver is configured: nobody is told, only the log")
    return found
