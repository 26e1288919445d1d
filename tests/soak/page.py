"""The result of a soak as a page of the documentation."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

GIVEN_UP = "given up by the client"


def page(result: Mapping[str, Any]) -> str:
    asked = {name: sum(counted.values()) for name, counted in result["requests"].items()}
    given_up = {name: counted.get(GIVEN_UP, 0) for name, counted in result["requests"].items()}
    claims = ", ".join(f"`{word}`" for word in result["claims"]) or "none"
    return (
        "\n\n".join(
            [
                "# Soak",
                _introduction(result),
                _table(
                    ("false words of a fault", "restarts", "actions", "requests"),
                    [(claims, result["restarts"], result["actions"], sum(asked.values()))],
                ),
                _table(
                    ("load", "requests", "answered", GIVEN_UP),
                    [(name, n, n - given_up[name], given_up[name]) for name, n in asked.items()],
                ),
                _table(("state", "seconds"), result["seconds_in_state"].items()),
                _table(("alert", "seconds firing"), result["seconds_firing"].items()),
            ]
        )
        + "\n"
    )


def _introduction(result: Mapping[str, Any]) -> str:
    return f"""\
Written by `make soak` on {result["at"]}; the numbers behind it are in `tests/soak/result.json`.
Sentinel {result["sentinel"]} in mode `act` watched a real vLLM ({result["vllm"]}) for {result["minutes"]} minutes,
with `hung_after: 20s` instead of 2 minutes, under loads that changed every minute or sooner. Nothing was
broken in that time, so each word of a fault would be a false one. Alerts about load are true here."""


def _table(head: Sequence[object], rows: Iterable[Sequence[object]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)
