"""Debian's Alertmanager as the judge: the same requests, the same answers.

The house here keeps what it is told and no more, so it is the API that is judged: statuses,
shapes, defaults and filters. Answers differ where a newer Alertmanager's do: names of labels may
be any text, a silence that is not there is 404 also for DELETE, and `mutedBy` is told.
"""

import json
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

from deploy.testbed import free_port
from tests.api.exchange import exchange
from tests.api.fake_board import KeepingHouse
from tests.api.fake_house import served

pytestmark = pytest.mark.skipif(
    shutil.which("prometheus-alertmanager") is None, reason="needs Alertmanager"
)

CONFIG = """
route: {receiver: oncall, group_by: [alertname], group_wait: 1ms, group_interval: 1s}
receivers: [{name: oncall}]
"""
Addresses = tuple[str, str]
SPAN = {"startsAt": "2020-01-01T00:00:00Z", "endsAt": "2099-01-01T00:00:00Z"}
SILENCE = {
    **SPAN,
    "matchers": [{"name": "alertname", "value": "B", "isRegex": False}],
    "createdBy": "me",
    "comment": "c",
}


@contextmanager
def alertmanager(folder: Path) -> Iterator[str]:
    (folder / "alertmanager.yml").write_text(CONFIG)
    address = f"127.0.0.1:{free_port()}"
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [
                "prometheus-alertmanager",
                "--config.file=alertmanager.yml",
                "--storage.path=data",
                "--cluster.listen-address=",
                f"--web.listen-address={address}",
            ],
            cwd=folder,
            stdout=log,
            stderr=log,
        )
    try:
        end = time.monotonic() + 30
        while not _answers(address):
            assert time.monotonic() < end, (folder / "log").read_text()
            time.sleep(0.05)
        yield address
    finally:
        process.kill()
        process.wait(10)


def _answers(address: str) -> bool:
    try:
        return exchange(HTTPConnection(address, timeout=5), "GET", "/-/ready")[0] == 200
    except OSError:
        return False


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Addresses]:
    folder = tmp_path_factory.mktemp("both")
    more: dict[str, Any] = {"now": lambda: datetime.now(UTC), "token": lambda: "sesame"}
    house = KeepingHouse()
    with (
        alertmanager(folder) as theirs,
        served(house, folder / "s.sock", listen="127.0.0.1:0", **more) as server,
    ):
        addresses = theirs, server.addresses[0]
        three = [{"labels": {"alertname": name, "n": "1"}} for name in "ABC"]
        for url, body in (("alerts", three), ("silences", SILENCE)):
            for address in addresses:
                assert ask(address, "POST", url, body)[0] == 200
        end = time.monotonic() + 20  # Alertmanager groups and marks in its own time
        while len(ask(addresses[0], "GET", "alerts/groups?silenced=false")[1]) != 2:
            assert time.monotonic() < end
            time.sleep(0.05)
        yield addresses


def ask(address: str, method: str, url: str, body: Any = None) -> tuple[int, Any]:
    headers = {"content-type": "application/json", "authorization": "Bearer sesame"}
    sent = body.encode() if isinstance(body, str) else body
    connection = HTTPConnection(address, timeout=10)
    return exchange(connection, method, f"/api/v2/{url}", sent, headers)


def shape(value: Any) -> Any:
    """An answer without what must differ: times, ids, and what one of the two has alone."""
    gone = (
        "endsAt",
        "startsAt",
        "updatedAt",
        "id",
        "sentinel",
        "mutedBy",
        "silencedBy",
        "silenceID",
    )
    if isinstance(value, dict):
        return {key: shape(inner) for key, inner in value.items() if key not in gone}
    return [shape(inner) for inner in value] if isinstance(value, list) else value


@pytest.mark.parametrize(
    "url",
    [
        "alerts", "alerts?silenced=false", "alerts?active=false", "alerts?active=maybe",
        "alerts?active=", "alerts?filter=alertname%3DA", "alerts?filter=alertname%3D~%22A%7CB%22",
        "alerts?filter=n%3D%221%22&filter=alertname!%3DA", "alerts?filter=x%3D%22%22",
        "alerts?filter=x!%3D%22%22", "alerts?filter=alertname!~A.*", "alerts?receiver=on.*",
        "alerts?receiver=on", "alerts/groups", "alerts/groups?silenced=false",
        "alerts/groups?filter=alertname%3DB", "alerts/groups?receiver=x", "silences",
        "silences?filter=alertname%3DB", "silences?filter=alertname%3D~B", "silences?filter=a%3Db",
        "receivers",
    ],
)  # fmt: skip
def test_what_is_read_is_the_same(both: Addresses, url: str) -> None:
    theirs, ours = (ask(address, "GET", url) for address in both)

    assert (ours[0], shape(ours[1])) == (theirs[0], shape(theirs[1]))


