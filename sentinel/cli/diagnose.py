"""`sentinel diagnose`: names the cause of a failure from files, without a daemon.

Exit status: 0 a cause is named, 1 it is unknown, 2 usage.
"""

from pathlib import Path
from typing import Annotated

import typer

from sentinel.cli.options import JsonOption
from sentinel.cli.text import say_json

LogArgument = Annotated[
    Path | None,
    typer.Argument(metavar="LOG", help="The container's log; - reads standard input."),
]
ExitCodeOption = Annotated[
    int | None, typer.Option("--exit-code", metavar="N", help="What the container exited with.")
]
InspectOption = Annotated[
    Path | None, typer.Option("--inspect", metavar="FILE", help="What docker inspect prints.")
]
MetricsOption = Annotated[
    list[Path] | None,
    typer.Option("--metrics", metavar="FILE", help="What /metrics said; twice, in order of time."),
]
ApartOption = Annotated[
    str | None,
    typer.Option("--apart", metavar="DURATION", help="How far apart the last two are, e.g. 15s."),
]
PatternsOption = Annotated[
    Path | None,
    typer.Option("--patterns", metavar="FILE", help="Patterns of your own, tried before ours."),
]


def diagnose(  # noqa: PLR0913, PLR0917 - one for each thing that may be at hand
    log: LogArgument = None,
    exit_code: ExitCodeOption = None,
    inspect: InspectOption = None,
    metrics: MetricsOption = None,
    apart: ApartOption = None,
    patterns: PatternsOption = None,
    as_json: JsonOption = False,
) -> None:
    """Name the cause of a failure from files: 0 named, 1 unknown, 2 usage."""
    from sentinel.cli import diagnosing  # noqa: PLC0415 - the patterns are heavy

    found = diagnosing.diagnosis_of(log, exit_code, inspect, metrics or [], apart, patterns)
    if as_json:
        say_json(found.as_json())
    else:
        diagnosing.show(found)
    raise typer.Exit(1 if found.cause == "unknown" else 0)
