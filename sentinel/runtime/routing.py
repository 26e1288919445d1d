"""Routes, inhibitions and intervals: from settings to the lifecycle's own values."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import tzinfo
from zoneinfo import ZoneInfo

from sentinel.config.intervals import IntervalSpec, TimeInterval
from sentinel.config.routing import InhibitRule as InhibitRuleSetting
from sentinel.config.routing import Route as RouteSetting
from sentinel.config.routing import root_route
from sentinel.config.settings import Settings
from sentinel.core.dispatch.inhibit import InhibitRule
from sentinel.core.dispatch.interval import Interval, Minutes, Span, Times
from sentinel.core.dispatch.route import Route
from sentinel.core.model.labels import Matcher

_EACH_ALONE = "..."
_A_RECEIVER_FAILS = (Matcher("alertname", "=", "SentinelReceiverFailing"),)


def route_of(settings: Settings) -> Route:
    """The tree as it is set; that a receiver fails is also said on the other way out."""
    root = _route(root_route(settings.route, settings.receivers))
    fallback = settings.global_.fallback_receiver
    if fallback is None:
        return root
    way_out = replace(
        root, receiver=fallback, matchers=_A_RECEIVER_FAILS, continues=True, routes=()
    )
    return replace(root, routes=(way_out, *root.routes))


def inhibit_rules_of(settings: Settings) -> tuple[InhibitRule, ...]:
    return tuple(_inhibit_rule(rule) for rule in settings.inhibit_rules)


def intervals_of(settings: Settings) -> Mapping[str, Interval]:
    return {name: _interval(setting) for name, setting in settings.intervals.items()}


def _route(setting: RouteSetting) -> Route:
    """`setting` is filled: it has taken from its parent what it leaves out."""
    assert setting.receiver is not None and setting.group_by is not None  # noqa: PT018 - filled
    assert setting.group_wait is not None
    assert setting.group_interval is not None and setting.repeat_interval is not None  # noqa: PT018
    return Route(
        receiver=setting.receiver,
        matchers=setting.all_matchers,
        continues=setting.continue_,
        group_by=frozenset(setting.group_by) - {_EACH_ALONE},
        groups_by_all=_EACH_ALONE in setting.group_by,
        group_wait=setting.group_wait,
        group_interval=setting.group_interval,
        repeat_interval=setting.repeat_interval,
        mute_time_intervals=setting.mute_time_intervals,
        active_time_intervals=setting.active_time_intervals,
        routes=tuple(_route(child) for child in setting.routes),
    )


def _inhibit_rule(setting: InhibitRuleSetting) -> InhibitRule:
    return InhibitRule(
        source=setting.source, target=setting.target, equal=setting.equal, name=setting.name or ""
    )


def _interval(setting: TimeInterval) -> Interval:
    return Interval(tuple(_times(spec) for spec in setting.time_intervals))


def _times(spec: IntervalSpec) -> Times:
    return Times(
        minutes=tuple(Minutes(times.start_time, times.end_time) for times in spec.times),
        weekdays=tuple(Span(*span) for span in spec.weekdays),
        days_of_month=tuple(Span(*span) for span in spec.days_of_month),
        months=tuple(Span(*span) for span in spec.months),
        years=tuple(Span(*span) for span in spec.years),
        zone=_zone(spec.location),
    )


def _zone(name: str) -> tzinfo | None:
    return None if name == "Local" else ZoneInfo(name)
