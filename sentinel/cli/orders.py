"""What a person tells a running daemon to do: pause, resume, reload, ack, approve, reject."""

from typing import Annotated, Any

import typer

from sentinel.cli.options import JsonOption, SocketOption, numbered
from sentinel.cli.places import socket_path
from sentinel.cli.text import paragraph, say, say_json
from sentinel.client.daemon import Daemon

TargetArgument = Annotated[
    str | None,
    typer.Argument(metavar="[TARGET]", help="One target; all of them if left out."),
]
IntentArgument = Annotated[
    str, typer.Argument(metavar="INTENT", help="n-000012, or just 12; status lists them.")
]


def pause(
    target: TargetArgument = None,
    for_: Annotated[
        str | None,
        typer.Option(
            "--for", metavar="DURATION", help="90s, 15m, 2h, 1d; until `resume` if left out."
        ),
    ] = None,
    socket: SocketOption = None,
    as_json: JsonOption = False,
) -> None:
    """Keep Sentinel's hands off; it goes on watching and telling."""
    done = Daemon(socket_path(socket)).pause(target, for_)
    end = f"for {for_}" if for_ else "until sentinel resume"
    _tell(done, f"{target or 'Every target'} is paused {end}.", as_json=as_json)


def resume(
    target: TargetArgument = None, socket: SocketOption = None, as_json: JsonOption = False
) -> None:
    """Let Sentinel act again."""
    done = Daemon(socket_path(socket)).resume(target)
    _tell(done, f"{target or 'Every target'} is no longer paused.", as_json=as_json)


def reload(socket: SocketOption = None, as_json: JsonOption = False) -> None:
    """Read the configuration and the rules again; refused ones change nothing."""
    done = Daemon(socket_path(socket)).reload()
    _tell(done, "The configuration has been reloaded.", as_json=as_json)


def ack(
    incident: Annotated[str, typer.Argument(metavar="INCIDENT", help="i-000007, or just 7.")],
    socket: SocketOption = None,
    as_json: JsonOption = False,
) -> None:
    """Say that you have seen an incident and are at it."""
    name = numbered("i", incident)
    _tell(Daemon(socket_path(socket)).acknowledge(name), f"{name} is yours.", as_json=as_json)


def approve(
    intent: IntentArgument, socket: SocketOption = None, as_json: JsonOption = False
) -> None:
    """Let an action that waits for approval be done."""
    name = numbered("n", intent)
    text = f"{name} is approved; sentinel intents shows how it goes."
    _tell(Daemon(socket_path(socket)).approve(name), text, as_json=as_json)


def reject(
    intent: IntentArgument,
    because: Annotated[str, typer.Option("--because", help="Why not; it is recorded.")] = "",
    socket: SocketOption = None,
    as_json: JsonOption = False,
) -> None:
    """Refuse an action that waits for approval."""
    name = numbered("n", intent)
    done = Daemon(socket_path(socket)).reject(name, because)
    _tell(done, f"{name} is rejected.", as_json=as_json)


def _tell(done: dict[str, Any], text: str, *, as_json: bool) -> None:
    if as_json:
        say_json(done)
        return
    say(text)
    for warning in done.get("warnings") or []:
        say(paragraph(warning, first="warning: "))
