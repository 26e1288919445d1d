"""`sentinel incidents`, `intents` and `explain`: what happened, what was done, and why."""

from typing import Annotated

import typer

from sentinel.cli.explain_view import show_explanation
from sentinel.cli.incident_view import show_incident, show_incidents, show_intents
from sentinel.cli.options import JsonOption, SocketOption, numbered
from sentinel.cli.places import socket_path
from sentinel.cli.text import say, say_json
from sentinel.client.daemon import Daemon

incidents = typer.Typer()


@incidents.callback(invoke_without_command=True)
def list_incidents(
    context: typer.Context,
    socket: SocketOption = None,
    as_json: JsonOption = False,
    open_only: Annotated[bool, typer.Option("--open", help="Only those not resolved.")] = False,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="How many at most.")] = 100,
) -> None:
    """List incidents, newest first; `show ID` tells the story of one."""
    if context.invoked_subcommand is not None:
        context.obj = socket
        return
    found = Daemon(socket_path(socket)).incidents(limit=limit, status="open" if open_only else None)
    if as_json:
        say_json({"incidents": found})
    elif found:
        show_incidents(found)
    else:
        say("No incident is open." if open_only else "No incident is recorded.")


@incidents.command("show")
def show(
    context: typer.Context,
    incident: Annotated[str, typer.Argument(metavar="ID", help="i-000007, or just 7.")],
    socket: SocketOption = None,
    as_json: JsonOption = False,
) -> None:
    """Tell one incident from its first alert to its end."""
    daemon = Daemon(socket_path(socket or context.obj))
    found = daemon.incident(numbered("i", incident))
    if as_json:
        say_json(found)
    else:
        show_incident(found)


def intents(socket: SocketOption = None, as_json: JsonOption = False) -> None:
    """List what was decided: every action, who asked for it and how it ended."""
    found = Daemon(socket_path(socket)).intents()
    if as_json:
        say_json({"intents": found})
    elif found:
        show_intents(found)
    else:
        say("Nothing has been decided yet.")


def explain(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A target, as status names it.")],
    socket: SocketOption = None,
    as_json: JsonOption = False,
) -> None:
    """Say why a target is in its state, and what happens next."""
    found = Daemon(socket_path(socket)).explain(name)
    if as_json:
        say_json(found)
    else:
        show_explanation(found)