@pytest.mark.parametrize(
    "url",
    [
        "alerts?filter=nonsense", "alerts?filter=a%3D~%22(%22", "alerts?filter=%7Ba%3D%22b%22%7D",
        "alerts?receiver=(", "silences?filter=nonsense", "alerts/groups?receiver=(",
        "silence/nonsense", "silence/00000000-0000-0000-0000-000000000000",
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_refused_alike(both: Addresses, url: str) -> None:
    theirs, ours = (ask(address, "GET", url) for address in both)

    assert ours[0] == theirs[0]
    assert not theirs[1] or type(ours[1]) is type(theirs[1])


GOOD = {"labels": {"alertname": "X"}}


@pytest.mark.parametrize(
    "body",
    [
        "", "x", "null", "[]", "{}", "[1]", "[{}]", '[{"labels": null}]',
        [{"labels": {}}], [{"labels": {"a": ""}}], [{"labels": {"a": 1}}], [{"labels": {"a": None}}],
        [{"labels": []}], [{**GOOD, "annotations": None}], [{**GOOD, "annotations": []}],
        [{**GOOD, "startsAt": "x"}], [{**GOOD, "startsAt": 5}], [{**GOOD, "startsAt": None}],
        [{**GOOD, "startsAt": "0001-01-01T00:00:00Z", "endsAt": "0001-01-01T00:00:00.000Z"}],
        [{**GOOD, "startsAt": "2022-01-01T00:00:00.123456789+08:00"}],
        [{**GOOD, "startsAt": "2022-01-01"}], [{**GOOD, "startsAt": "2022-01-01 10:00:00"}],
        [{**GOOD, "startsAt": "2022-01-01T10:00:00"}],
        [{**GOOD, "startsAt": "2030-01-01T00:00:00Z", "endsAt": "2029-01-01T00:00:00Z"}],
        [{**GOOD, "generatorURL": "not an address %%"}], [{**GOOD, "generatorURL": "/graph?a=b"}],
        [{**GOOD, "generatorURL": ""}], [{**GOOD, "generatorURL": "http://%zz"}],
        [{**GOOD, "unknown": {"a": [1]}}], [{"labels": {}}, {"labels": {"a": ""}}, GOOD],
    ],
    ids=str,
)  # fmt: skip
def test_what_is_posted_is_taken_or_refused_alike(both: Addresses, body: Any) -> None:
    theirs, ours = (ask(address, "POST", "alerts", body) for address in both)

    assert ours[0] == theirs[0]
    assert type(ours[1]) is type(theirs[1])
    if isinstance(theirs[1], dict):
        assert ours[1]["code"] == theirs[1]["code"]
    elif theirs[1]:
        assert ours[1] == theirs[1]


def a_silence(**more: Any) -> Any:
    return {key: value for key, value in {**SILENCE, **more}.items() if value != "absent"}


@pytest.mark.parametrize(
    "body",
    [
        "", "x", "null", "{}", "[]", a_silence(comment="absent"), a_silence(comment=""),
        a_silence(createdBy=None), a_silence(matchers=[]), a_silence(matchers="absent"),
        a_silence(matchers=[{"name": "a"}]), a_silence(startsAt="x"), a_silence(endsAt="absent"),
        a_silence(matchers=[{"name": "", "value": "b", "isRegex": False}]),
        a_silence(matchers=[{"name": "a", "value": "", "isRegex": False}]),
        a_silence(matchers=[{"name": "a", "value": ".*", "isRegex": True}]),
        a_silence(matchers=[{"name": "a", "value": "(", "isRegex": True}]),
        a_silence(matchers=[{"name": "a", "value": "b", "isRegex": "no"}]),
        a_silence(endsAt="2020-01-01T00:00:00Z"), a_silence(endsAt="2021-01-01T00:00:00Z"),
        a_silence(id="nonsense"), a_silence(id="00000000-0000-0000-0000-000000000000"),
        a_silence(id=""),
    ],
    ids=str,
)  # fmt: skip
def test_a_silence_is_taken_or_refused_alike(both: Addresses, body: Any) -> None:
    theirs, ours = (ask(address, "POST", "silences", body) for address in both)

    assert ours[0] == theirs[0]
    assert type(ours[1]) is type(theirs[1])
    if isinstance(theirs[1], dict) and "code" in theirs[1]:
        assert ours[1]["code"] == theirs[1]["code"]


def test_its_status_has_every_key(both: Addresses) -> None:
    theirs, ours = (ask(address, "GET", "status")[1] for address in both)

    def keys(value: Any, at: str = "") -> set[str]:
        inner = value.items() if isinstance(value, dict) else ()
        return {at}.union(*(keys(below, f"{at}.{key}") for key, below in inner))

    assert keys(theirs) <= keys(ours)
    assert json.dumps(ours["cluster"]) == json.dumps(theirs["cluster"])
