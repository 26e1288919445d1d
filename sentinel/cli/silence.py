"""`sentinel silence …`: keep alerts quiet for a while, by matcher, target or incident.

A silence keeps people from being told and nothing else: what Sentinel does about an alert is
held back by `sentinel pause`.
"""

import getpass
import os
import re
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Annotated, Any

import typer

from sentinel.cli.options import JsonOption, SocketOption, numbered
from sentinel.cli.places import socket_path
from sentinel.cli.text import clean, moment, say, say_json, table
from sentinel.client.daemon import Daemon
from sentinel.core.alerting.duration import parse_duration
from sentinel.core.model.errors import Permanent
from sentinel.core.model.labels import Matcher
from sentinel.core.model.moment import moment as instant
from sentinel.core.model.moment import stamp

silence = typer.Typer(no_args_is_help=True, help="Keep alerts quiet for a while.")

Facts = dict[str, Any]

DEFAULT = "1h"
_INCIDENT = re.compile("i-[0-9]{1,9}")
_FLAGS = {"=": (True, False), "!=": (False, False), "=~": (True, True), "!~": (False, True)}
_OPS = {flags: op for op, flags in _FLAGS.items()}  # (isEqual, isRegex) → operator


@silence.command("add")
def add(  # noqa: PLR0913, PLR0917 - one for each option
    matchers: Annotated[
        list[str],
        typer.Argument(
            metavar="MATCHER...",
            help='alertname="X", severity=~"info|warning", a target\'s name, or i-000007; '
            "an alert is kept quiet if all of them fit.",
        ),
    ],
    for_: Annotated[
        str | None,
        typer.Option("--for", metavar="DURATION", help=f"90s, 15m, 2h, 1d; default {DEFAULT}."),
    ] = None,
    until: Annotated[
        str | None, typer.Option("--until", metavar="T", help="RFC 3339, in place of --for.")
    ] = None,
    comment: Annotated[str, typer.Option("--comment", metavar="TEXT", help="Why.")] = "",
    author: Annotated[
        str | None, typer.Option("--author", metavar="NAME", help="Default: you.")
    ] = None,
    socket: SocketOption = None,
    as_json: JsonOption = False,
) -> None:
    """Keep quiet every alert that all matchers fit; prints the silence's id."""
    if for_ is not None and until is not None:
        raise typer.BadParameter("goes without --until", param_hint="--for")
    daemon = Daemon(socket_path(socket))
    status = daemon.status()
    now = instant(status["at"]) + timedelta(seconds=status["age_seconds"])
    end = _end(now, for_, until)
    found = _matchers(daemon, status, matchers)
    made = daemon.silence(
        {
            "matchers": [_posted(matcher) for matcher in found],
            "startsAt": stamp(now),
            "endsAt": stamp(end),
            "createdBy": author or os.environ.get("SUDO_USER") or getpass.getuser(),
            "comment": comment,
        }
    )
    if as_json:
        say_json(made)
    else:
        say(clean(made["silenceID"]))


@silence.command("list")
def list_silences(
    expired: Annotated[bool, typer.Option("--expired", help="Those that are over, too.")] = False,
    socket: SocketOption = None,
    as_json: JsonOption = False,
) -> None:
    """List the silences in force and to come, the first to end on top."""
    found = [
        each
        for each in Daemon(socket_path(socket)).silences()
        if expired or each["status"]["state"] != "expired"
    ]
    if as_json:
        say_json({"silences": found})
    elif found:
        header = ("ID", "STATE", "ENDS", "BY", "COMMENT", "MATCHERS")
        for line in table(header, [_row(each) for each in found]):
            say(line)
    else:
        say("There is no silence.")


@silence.command("expire")
def expire(
    ids: Annotated[
        list[str], typer.Argument(metavar="ID...", help="As list shows them; a beginning will do.")
    ],
    socket: SocketOption = None,
    as_json: JsonOption = False,
) -> None:
    """End silences now."""
    daemon = Daemon(socket_path(socket))
    known = [each["id"] for each in daemon.silences()]
    whole = [_whole(given, known) for given in ids]
    for name in whole:
        daemon.expire(name)
    if as_json:
        say_json({"expired": whole})
    else:
        for name in whole:
            say(f"{name} is over.")


def _end(now: datetime, for_: str | None, until: str | None) -> datetime:
    if until is not None:
        try:
            return instant(until)
        except ValueError:
            allowed = "RFC 3339, such as 2030-01-01T12:00:00Z"
            raise typer.BadParameter(f"{until!r} is not {allowed}", param_hint="--until") from None
    try:
        span = parse_duration(for_ or DEFAULT)
        if span <= timedelta():
            raise typer.BadParameter("must be more than 0", param_hint="--for")
        return now + span
    except (ValueError, OverflowError) as error:
        raise typer.BadParameter(str(error), param_hint="--for") from None


def _matchers(daemon: Daemon, status: Facts, given: Sequence[str]) -> list[Matcher]:
    found = [matcher for text in given for matcher in _read(daemon, status, text)]
    wanted: dict[str, str] = {}
    for matcher in found:
        other = wanted.setdefault(matcher.name, matcher.value) if matcher.op == "=" else None
        if other not in (None, matcher.value):
            both = f'{matcher.name}=~"{other}|{matcher.value}"'
            raise Permanent(
                f"no alert has two values of {matcher.name}",
                hint=f"Add one silence for each, or one with {both}.",
                status=400,
            )
    return found


def _read(daemon: Daemon, status: Facts, text: str) -> Sequence[Matcher]:
    if _INCIDENT.fullmatch(text):
        name = numbered("i", text)
        daemon.incident(name)  # a wrong number would keep nothing quiet
        return [Matcher("incident", "=", name)]
    targets = [target["name"] for target in status.get("targets", ())]
    if text in targets:
        return [Matcher("target", "=", text)]
    if not set(text) & set("=~{"):
        known = f"Known: {', '.join(sorted(targets)[:20])}." if targets else "There is no target."
        raise Permanent(
            f"there is no target {text}",
            hint=f'{known} Or a matcher, such as alertname="{text}".',
            status=404,
        )
    from sentinel.config.matchers import parse_matchers  # noqa: PLC0415 - the settings are heavy

    try:
        return parse_matchers(text)
    except ValueError as error:
        hint = 'Write alertname="X", model!="m", target=~"a|b" or severity!~"info".'
        raise Permanent(str(error), hint=hint, status=400) from None


def _posted(matcher: Matcher) -> Facts:
    is_equal, is_regex = _FLAGS[matcher.op]
    return {
        "name": matcher.name,
        "value": matcher.value,
        "isRegex": is_regex,
        "isEqual": is_equal,
    }


def _whole(given: str, known: Sequence[str]) -> str:
    found = [name for name in known if given and name.startswith(given)]
    if len(found) == 1 or given in found:
        return given if given in found else found[0]
    says = f"{len(found)} silences begin with {given}" if found else f"there is no silence {given}"
    raise Permanent(says, hint="See sentinel silence list.", status=404)


def _row(found: Facts) -> tuple[str, ...]:
    matchers = ", ".join(
        f'{each["name"]}{_OPS[each.get("isEqual", True), each["isRegex"]]}"{each["value"]}"'
        for each in found["matchers"]
    )
    return (
        clean(found["id"]),
        clean(found["status"]["state"]),
        moment(found["endsAt"]),
        clean(found["createdBy"]),
        clean(found["comment"]),
        clean(matchers),
    )
