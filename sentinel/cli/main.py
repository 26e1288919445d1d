"""`sentinel …`: every command parses, asks the daemon, prints the answer.

Exit status: 0 yes, 1 no, 2 usage or configuration, 3 daemon not reachable, 4 held by a
guard, 5 deadline passed. Errors become an exit status here and nowhere else; each ends with
what to try. This module imports nothing heavy: `sentinel status` must start fast.
"""

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from sentinel import __version__
from sentinel.cli import incidents, orders, status
from sentinel.cli.act import act
from sentinel.cli.config import config
from sentinel.cli.diagnose import diagnose
from sentinel.cli.later import LATER, add_later
from sentinel.cli.options import SocketOption
from sentinel.cli.query import query
from sentinel.cli.refusal import refuse
from sentinel.cli.rules import rules
from sentinel.cli.scorecard import scorecard
from sentinel.cli.silence import silence
from sentinel.cli.text import clean, complain, say
from sentinel.config.fault import ConfigRefused
from sentinel.core.model.errors import Ambiguous, SentinelError, Transient


class Answering(TyperGroup):
    """Turns what a command raises into a sentence and an exit status."""

    def invoke(self, ctx: Any) -> Any:
        try:
            with _flushed():
                return super().invoke(ctx)
        except ConfigRefused as refusal:
            hint = "Correct the lines above; sentinel config reference has every key."
            refuse(refusal, "the configuration is refused", hint)
        except SentinelError as error:
            for fault in _faults(error):
                say(clean(fault))
            complain(error.message, error.hint or "See journalctl -u sentinel.")
            raise typer.Exit(exit_status(error)) from None
        except KeyboardInterrupt:
            raise typer.Exit(130) from None
        except BrokenPipeError as error:
            # Whoever read us has seen enough; the answer, once found, stays what it was.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            found = error.__context__
            raise typer.Exit(found.exit_code if isinstance(found, typer.Exit) else 1) from None


@contextlib.contextmanager
def _flushed() -> Iterator[None]:
    """A broken pipe shows itself here, not while the interpreter shuts down."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    try:
        yield
    finally:
        sys.stdout.flush()


def _faults(error: SentinelError) -> list[object]:
    """Of a configuration the daemon refused: one line each, as `config check` prints them."""
    faults = error.facts.get("faults")
    return faults if isinstance(faults, list) else []


def exit_status(error: SentinelError) -> int:
    match error:
        case Transient():
            return 3
        case Ambiguous():
            return 5
    if error.facts.get("guard"):
        return 4
    refused_for_now = error.facts.get("status") in (409, 500)
    return 1 if refused_for_now else 2


app = typer.Typer(
    cls=Answering,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(asked: bool) -> None:  # noqa: FBT001 - typer calls it so
    if asked:
        typer.echo(f"sentinel {__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True)
    ] = False,
) -> None:
    """Keeps vLLM serving: watches, tells, and puts right what it safely can."""


@app.command("run")
def run_daemon(
    config: Annotated[
        Path | None,
        typer.Option(
            envvar="SENTINEL_CONFIG",
            metavar="FILE",
            help="Default /etc/sentinel/sentinel.yaml; absent is empty.",
        ),
    ] = None,
    state_dir: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Default STATE_DIRECTORY, state_dir, /var/lib/sentinel."),
    ] = None,
    socket: SocketOption = None,
) -> None:
    """Be the daemon."""
    from sentinel.cli.run import run as start  # noqa: PLC0415 - the daemon is heavy, we are not

    start(config, state_dir, socket)


app.command("status")(status.status)
app.command("alerts")(status.alerts)
app.add_typer(incidents.incidents, name="incidents")
app.command("intents")(incidents.intents)
app.command("scorecard")(scorecard)
app.command("explain")(incidents.explain)
app.command("query")(query)
app.command("diagnose")(diagnose)
app.command("pause")(orders.pause)
app.command("resume")(orders.resume)
app.command("reload")(orders.reload)
app.command("ack")(orders.ack)
app.command("approve")(orders.approve)
app.command("reject")(orders.reject)
app.add_typer(act, name="act")
app.add_typer(silence, name="silence")
app.add_typer(config, name="config")
app.add_typer(rules, name="rules")
add_later(app, LATER)


def run() -> None:
    """The entry point `sentinel`."""
    app(prog_name="sentinel")
