"""`sentinel act …`: have something done to a target now, held by every guard but the mode."""

import threading
from typing import Annotated, Any

import typer

from sentinel.cli.options import JsonOption, SocketOption
from sentinel.cli.places import socket_path
from sentinel.cli.text import clean, moment, paragraph, say, say_json
from sentinel.client.daemon import Daemon
from sentinel.core.model.errors import SentinelError

Facts = dict[str, Any]

act = typer.Typer(
    no_args_is_help=True, help="Have something done to a target; every guard but the mode holds."
)

TargetArgument = Annotated[str, typer.Argument(metavar="TARGET", help="As status names it.")]
DryRunOption = Annotated[
    bool, typer.Option("--dry-run", help="Only say what would be done, and what holds it.")
]
WaitOption = Annotated[bool, typer.Option("--wait", help="Until it is verified, or has failed.")]
ForceOption = Annotated[
    list[str] | None,
    typer.Option(
        "--force", metavar="GUARD", help="Do it although this guard holds; may be repeated."
    ),
]

_DONE, _FAILED, _HELD, _LATE = 0, 1, 4, 5
_ASK_AGAIN = 0.5  # seconds
_PATIENCE = 3600.0  # the daemon's own deadlines are shorter: this is for one that is gone
_GONE_FOR = 120.0  # a daemon that is restarted finishes what it has begun


@act.command("restart")
def restart(
    target: TargetArgument,
    dry_run: DryRunOption = False,
    wait: WaitOption = False,
    force: ForceOption = None,
    socket: SocketOption = None,
    as_json: JsonOption = False,
) -> None:
    """Restart it; a lowered --max-num-seqs is set back by the way."""
    how = {"dry_run": dry_run, "force": force}
    _order(Daemon(socket_path(socket)), "restart", target, how, wait=wait, as_json=as_json)


@act.command("lower-max-num-seqs")
def lower(  # noqa: PLR0913, PLR0917 - one for each option
    target: TargetArgument,
    to: Annotated[
        str | None,
        typer.Option("--to", metavar="N", help="The new limit; what really ran if left out."),
    ] = None,
    dry_run: DryRunOption = False,
    wait: WaitOption = False,
    force: ForceOption = None,
    socket: SocketOption = None,
    as_json: JsonOption = False,
) -> None:
    """Make its container anew with a lower --max-num-seqs; taken back if it does not serve."""
    how = {"dry_run": dry_run, "force": force, "to": to}
    daemon = Daemon(socket_path(socket))
    _order(daemon, "lower-max-num-seqs", target, how, wait=wait, as_json=as_json)


@act.command("restore")
def restore(
    target: TargetArgument,
    dry_run: DryRunOption = False,
    wait: WaitOption = False,
    force: ForceOption = None,
    socket: SocketOption = None,
    as_json: JsonOption = False,
) -> None:
    """Make its container anew with the --max-num-seqs that its owner gave it."""
    how = {"dry_run": dry_run, "force": force}
    _order(Daemon(socket_path(socket)), "restore", target, how, wait=wait, as_json=as_json)


def _order(
    daemon: Daemon, action: str, target: str, how: Facts, *, wait: bool, as_json: bool
) -> None:
    body = {
        "to": how.get("to"),
        "dry_run": "true" if how["dry_run"] else "false",
        "force": ",".join(how["force"] or ()),
    }
    try:
        found = daemon.act(action, target, body)
    except SentinelError as error:
        guard = error.facts.get("guard")
        if not guard:
            raise
        held = {"guard": guard, "because": error.message, "until": None}
        found = {"intent": None, "held": [held], "diff": []}
    status = _HELD if found.get("held") else _DONE
    if found.get("intent") and wait:
        status = _follow(daemon, found)
    if as_json:
        say_json(found)
    else:
        _show(found, action, target, dry_run=bool(how["dry_run"]))
    raise typer.Exit(status)


def _follow(daemon: Daemon, found: Facts) -> int:
    """Wait for its end; the daemon may be restarted meanwhile."""
    number, waited, gone = found["intent"]["id"], 0.0, 0.0
    pause = threading.Event()
    while waited < _PATIENCE and gone < _GONE_FOR:
        pause.wait(_ASK_AGAIN)
        waited += _ASK_AGAIN
        try:
            intents = daemon.intents()
        except SentinelError:
            gone += _ASK_AGAIN
            continue
        gone = 0.0
        found["intent"] = next((i for i in intents if i["id"] == number), found["intent"])
        if found["intent"].get("closed_at"):
            return _DONE if found["intent"]["outcome"] == "verified" else _FAILED
    return _LATE


def _show(found: Facts, action: str, target: str, *, dry_run: bool) -> None:
    for line in found.get("diff") or ():
        say(clean(line))
    for held in found.get("held") or ():
        until = f" until {moment(held['until'])}" if held.get("until") else ""
        say(paragraph(f"held by {held.get('guard')}{until}: {clean(held.get('because'))}"))
    if found.get("patch"):
        say(f"\n{found['patch']}")
    intent = found.get("intent")
    if intent is None:
        if dry_run and not found.get("held"):
            say(f"Nothing would hold it: {action} {target}.")
        return
    if intent.get("closed_at"):
        says = f"{intent['id']} {intent.get('outcome')}: {clean(intent.get('outcome_because'))}"
    else:
        says = f"{intent['id']} is under way; sentinel intents shows how it goes."
    say(paragraph(says))
