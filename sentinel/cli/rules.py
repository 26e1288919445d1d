"""`sentinel rules …`: check and test rule files as promtool does, with Sentinel's own engine."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from sentinel.cli.options import JsonOption
from sentinel.cli.refusal import refuse
from sentinel.cli.text import say, say_json
from sentinel.config.fault import ConfigRefused

REFUSED = "the rules are refused"
HINT = "Correct the lines above."

rules = typer.Typer(no_args_is_help=True, help="Check and test rule files.")

FilesArgument = Annotated[list[Path], typer.Argument(metavar="FILES...")]
Compat = Literal[2, 3]
CompatOption = Annotated[
    int, typer.Option(min=2, max=3, metavar="2|3", help="Prometheus's language, version 2 or 3.")
]


@rules.command("check")
def check(files: FilesArgument, compat: CompatOption = 3, as_json: JsonOption = False) -> None:
    """Say all that is wrong with rule files: 0 good, 2 refused."""
    from sentinel.config.rulefile import load_rule_files  # noqa: PLC0415 - the engine is heavy

    try:
        groups = load_rule_files(files, compat=_compat(compat))
    except ConfigRefused as refusal:
        refuse(refusal, REFUSED, HINT, as_json=as_json)
    counts = {str(file): 0 for file in files}
    for group in groups:
        counts[group.file] = counts.get(group.file, 0) + len(group.rules)
    if as_json:
        say_json({"ok": True, "faults": [], "rules": counts})
        return
    for file, count in counts.items():
        say(f"{file}: {count} rules")


@rules.command("test")
def run_tests(
    files: FilesArgument,
    compat: CompatOption = 3,
    exact: Annotated[
        bool, typer.Option("--exact", help="Values must agree to the last digit.")
    ] = False,
    run: Annotated[
        str | None, typer.Option(metavar="REGEX", help="Only tests whose name this finds.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Run rule tests in promtool's format: 0 all passed, 1 one failed, 2 a file is refused."""
    from sentinel.cli import trying  # noqa: PLC0415 - the engine is heavy

    try:
        outcomes = trying.run_tests(files, compat=_compat(compat), exact=exact, run=run)
    except ConfigRefused as refusal:
        refuse(refusal, "the tests are refused", HINT, as_json=as_json)
    failed = sum(not outcome.passed for outcome in outcomes)
    if as_json:
        say_json({"ok": not failed, "tests": [trying.as_json(outcome) for outcome in outcomes]})
    else:
        for line in trying.report(outcomes):
            say(line)
        say(f"{len(outcomes) - failed} passed, {failed} failed")
    raise typer.Exit(1 if failed else 0)


def _compat(given: int) -> Compat:
    return 2 if given == 2 else 3
