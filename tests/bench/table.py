"""The figures as a page to read. Whatever misses its limit says so in its row."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

Json = Mapping[str, Any]
LIMIT_MB, LIMIT_PARSE_MS, LIMIT_EVALUATE_MS = 100, 0.5, 10
LIMIT_SIXTEEN_MS = (5.0, 30.0, 300.0)  # over 8, 64 and 512 targets
LIMIT_BYTES = 16.0
LIMIT_LINES = 50_000  # a second, at least, of a typical log

HEAD = """\
# Figures

Written by `make bench`; the numbers behind it are in `tests/bench/figures.json`.
Measured on {at} with Sentinel {sentinel}, Python {python}, Docker {docker}, Linux {linux},
{cores} cores of {processor}; the load average from other work was {load} before it began.
Sentinel runs beside Debian's Prometheus {prometheus} and Alertmanager {alertmanager} (`group_wait: 0s`) at the same
time, over the same {targets} simulated vLLM servers in Docker, with the same rules and intervals.
"""
NOTES = """\
* A metric fault begins when the target's own `/metrics` shows it, a death when Docker says that the container
  finished; they are spread evenly over the interval, in random order. The rules used to time them have no `for`.
  With ten tries p99 is the slowest of them.
* Sentinel watches Docker's events and Prometheus cannot: to it a dead container is a scrape that fails.
* Memory is resident memory at the end of the time measured (`VmRSS`); the peak is since the start (`VmHWM`).
* "A straggler" is one of the targets answering its scrapes too late, every time.
"""


def page(figures: Json) -> str:
    parts = [HEAD.format(targets=figures["targets"], **figures["versions"])]
    parts.extend(_run(run) for run in figures["runs"])
    parts.append(_inside(figures["inside"]))
    parts.append(_engine(figures["engine"]))
    if "logs" in figures:  # figures from before it was measured have none
        parts.append(_logs(figures["logs"]))
    parts.append(f"## How to read them\n\n{NOTES}")
    return "\n".join(parts)


def _run(run: Json) -> str:
    interval = run["interval"]
    rows = [
        _row("resident memory, MB", run, "resident_mb", at_most=LIMIT_MB),
        _row("peak memory, MB", run, "peak_mb"),
        _row("processor, % of a core", run, "processor_percent", below_theirs=True),
    ]
    half = interval / 2 + 0.1
    for key, title, mean, worst in (
        ("metric", "metric fault → message", half, interval + 0.25),
        ("metric_straggler", "the same beside a straggler", half, interval + 0.25),
        ("death", "death of a container → message", 1.0, 1.0),
    ):
        rows.append(_row(f"{title}, mean s", run[key], "mean", at_most=mean))
        rows.append(_row(f"{title}, p99 s", run[key], "p99", at_most=worst))
    title = f"## Scraping every {interval} s"
    head = ["", "Sentinel", "Prometheus and Alertmanager", "ratio", "aim", ""]
    return f"{title}\n\n{_table(head, rows)}\n"


def _row(
    title: str,
    sides: Json,
    key: str,
    *,
    at_most: float | None = None,
    below_theirs: bool = False,
) -> list[str]:
    ours: float = sides["sentinel"][key]
    theirs: float | None = sides["prometheus"][key] if "prometheus" in sides else None
    aim = "≤ theirs" if below_theirs else "" if at_most is None else f"≤ {at_most:g}"
    return [
        title,
        f"{ours:g}",
        f"{theirs:g}" if theirs else "",
        f"{ours / theirs:.2f}" if theirs else "",
        aim,
        _verdict(ours, theirs if below_theirs else at_most),
    ]


def _verdict(value: float, limit: float | None) -> str:
    if limit is None:
        return ""
    return "met" if value <= limit else "**not met**"


def _inside(inside: Json) -> str:
    evaluate = inside["evaluate_ms"]
    rows = [
        _limit(f"a scrape of {inside['body_kb']} KB to series", inside["parse_ms"], LIMIT_PARSE_MS),
        _limit("the shipped rules over 8 targets", evaluate["8"], LIMIT_EVALUATE_MS),
        ["the shipped rules over 64 targets", f"{evaluate['64']:g}", "", ""],
    ]
    return f"## Inside, processor time\n\n{_table(['', 'ms', 'aim', ''], rows)}\n"


def _engine(engine: Json) -> str:
    rows = [
        [*_limit(f"16 typical rules over {size} targets, warm", cost["warm_ms"], limit), ratio]
        for (size, cost), limit in zip(
            engine["sixteen_rules"].items(), LIMIT_SIXTEEN_MS, strict=True
        )
        if (ratio := f"{cost['of_a_yardstick']:g}")
    ]
    size = engine["bytes_a_sample"]
    rows.append([*_limit("bytes a sample, labels included", size, LIMIT_BYTES), ""])
    head = ["", "ms", "aim", "", "of sorting 200 000 numbers"]
    return f"## The rule engine\n\n{_table(head, rows)}\n"


def _logs(logs: Json) -> str:
    rows = [
        [
            kind,
            f"{cost['lines_a_second']:.0f}",
            f"≥ {LIMIT_LINES}" if kind == "typical" else "",
            _verdict(LIMIT_LINES, cost["lines_a_second"]) if kind == "typical" else "",
            f"{cost['of_splitting']:g}",
        ]
        for kind, cost in logs.items()
    ]
    head = ["", "lines a second", "aim", "", "of splitting it into lines"]
    return f"## The reader of logs, processor time\n\n{_table(head, rows)}\n"


def _limit(title: str, value: float, limit: float) -> list[str]:
    return [title, f"{value:g}", f"≤ {limit:g}", _verdict(value, limit)]


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
