"""The HTTP part of /metrics, as prometheus-fastapi-instrumentator writes it for vLLM.

A series exists only once its handler has been asked; /metrics, /health, /ping, /load and
/version are never counted. An answer whose client has gone away counts as 2xx, as it does there.
"""

import time

from .exposition import go_float

UNCOUNTED = ("/metrics", "/health", "/ping", "/load", "/version", "/server_info")
FINE = (
    *(0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5),
    *(5.0, 7.5, 10.0, 30.0, 60.0, float("inf")),
)
COARSE = (0.1, 0.5, 1.0, float("inf"))
HELP = {
    "http_requests": "Total number of requests by method, status and handler.",
    "http_request_size_bytes": "Content length of incoming requests by handler. "
    "Only value of header is respected. Otherwise ignored. No percentile calculated. ",
    "http_response_size_bytes": "Content length of outgoing responses by handler. "
    "Only value of header is respected. Otherwise ignored. No percentile calculated. ",
    "http_request_duration_highr_seconds": "Latency with many buckets but no API specific labels. "
    "Made for more accurate percentile calculations. ",
    "http_request_duration_seconds": "Latency with only few buckets by handler. "
    "Made to be only used if aggregation by handler is important. ",
}


class _Family:
    """One family: sums by label set, and the time each label set was first seen."""

    def __init__(self, name: str, kind: str, bounds: tuple[float, ...] = ()) -> None:
        self._name, self._kind, self._bounds = name, kind, bounds
        self._seen: dict[str, list[float]] = {}  # labels -> created, count, sum, one per bound

    def add(self, labels: str, value: float) -> None:
        row = self._seen.setdefault(labels, [time.time(), 0.0, 0.0] + [0.0] * len(self._bounds))
        row[1] += 1
        row[2] += value
        for at, bound in enumerate(self._bounds, start=3):
            row[at] += value <= bound

    def born(self) -> None:
        self._seen.setdefault("", [time.time(), 0.0, 0.0] + [0.0] * len(self._bounds))

    def lines(self) -> list[str]:
        total = "_total" if self._kind == "counter" else ""
        text = [
            f"# HELP {self._name}{total} {HELP[self._name]}",
            f"# TYPE {self._name}{total} {self._kind}",
        ]
        for labels, row in self._seen.items():
            within = f"{{{labels}}}" if labels else ""
            if self._kind == "counter":
                text.append(f"{self._name}_total{within} {go_float(row[1])}")
                continue
            for at, bound in enumerate(self._bounds, start=3):
                text.append(f"{self._name}_bucket{{{_with_le(labels, bound)}}} {go_float(row[at])}")
            text.append(f"{self._name}_count{within} {go_float(row[1])}")
            text.append(f"{self._name}_sum{within} {go_float(row[2])}")
        if self._seen:
            text.append(f"# HELP {self._name}_created {HELP[self._name]}")
            text.append(f"# TYPE {self._name}_created gauge")
        for labels, row in self._seen.items():
            within = f"{{{labels}}}" if labels else ""
            text.append(f"{self._name}_created{within} {go_float(row[0])}")
        return text


def _with_le(labels: str, bound: float) -> str:
    parts = [part for part in labels.split(",") if part]
    return ",".join(sorted([*parts, f'le="{go_float(bound)}"']))


class HttpCounts:
    def __init__(self) -> None:
        self._requests = _Family("http_requests", "counter")
        self._received = _Family("http_request_size_bytes", "summary")
        self._sent = _Family("http_response_size_bytes", "summary")
        self._fine = _Family("http_request_duration_highr_seconds", "histogram", FINE)
        self._coarse = _Family("http_request_duration_seconds", "histogram", COARSE)
        self._fine.born()

    def count(
        self, handler: str, method: str, status: int, *, sizes: tuple[int, int], took: float
    ) -> None:
        """`sizes`: bytes received and sent, as their Content-Length said."""
        if handler in UNCOUNTED:
            return
        by_handler = f'handler="{handler}"'
        self._requests.add(f'{by_handler},method="{method}",status="{status // 100}xx"', 1)
        self._received.add(by_handler, sizes[0])
        self._sent.add(by_handler, sizes[1])
        self._fine.add("", took)
        self._coarse.add(f'{by_handler},method="{method}"', took)

    def text(self) -> str:
        families = (self._requests, self._received, self._sent, self._fine, self._coarse)
        return "\n".join(line for family in families for line in family.lines()) + "\n"
