"""`sentinel query`: an expression over the series that Sentinel keeps, printed as promtool does."""

import json
from collections.abc import Iterator, Mapping
from typing import Annotated, Any

import typer

from sentinel.cli.options import JsonOption, SocketOption
from sentinel.cli.places import socket_path
from sentinel.cli.text import clean, complain, say, say_json
from sentinel.client.daemon import Daemon

PATIENCE = 40.0  # seconds; the daemon gives a query 30
POINTS = 250  # of a line, if no step is given

Json = dict[str, Any]
WHEN = "RFC 3339 or seconds since 1970"


def query(  # noqa: PLR0913, PLR0917 - one for each option
    expression: Annotated[str, typer.Argument(metavar="EXPR", help="A PromQL expression.")],
    time: Annotated[
        str | None, typer.Option("--time", metavar="T", help=f"{WHEN}; default now.")
    ] = None,
    start: Annotated[
        str | None, typer.Option("--start", metavar="T", help=f"Evaluate over time, from: {WHEN}.")
    ] = None,
    end: Annotated[str | None, typer.Option("--end", metavar="T", help="To; default now.")] = None,
    step: Annotated[
        str | None,
        typer.Option(
            "--step", metavar="D", help="30s, 5m or seconds; default a 250th, at least 1s."
        ),
    ] = None,
    socket: SocketOption = None,
    as_json: JsonOption = False,
) -> None:
    """Evaluate a PromQL expression: 0 there is a result, 1 there is none."""
    if start is None and (end or step):
        raise typer.BadParameter("goes with --start", param_hint="--end, --step")
    if start is not None and time is not None:
        raise typer.BadParameter("goes without --start", param_hint="--time")
    daemon = Daemon(socket_path(socket), answer_within=PATIENCE)
    if start is None:
        answer = daemon.query(expression, {"time": time} if time else {})
    else:
        answer = daemon.query(expression, _span(daemon, start, end, step))
    data: Json = answer["data"]
    if as_json:
        say_json({**data, **{key: answer[key] for key in ("warnings", "infos") if key in answer}})
    else:
        for line in lines_of(data):
            say(line)
        if not data["result"]:
            complain("no result")
        for told in (*answer.get("warnings", ()), *answer.get("infos", ())):
            complain(clean(told))
    raise typer.Exit(0 if data["result"] else 1)


def _span(daemon: Daemon, start: str, end: str | None, step: str | None) -> dict[str, str]:
    """What the daemon makes of the times: it knows the hour, and how they are written."""
    first = _seconds(daemon, {"time": start})
    last = _seconds(daemon, {"time": end} if end else {})
    default = max(int((last - first) / POINTS), 1)
    return {"start": f"{first}", "end": f"{last}", "step": step or f"{default}"}


def _seconds(daemon: Daemon, when: Mapping[str, str]) -> float:
    return float(daemon.query("time()", when)["data"]["result"][1])


def lines_of(data: Json) -> Iterator[str]:
    """The result in promtool's words."""
    result = data["result"]
    match data["resultType"]:
        case "scalar":
            yield f"scalar: {result[1]} @[{_time(result[0])}]"
        case "string":
            yield clean(result[1])
        case "vector":
            for row in result:
                yield f"{_metric(row['metric'])} => {row['value'][1]} @[{_time(row['value'][0])}]"
        case _:
            for row in result:
                yield f"{_metric(row['metric'])} =>"
                for at, value in row["values"]:
                    yield f"{value} @[{_time(at)}]"


def _metric(labels: Mapping[str, str]) -> str:
    """`name{a="b", c="d"}`."""
    rest = ", ".join(
        f"{name}={json.dumps(clean(labels[name]), ensure_ascii=False)}"
        for name in sorted(labels)
        if name != "__name__"
    )
    name = clean(labels["__name__"]) if "__name__" in labels else ""
    return f"{name}{{{rest}}}" if rest or not name else name


def _time(at: float) -> str:
    return f"{at:.3f}".rstrip("0").rstrip(".")
