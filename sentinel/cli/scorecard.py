"""`sentinel scorecard`: of each remedy, what it did, and what became of trouble without it."""

from typing import Any

from sentinel.cli.options import JsonOption, SocketOption
from sentinel.cli.places import socket_path
from sentinel.cli.text import clean, say, say_json, table
from sentinel.client.daemon import Daemon

Facts = dict[str, Any]
_HEADER = ("REMEDY", "ACTION", "VERIFIED", "FAILED", "HELD", "HEALED", "PERSON DID", "WENT ON")


def scorecard(socket: SocketOption = None, as_json: JsonOption = False) -> None:
    """Say of each remedy how it did, and whether it was missed where it was held."""
    found = Daemon(socket_path(socket)).scorecard()
    cards = found.get("remedies") or []
    if as_json:
        say_json(found)
    elif cards:
        for line in table(_HEADER, [_row(card) for card in cards]):
            say(line)
        say(
            "\nHELD steps were watched only, or held by a guard. HEALED: the trouble ended by "
            "itself in the time the step would have had. PERSON DID: somebody did the same "
            "within the hour."
        )
    else:
        say("No remedy has been asked for yet.")


def _row(card: Facts) -> tuple[str, ...]:
    done, without = card.get("done") or {}, card.get("without") or {}
    failed = done.get("failed", 0) + done.get("rolled_back", 0)
    counts = (
        done.get("verified", 0),
        failed,
        card.get("held", 0),
        without.get("healed", 0),
        without.get("person", 0),
        without.get("went_on", 0),
    )
    return clean(card.get("remedy")), clean(card.get("action")), *map(str, counts)
