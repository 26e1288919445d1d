"""Debian's amtool, unchanged, over TCP and with the token, to a house that keeps what it is told."""

import json
import shutil
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from sentinel.config.export import as_alertmanager
from sentinel.config.load import load_settings
from sentinel.core.dispatch.alert import Alert
from tests.api.fake_board import KeepingHouse, an_alert_of
from tests.api.fake_house import served

pytestmark = pytest.mark.skipif(shutil.which("amtool") is None, reason="needs amtool")

SETTINGS = """
receivers:
  - name: oncall
    webhook_configs: [{url: "https://hook.example.org/t0ps3cret"}]
    wecom_configs: [{url: "https://qyapi.example.org/send?key=t0ps3cret"}]
  - name: day
    email_configs: [{to: a@example.org, from: b@example.org, smarthost: "mail.example.org:587"}]
route:
  receiver: oncall
  routes:
    - {matchers: ['severity="info"'], receiver: day, active_time_intervals: [day]}
time_intervals:
  - name: day
    time_intervals: [{times: [{start_time: "08:00", end_time: "18:00"}]}]
"""


class Amtool:
    def __init__(self, folder: Path, url: str) -> None:
        self.folder = folder
        self._url = url
        (folder / "http.yml").write_text('authorization: {credentials_file: "token"}\n')
        (folder / "token").write_text("sesame")

    def __call__(self, *words: str, status: int = 0, signed_in: bool = True) -> str:
        token = ["--http.config.file=http.yml"] if signed_in else []
        done = subprocess.run(
            ["amtool", "--no-version-check", f"--alertmanager.url={self._url}", *token, *words],
            cwd=self.folder,
            env={"HOME": str(self.folder), "PATH": "/usr/bin:/bin"},
            capture_output=True,
            text=True,
            check=False,
            timeout=30,
        )
        assert done.returncode == status, f"{words}: {done.stdout}{done.stderr}"
        return done.stdout or done.stderr

    def json(self, *words: str) -> Any:
        return json.loads(self(*words, "--output=json"))


@pytest.fixture
def house(tmp_path: Path) -> KeepingHouse:
    (tmp_path / "sentinel.yaml").write_text(SETTINGS)
    settings = load_settings(tmp_path / "sentinel.yaml", env={}).settings
    return KeepingHouse(config=as_alertmanager(settings))


@pytest.fixture
def amtool(house: KeepingHouse, tmp_path: Path) -> Iterator[Amtool]:
    more: dict[str, Any] = {"now": lambda: datetime.now(UTC), "token": lambda: "sesame"}
    with served(house, tmp_path / "s.sock", listen="127.0.0.1:0", **more) as server:
        yield Amtool(tmp_path, f"http://{server.addresses[0]}")


def keep(house: KeepingHouse, *alerts: Alert) -> None:
    house.kept.update({alert.fingerprint: alert for alert in alerts})


def at_once() -> datetime:
    return datetime.now(UTC)


def test_alerts_are_listed(amtool: Amtool, house: KeepingHouse) -> None:
    keep(
        house,
        an_alert_of("GPUHot", target="t1-a", incident="i-000007", at=at_once()),
        an_alert_of("Slow", target="t1-b", at=at_once()),
    )

    simple = amtool("alert", "query")
    assert sorted(line.split()[0] for line in simple.splitlines()[1:]) == ["GPUHot", "Slow"]
    assert "active" in simple
    extended = amtool("alert", "query", "Slow", "--output=extended")
    assert 'target="t1-b"' in extended
    assert 'target="t1-a"' not in extended
    [found] = amtool.json("alert", "query", "incident=i-000007")
    assert found["labels"]["target"] == "t1-a"
    assert found["receivers"] == [{"name": "oncall"}]
    ends = datetime.fromisoformat(found["endsAt"])
    assert at_once() < ends < at_once() + timedelta(minutes=5)
    assert len(amtool.json("alert", "query", "target=~t1-.+", "alertname!=Slow")) == 1
    assert len(amtool.json("alert", "query", "--receiver=oncall")) == 2
    assert amtool.json("alert", "query", "--receiver=on") == []


def test_an_alert_is_added(amtool: Amtool, house: KeepingHouse) -> None:
    amtool("alert", "add", "Manual", "target=t1-a", "--annotation=summary=look at it")

    [kept] = house.kept.values()
    assert kept.labels == {"alertname": "Manual", "target": "t1-a"}
    assert kept.annotations == {"summary": "look at it"}
    assert [a["labels"]["alertname"] for a in amtool.json("alert", "query")] == ["Manual"]


def test_a_silence_lives_from_add_to_expire(amtool: Amtool, house: KeepingHouse) -> None:
    keep(house, an_alert_of("Slow", target="t1-b", at=at_once()))

    name = amtool(
        "silence", "add", "target=~t1-[ab]", "alertname!=GPUHot",
        "--duration=2h", "--author=alice", "--comment=new card",
    ).strip()  # fmt: skip

    [kept] = house.silences.values()
    assert kept.id == name
    assert (kept.created_by, kept.comment) == ("alice", "new card")
    assert amtool.json("alert", "query") == []
    [silenced] = amtool.json("alert", "query", "--silenced")
    assert silenced["status"]["silencedBy"] == [name]
    assert silenced["status"]["state"] == "suppressed"
    assert name in amtool("silence", "query")
    assert [s["id"] for s in amtool.json("silence", "query", "alertname!=GPUHot")] == [name]

    amtool("silence", "update", name, "--duration=3h", "--comment=still")
    assert house.silences[name].comment == "still"

    amtool("silence", "expire", name)
    assert len(amtool.json("alert", "query")) == 1
    assert name not in amtool("silence", "query")
    assert name in amtool("silence", "query", "--expired")


def test_silences_are_moved_from_elsewhere(amtool: Amtool, house: KeepingHouse) -> None:
    amtool("silence", "add", "target=t1-a", "--author=alice", "--comment=one")
    exported = amtool("silence", "query", "--output=json")
    house.silences.clear()

    (amtool.folder / "silences.json").write_text(exported)
    amtool("silence", "import", "silences.json")

    [moved] = house.silences.values()
    assert moved.comment == "one"
    assert moved.id != json.loads(exported)[0]["id"]


def test_the_configuration_is_shown_and_followed(amtool: Amtool) -> None:
    shown = amtool("config", "show")
    assert "t0ps3cret" not in shown
    assert "<secret>" in shown

    routes = amtool("config", "routes", "show")
    assert "default-route" in routes
    assert 'severity="info"' in routes
    assert amtool("config", "routes", "test", "severity=info").strip() == "day"
    assert amtool("config", "routes", "test", "severity=critical").strip() == "oncall"


def test_it_is_alone(amtool: Amtool) -> None:
    assert "disabled" in amtool("cluster", "show")


def test_a_refusal_is_told(amtool: Amtool) -> None:
    gone = "00000000-0000-0000-0000-000000000000"
    assert "404" in amtool("silence", "expire", gone, status=1)
    assert "empty string" in amtool(
        "silence", "add", "target=~.*", "--author=a", "--comment=c", status=1
    )


def test_without_the_token_it_reads_and_changes_nothing(
    amtool: Amtool, house: KeepingHouse
) -> None:
    assert "Alertname" in amtool("alert", "query", signed_in=False)

    told = amtool("alert", "add", "Manual", status=1, signed_in=False)

    assert "401" in told
    assert house.asked == []
