"""`sentinel config …`: what a configuration means, without a daemon.

Faults go to standard output, one a line, so that an editor or a pipe can read them;
warnings go to standard error. No secret is ever printed.
"""

from pathlib import Path
from typing import Annotated

import typer

from sentinel.cli.later import add_later
from sentinel.cli.options import JsonOption
from sentinel.cli.refusal import refuse
from sentinel.cli.text import complain, say, say_json
from sentinel.config.fault import ConfigRefused
from sentinel.core.model.errors import Permanent

config = typer.Typer(no_args_is_help=True, help="Check and explain the configuration.")

FileArgument = Annotated[
    Path | None,
    typer.Argument(
        metavar="[FILE]", help="Default SENTINEL_CONFIG, else /etc/sentinel/sentinel.yaml."
    ),
]
REFUSED = "the configuration is refused"
HINT = "Correct the lines above; sentinel config reference has every key."


@config.command("check")
def check(file: FileArgument = None, as_json: JsonOption = False) -> None:
    """Say all that is wrong with a configuration, its drop-ins and rules: 0 good, 2 refused."""
    from sentinel.cli import reading  # noqa: PLC0415 - validation is heavy

    try:
        loaded = reading.check(file)
    except ConfigRefused as refusal:
        refuse(refusal, REFUSED, HINT, as_json=as_json)
    if as_json:
        warnings = [str(warning) for warning in loaded.warnings]
        say_json({"ok": True, "faults": [], "warnings": warnings})
        return
    for warning in loaded.warnings:
        complain(f"warning: {warning}")
    files = ", ".join(str(read) for read in loaded.files)
    say(f"The configuration is good: {files}" if files else "No file: every default holds.")


@config.command("export")
def export(
    file: FileArgument = None,
    alertmanager: Annotated[
        bool, typer.Option("--alertmanager", help="As an alertmanager.yml.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Print the configuration as it is understood: drop-ins merged, defaults filled in."""
    import yaml  # noqa: PLC0415 - only this command writes YAML

    from sentinel.cli import reading  # noqa: PLC0415 - validation is heavy

    if alertmanager and as_json:
        raise typer.BadParameter("goes without --json", param_hint="--alertmanager")
    try:
        if alertmanager:
            say(reading.export_alertmanager(file).rstrip())
            return
        shown = reading.export(file)
    except ConfigRefused as refusal:
        refuse(refusal, REFUSED, HINT, as_json=as_json)
    if as_json:
        say_json(shown)
    else:
        say(yaml.safe_dump(shown, sort_keys=False, allow_unicode=True).rstrip())


@config.command("reference")
def reference() -> None:
    """Print the manual: every key, its type, its default and what it means."""
    from sentinel.config.reference import manual  # noqa: PLC0415 - renders the settings' own words

    say(manual().rstrip())


@config.command("init")
def init(file: FileArgument = None) -> None:
    """Write every key, commented out, to FILE, or print it; an existing file is left alone."""
    from sentinel.config.sample import sample  # noqa: PLC0415 - renders the settings' own words

    if file is None:
        say(sample().rstrip())
        return
    try:
        with file.open("x", encoding="utf-8") as opened:
            opened.write(sample())
    except OSError as error:
        raise Permanent(
            f"cannot write {file}: {error.strerror or error}",
            hint="Nothing was changed. Without FILE the text is printed.",
        ) from None
    say(f"Written to {file}; next: sentinel config check {file}")


add_later(
    config, {"diff": "compare two outputs of: sentinel config export"}, prefix="sentinel config"
)
