"""`sentinel status` and `sentinel alerts`: how it is now."""

from typing import Any

import typer

from sentinel.cli.last_known import last_known
from sentinel.cli.options import JsonOption, SocketOption, StateOption
from sentinel.cli.places import socket_path, state_folder
from sentinel.cli.status_view import show_alerts, show_status
from sentinel.cli.text import complain, say, say_json
from sentinel.client.daemon import Daemon
from sentinel.core.model.errors import Transient


def status(
    socket: SocketOption = None, state_dir: StateOption = None, as_json: JsonOption = False
) -> None:
    """Say how every target is, what was done and what is held back.

    Exit status: 0 all is well, 1 it is not, 3 the daemon does not answer (the last known
    state is shown with its age).
    """
    lost: Transient | None = None
    try:
        found = Daemon(socket_path(socket), answer_within=5.0).status()
    except Transient as error:
        lost, found = error, last_known(state_folder(state_dir))
    if as_json:
        say_json(found)
    else:
        show_status(found)
    if lost is not None:
        complain(lost.message, lost.hint)
        raise typer.Exit(3)
    raise typer.Exit(0 if found.get("ok") else 1)


def alerts(socket: SocketOption = None, as_json: JsonOption = False) -> None:
    """List the alerts that are pending or firing."""
    found: list[dict[str, Any]] = Daemon(socket_path(socket)).status()["alerts"]
    if as_json:
        say_json({"alerts": found})
    elif found:
        show_alerts(found)
    else:
        say("No alert is pending or firing.")
