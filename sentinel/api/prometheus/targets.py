"""`targets`, and what they say of their metrics: type, help and unit.

Also Sentinel's own series have a type and a help in `metadata`, though no target says so.
"""

from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

from sentinel.api.prometheus import figures
from sentinel.api.prometheus.copies import About, Description, Scraped
from sentinel.api.prometheus.envelope import ApiError, Found, bad
from sentinel.api.prometheus.question import Question, said
from sentinel.core.alerting.duration import show_duration
from sentinel.core.model.labels import labels_of
from sentinel.core.promql import ExpressionError, Selection, selection
from sentinel.telemetry.metrics import KNOWN

Json = dict[str, Any]
LOOPBACK = ("127.0.0.1", "localhost", "::1")
OWN = {name: Description(kind, text) for name, (kind, text) in KNOWN.items()}


def targets(question: Question) -> Found:
    address = question.form.address
    state, pool = address.get("state", "").lower(), address.get("scrapePool", "")
    about = question.copies.about()
    found = question.copies.scraped(question.within) if state in ("", "any", "active") else []
    shown = [_target(each, about) for each in found if pool in ("", each.labels["job"])]
    return Found({"activeTargets": shown, "droppedTargets": [], "droppedTargetCounts": {}})


def scrape_pools(question: Question) -> Found:
    pools = {target.labels["job"] for target in question.copies.scraped(question.within)}
    return Found({"scrapePools": sorted(pools)})


def target_metadata(question: Question) -> Found:
    form = question.form
    limit = _number(form.get("limit"), "limit")
    match, metric = _target_selection(form.get("match_target")), form.get("metric")
    found: list[Json] = []
    for target in question.copies.scraped(question.within):
        if 0 <= limit <= len(found):
            break
        if match is None or match.matches(labels_of(target.labels)):
            for name, description in _described(target.descriptions, metric):
                named = {} if metric else {"metric": name}
                found.append({"target": dict(target.labels), **named, **description._asdict()})
    return Found(found)


def metadata(question: Question) -> Found:
    form = question.form
    limit = _number(form.get("limit"), "limit")
    of_each = _number(form.get("limit_per_metric"), "limit_per_metric")
    metric = form.get("metric")
    said_by = [target.descriptions for target in question.copies.scraped(question.within)]
    found: dict[str, list[Description]] = {}
    for descriptions in (*said_by, OWN):
        for name, description in _described(descriptions, metric):
            if name not in found and 0 <= limit <= len(found):
                continue
            told = found.setdefault(name, [])
            if description not in told and not 0 < of_each <= len(told):
                told.append(description)
    return Found({name: [one._asdict() for one in told] for name, told in found.items()})


def _described(
    descriptions: Mapping[str, Description], metric: str
) -> Iterable[tuple[str, Description]]:
    if not metric:
        return descriptions.items()
    return [(metric, descriptions[metric])] if metric in descriptions else ()


def _number(given: str, name: str) -> int:
    """A limit; -1 if there is none."""
    if not given:
        return -1
    if not (given.isascii() and given.removeprefix("-").isdigit()):
        raise ApiError("bad_data", f"{name} must be a number")
    return int(given)


def _target_selection(given: str) -> Selection | None:
    if not given:
        return None
    try:
        return selection(given)
    except ExpressionError as error:
        raise bad("match_target", said(error, given)) from None


def _target(target: Scraped, about: About) -> Json:
    return {
        "discoveredLabels": dict(target.discovered),
        "labels": dict(target.labels),
        "scrapePool": target.labels["job"],
        "scrapeUrl": target.url,
        "globalUrl": _seen_from_outside(target.url, about.host),
        "lastError": target.last_error,
        "lastScrape": figures.instant(target.at),
        "lastScrapeDuration": target.took,
        "health": target.health,
        "scrapeInterval": show_duration(_whole(about.scrape_interval)),
        "scrapeTimeout": show_duration(_whole(about.scrape_timeout)),
    }


def _seen_from_outside(url: str, host: str) -> str:
    """A loopback address means nothing elsewhere: the host's name stands for it."""
    parts = urlsplit(url)
    if parts.hostname not in LOOPBACK:
        return url
    return parts._replace(netloc=host if parts.port is None else f"{host}:{parts.port}").geturl()


def _whole(span: timedelta) -> timedelta:
    return timedelta(milliseconds=span // timedelta(milliseconds=1))
