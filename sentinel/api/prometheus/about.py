"""`status/…`: what Sentinel says of itself where a client expects a Prometheus.

The version is that of the Prometheus whose API and language this is, since clients decide by
it what they may ask; Sentinel's own is beside it. Nothing is said that is not known.
"""

import os
from collections import Counter
from collections.abc import Iterable
from typing import Any

from sentinel import __version__
from sentinel.api.prometheus.copies import Known
from sentinel.api.prometheus.desk import LONGEST, MOST_SAMPLES
from sentinel.api.prometheus.envelope import Found
from sentinel.api.prometheus.query import LOOKBACK
from sentinel.api.prometheus.question import Question
from sentinel.core.alerting.duration import show_duration
from sentinel.core.model.labels import NAME, value_of

SPEAKS = "3.5.0"
SHOWN = 10

Json = dict[str, Any]


def build(_: Question) -> Found:
    return Found(
        {
            "version": SPEAKS,
            "revision": "",
            "branch": "",
            "buildUser": "",
            "buildDate": "",
            "goVersion": "",
            "sentinel": __version__,
        }
    )


def flags(question: Question) -> Found:
    about = question.copies.about()
    return Found(
        {
            "query.lookback-delta": show_duration(LOOKBACK),
            "query.max-samples": str(MOST_SAMPLES),
            "query.timeout": f"{LONGEST:g}s",
            "storage.tsdb.retention.time": show_duration(about.retention),
        }
    )


def config(question: Question) -> Found:
    about = question.copies.about()
    lines = [
        "global:",
        f"  scrape_interval: {show_duration(about.scrape_interval)}",
        f"  scrape_timeout: {show_duration(about.scrape_timeout)}",
        f"  evaluation_interval: {show_duration(about.evaluation_interval)}",
        "scrape_configs:",
        "- job_name: vllm",
    ]
    return Found({"yaml": "\n".join(lines) + "\n"})


def runtime(question: Question) -> Found:
    return Found(
        {
            "GOMAXPROCS": os.cpu_count() or 1,
            "storageRetention": show_duration(question.copies.about().retention),
        }
    )


def series(question: Question) -> Found:
    """`status/tsdb`: how many series there are, and of what."""
    limit = question.form.limit() or SHOWN
    known = question.copies.known(None, question.within)
    pairs = Counter(pair for each in known for pair in each.labels)
    values: Counter[str] = Counter(name for name, _ in pairs)
    size: Counter[str] = Counter()
    for name, value in pairs:
        size[name] += len(value.encode("utf-8", "replace"))
    return Found(
        {
            "headStats": _head(known, len(pairs)),
            "seriesCountByMetricName": _top(
                Counter(value_of(each.labels, NAME) for each in known), limit
            ),
            "labelValueCountByLabelName": _top(values, limit),
            "memoryInBytesByLabelName": _top(size, limit),
            "seriesCountByLabelValuePair": _top(
                Counter({f"{name}={value}": count for (name, value), count in pairs.items()}),
                limit,
            ),
        }
    )


def _head(known: Iterable[Known], pairs: int) -> Json:
    listed = list(known)
    return {
        "numSeries": len({each.labels for each in listed}),
        "numLabelPairs": pairs,
        "chunkCount": len(listed),
        "minTime": min((each.first_ms for each in listed), default=0),
        "maxTime": max((each.last_ms for each in listed), default=0),
    }


def _top(counts: "Counter[str]", limit: int) -> list[Json]:
    return [{"name": name, "value": count} for name, count in counts.most_common(limit)]
