"""A house that keeps what it is asked to keep, at once and for every receiver alike."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

from sentinel.core.dispatch.alert import Alert
from sentinel.core.dispatch.board import Board, Gathering, Standing
from sentinel.core.dispatch.silence import Silence
from sentinel.core.model.command import (
    Command,
    ExpireSilence,
    PostAlerts,
    PostedAlert,
    SetSilence,
)
from sentinel.core.model.errors import Permanent
from tests.api.fake_house import NOW, FakeHouse


def an_alert_of(
    name: str = "GPUHot", *, incident: str | None = None, at: datetime = NOW, **labels: str
) -> Alert:
    return Alert(
        labels={"alertname": name, "severity": "warning", **labels},
        annotations={"summary": f"{name} of {labels.get('target', 'the host')}"},
        starts_at=at - timedelta(minutes=5),
        updated_at=at,
        incident=incident,
    )


def a_board(*standing: Standing, **more: Any) -> Board:
    return Board(
        **{
            "at": NOW,
            "alerts": standing,
            "receivers": ("oncall", "log"),
            "started_at": NOW - timedelta(days=3),
            **more,
        }
    )


@dataclass
class KeepingHouse(FakeHouse):
    """`PostAlerts`, `SetSilence` and `ExpireSilence` change the next board."""

    config: str = "route: {receiver: oncall}\nreceivers: [{name: oncall}]\n"
    kept: dict[str, Alert] = field(default_factory=dict)
    silences: dict[str, Silence] = field(default_factory=dict)

    def ask(self, command: Command, deadline: float) -> dict[str, Any]:
        super().ask(command, deadline)
        now = datetime.now(UTC)
        match command:
            case PostAlerts():
                for posted in command.alerts:
                    alert = _alert(posted, now)
                    self.kept[alert.fingerprint] = alert
            case SetSilence():
                return {"silenceID": self._set(command, now)}
            case ExpireSilence():
                self._expire(command.id, now)
        return {}

    def _set(self, command: SetSilence, now: datetime) -> str:
        if command.id is not None and command.id not in self.silences:
            raise Permanent("silence not found", status=404)
        silence = Silence(
            id=command.id or str(uuid4()),
            matchers=command.matchers,
            starts_at=max(command.starts_at, now),
            ends_at=command.ends_at,
            updated_at=now,
            created_by=command.created_by,
            comment=command.comment,
        )
        self.silences[silence.id] = silence
        return silence.id

    def _expire(self, name: str, now: datetime) -> None:
        if name not in self.silences:
            raise Permanent("silence not found", status=404)
        self.silences[name] = replace(self.silences[name], ends_at=now, updated_at=now)

    def board(self) -> Board:
        now = datetime.now(UTC)
        standing = tuple(
            Standing(alert=alert, receivers=("oncall",), silenced_by=self._silencing(alert, now))
            for alert in self.kept.values()
            if not alert.is_resolved(now)
        )
        return Board(
            at=now,
            alerts=standing,
            groups=_by_name(standing),
            silences=tuple(self.silences.values()),
            receivers=("oncall",),
            config=self.config,
            started_at=now - timedelta(hours=1),
        )

    def _silencing(self, alert: Alert, now: datetime) -> tuple[str, ...]:
        return tuple(
            silence.id
            for silence in self.silences.values()
            if silence.state(now) == "active" and silence.matches(alert.matched)
        )


def _alert(posted: PostedAlert, now: datetime) -> Alert:
    return Alert(
        labels=posted.labels,
        annotations=posted.annotations,
        starts_at=posted.starts_at or now,
        ends_at=posted.ends_at or now + timedelta(minutes=5),
        updated_at=now,
        is_timeout=posted.ends_at is None,
        generator_url=posted.generator_url,
        origin="posted",
    )


def _by_name(standing: Sequence[Standing]) -> tuple[Gathering, ...]:
    names = sorted({each.alert.labels.get("alertname", "") for each in standing})
    return tuple(
        Gathering(
            labels={"alertname": name},
            receiver="oncall",
            alerts=tuple(s for s in standing if s.alert.labels.get("alertname", "") == name),
        )
        for name in names
    )
