"""Makes one message of many, for a channel that may take only so many a minute.

When a whole host fails, twenty short messages are worse than one with twenty lines. What
asks for an answer is never bundled, and neither is what is long by itself.
"""

from collections.abc import Sequence

from sentinel.core.model.message import AlertFacts, Kind, Notice

BUNDLED: frozenset[Kind] = frozenset({"alert", "held", "action", "resolved"})


def bundle(notices: Sequence[Notice]) -> Notice:
    """One line for each place, saying in order what was to be said of it."""
    latest: dict[tuple[tuple[str, str], ...], AlertFacts] = {}
    lines: dict[str, list[str]] = {}
    for notice in notices:
        latest |= {tuple(sorted(alert.labels.items())): alert for alert in notice.alerts}
        lines.setdefault(f"• {_place(notice)}", []).append(_sentence(notice))
    hosts = {notice.facts.get("host", "") for notice in notices}
    kinds = [notice.kind for notice in notices]
    return Notice(
        kind="alert" if "alert" in kinds else kinds[-1],
        group_key=notices[0].group_key,
        group_labels={},
        alerts=tuple(latest.values()),
        incident=None,
        headline=f"{len(notices)} messages in one",
        facts={place: "; ".join(dict.fromkeys(said)) for place, said in lines.items()}
        | {"host": hosts.pop() if len(hosts) == 1 else ""},
    )


def _place(notice: Notice) -> str:
    subject = (notice.incident or {}).get("subject") or {}
    return notice.facts.get("target") or str(subject.get("name") or notice.group_key)


def _sentence(notice: Notice) -> str:
    if notice.headline:
        return notice.headline
    return ", ".join(alert.labels.get("alertname", "?") for alert in notice.alerts)
