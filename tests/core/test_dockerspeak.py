from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentinel.core.dockerlog import log_text
from sentinel.core.dockerspeak import (
    container_of,
    event_of,
    instant,
    repository_of,
    since_after,
    summary_of,
)
from sentinel.core.model.container import PublishedPort, Status

ID = "c" * 64


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("2030-01-02T03:04:05.123456789Z", datetime(2030, 1, 2, 3, 4, 5, 123456, tzinfo=UTC)),
        ("2030-01-02T03:04:05.999999999Z", datetime(2030, 1, 2, 3, 4, 5, 999999, tzinfo=UTC)),
        ("2030-01-02T03:04:05.1234567Z", datetime(2030, 1, 2, 3, 4, 5, 123456, tzinfo=UTC)),
        ("2030-01-02T03:04:05.12Z", datetime(2030, 1, 2, 3, 4, 5, 120000, tzinfo=UTC)),
        ("2030-01-02T03:04:05Z", datetime(2030, 1, 2, 3, 4, 5, tzinfo=UTC)),
        ("2030-01-02T11:04:05.5+08:00", datetime(2030, 1, 2, 3, 4, 5, 500000, tzinfo=UTC)),
        ("2030-01-02T03:04:05.000000001-00:00", datetime(2030, 1, 2, 3, 4, 5, tzinfo=UTC)),
        ("0001-01-01T00:00:00Z", None),
        ("0001-01-01T00:00:00.000000000Z", None),
        ("", None),
        (None, None),
        ("soon", None),
        ("9999-12-31T23:59:59-14:00", None),
    ],
)
def test_instant(text: str | None, at: datetime | None) -> None:
    assert instant(text) == at


def row(**changed: Any) -> dict[str, Any]:
    return {
        "Id": ID,
        "Names": ["/llm"],
        "Image": "vllm/vllm-openai:v0.32.0",
        "ImageID": "sha256:1",
        "Command": "vllm serve m",
        "Labels": {"a": "b"},
        "State": "running",
        "Status": "Up 3 hours",
        "Ports": [{"PrivatePort": 8000, "Type": "tcp"}, {"PrivatePort": 9000, "Type": "tcp"}],
        **changed,
    }


def test_a_row_is_a_summary() -> None:
    summary = summary_of(row())

    assert summary.name == "llm"
    assert summary.command == "vllm serve m"
    assert summary.labels == {"a": "b"}
    assert summary.status is Status.RUNNING


@pytest.mark.parametrize(
    "changed",
    [
        {"Status": "Up 4 seconds"},  # a restart that no event told of
        {"Status": "Up 3 hours (Paused)"},
        {"Status": "Up 3 hours (unhealthy)"},
        {"State": "exited"},
        {"Names": ["/llm-old"]},
        {"Labels": {"a": "c"}},
        {"Ports": []},
        {"NetworkSettings": {"Networks": {"bridge": {"IPAddress": "172.17.0.9"}}}},
    ],
    ids=str,
)
def test_whatever_matters_changes_the_fingerprint(changed: dict[str, Any]) -> None:
    assert summary_of(row(**changed)).fingerprint != summary_of(row()).fingerprint


def test_the_order_of_a_list_does_not_change_the_fingerprint() -> None:
    turned = row(Ports=row()["Ports"][::-1])

    assert summary_of(turned).fingerprint == summary_of(row()).fingerprint


@pytest.mark.parametrize(
    ("names", "name"),
    [
        (["/llm"], "llm"),
        (["/other/alias", "/llm"], "llm"),
        ([], ""),
        (None, ""),
    ],
)
def test_a_containers_own_name_is_not_a_links(names: list[str] | None, name: str) -> None:
    assert summary_of(row(Names=names)).name == name


@pytest.mark.parametrize(
    ("state", "text", "status"),
    [
        ("exited", "Exited (0) 2 hours ago", Status.EXITED),
        (None, "Exited (0) 2 hours ago", Status.EXITED),
        (None, "Up 2 hours", Status.RUNNING),
        (None, "Up 2 hours (Paused)", Status.PAUSED),
        (None, "Restarting (1) 3 seconds ago", Status.RESTARTING),
        (None, "Created", Status.CREATED),
        (None, "Removal In Progress", Status.REMOVING),
        (None, "Dead", Status.DEAD),
        ("stopping", "Up 2 hours", Status.RUNNING),
        (None, None, Status.EXITED),
    ],
)
def test_a_row_without_a_state_has_one_in_its_text(
    state: str | None, text: str | None, status: Status
) -> None:
    assert summary_of(row(State=state, Status=text)).status is status


def inspect(**changed: Any) -> dict[str, Any]:
    """As Docker 20.10 answers for a running container, shortened."""
    return {
        "Id": ID,
        "Created": "2030-01-01T00:00:00.000000001Z",
        "Path": "vllm",
        "Args": ["serve", "m"],
        "State": {
            "Status": "running",
            "Running": True,
            "Paused": False,
            "Restarting": False,
            "OOMKilled": False,
            "Dead": False,
            "Pid": 4242,
            "ExitCode": 0,
            "Error": "",
            "StartedAt": "2030-01-01T00:00:01.123456789Z",
            "FinishedAt": "0001-01-01T00:00:00Z",
        },
        "Image": "sha256:1",
        "Name": "/llm",
        "RestartCount": 2,
        "HostConfig": {
            "NetworkMode": "default",
            "RestartPolicy": {"Name": "on-failure", "MaximumRetryCount": 3},
            "AutoRemove": False,
            "DeviceRequests": None,
            "Devices": None,
        },
        "Config": {
            "Image": "vllm:1",
            "Labels": None,
            "Env": ["PATH=/bin"],
            "Tty": False,
            "Entrypoint": ["vllm"],
            "Cmd": ["serve", "m"],
            "StopTimeout": 30,
        },
        "NetworkSettings": {
            "Ports": {
                "8000/tcp": [
                    {"HostIp": "0.0.0.0", "HostPort": "80"},
                    {"HostIp": "::", "HostPort": "80"},
                ],
                "9000/tcp": None,
                "53/udp": [{"HostIp": "0.0.0.0", "HostPort": "53"}],
            },
            "Networks": {
                "zz": {"IPAddress": "172.18.0.2", "GlobalIPv6Address": "fd00::2"},
                "aa": {"IPAddress": "172.17.0.2", "GlobalIPv6Address": ""},
                "down": None,
            },
        },
        **changed,
    }


def test_an_inspect_is_a_container() -> None:
    container = container_of(inspect(), manually_stopped=False)

    assert container.id == ID
    assert container.name == "llm"
    assert (container.image, container.image_id) == ("vllm:1", "sha256:1")
    assert container.argv == ("vllm", "serve", "m")
    assert (container.status, container.pid, container.exit_code) == (Status.RUNNING, 4242, None)
    assert container.started_at == datetime(2030, 1, 1, 0, 0, 1, 123456, tzinfo=UTC)
    assert container.finished_at is None
    assert (container.restart_count, container.restart_policy) == (2, "on-failure")
    assert (container.stop_timeout, container.stop_signal) == (30, "SIGTERM")
    assert container.addresses == ("172.17.0.2", "172.18.0.2", "fd00::2")
    assert [(p.container_port, p.host_ip, p.host_port) for p in container.ports] == [
        (8000, "0.0.0.0", 80),
        (8000, "::", 80),
    ]
    assert container.manually_stopped is False


def test_the_ports_of_a_stopped_container_are_those_it_will_have() -> None:
    raw = inspect(NetworkSettings={"Ports": {}, "Networks": {}})
    raw["HostConfig"]["PortBindings"] = {
        "8000/tcp": [{"HostIp": "", "HostPort": "80"}],
        "9000/tcp": [{"HostIp": "", "HostPort": ""}],  # ephemeral: nobody knows yet
        "9001/tcp": [{"HostIp": "", "HostPort": "9001-9009"}],
    }

    assert container_of(raw).ports == (
        PublishedPort(container_port=8000, host_ip="0.0.0.0", host_port=80),
    )


@pytest.mark.parametrize(
    ("state", "status", "code"),
    [
        pytest.param({"Status": "exited", "ExitCode": 137}, Status.EXITED, 137, id="exited"),
        pytest.param({"Status": "exited", "ExitCode": 0}, Status.EXITED, 0, id="exited 0"),
        pytest.param({"Status": "created", "ExitCode": 0}, Status.CREATED, None, id="never ran"),
        pytest.param(
            {"Status": "created", "ExitCode": 127}, Status.CREATED, 127, id="could not start"
        ),
        pytest.param(
            {"Status": "restarting", "Running": True, "Restarting": True, "ExitCode": 1},
            Status.RESTARTING,
            1,
            id="between two tries",
        ),
        pytest.param(
            {"Running": True, "Paused": True}, Status.PAUSED, None, id="flags only: paused"
        ),
        pytest.param(
            {"Running": True, "Restarting": True}, Status.RESTARTING, None, id="flags only: waits"
        ),
        pytest.param({"Dead": True}, Status.DEAD, None, id="flags only: dead"),
        pytest.param(
            {"StartedAt": "2030-01-01T00:00:00Z"}, Status.EXITED, None, id="flags only: exited"
        ),
        pytest.param(
            {"Status": "stopping", "Running": True}, Status.RUNNING, None, id="a new word"
        ),
    ],
)
def test_states(state: dict[str, Any], status: Status, code: int | None) -> None:
    container = container_of(inspect(State=state))

    assert (container.status, container.exit_code) == (status, code)


@pytest.mark.parametrize(
    ("raw", "argv"),
    [
        pytest.param({"Path": "sh", "Args": None}, ("sh",), id="no arguments"),
        pytest.param({"Path": "", "Args": []}, ("vllm", "serve", "m"), id="from the configuration"),
        pytest.param(
            {"Path": None, "Config": {"Entrypoint": None, "Cmd": ["serve"]}},
            ("serve",),
            id="no entrypoint",
        ),
        pytest.param(
            {"Path": None, "Config": {"Cmd": "serve m"}}, ("serve m",), id="a very old image"
        ),
    ],
)
def test_what_is_executed(raw: dict[str, Any], argv: tuple[str, ...]) -> None:
    assert container_of(inspect(**raw)).argv == argv


@pytest.mark.parametrize(
    ("host", "env", "devices"),
    [
        ({"DeviceRequests": [{"Driver": "", "Count": -1, "DeviceIDs": None}]}, [], ("gpu:all",)),
        ({"DeviceRequests": [{"Driver": "nvidia", "Count": 2}]}, [], ("gpu:2",)),
        ({"DeviceRequests": [{"Count": 0, "DeviceIDs": ["0", "2"]}]}, [], ("gpu=0", "gpu=2")),
        (
            {"DeviceRequests": [{"Driver": "cdi", "DeviceIDs": ["nvidia.com/gpu=0"]}]},
            [],
            ("nvidia.com/gpu=0",),
        ),
        ({"Runtime": "nvidia"}, ["NVIDIA_VISIBLE_DEVICES=all"], ("gpu:all",)),
        ({"Runtime": "nvidia"}, ["NVIDIA_VISIBLE_DEVICES=1,GPU-x"], ("gpu=1", "gpu=GPU-x")),
        ({"Runtime": "nvidia"}, ["NVIDIA_VISIBLE_DEVICES=void"], ()),
        ({"Runtime": "runc"}, ["NVIDIA_VISIBLE_DEVICES=all"], ()),
        ({"Devices": [{"PathOnHost": "/dev/nvidia0"}]}, [], ("/dev/nvidia0",)),
    ],
    ids=str,
)
def test_devices(host: dict[str, Any], env: list[str], devices: tuple[str, ...]) -> None:
    assert container_of(inspect(HostConfig=host, Config={"Env": env})).devices == devices


def test_the_hosts_network_is_known() -> None:
    assert container_of(inspect(HostConfig={"NetworkMode": "host"})).host_network
    assert not container_of(inspect(HostConfig={"NetworkMode": "container:abc"})).host_network


def test_a_wrappers_port_is_read_from_its_environment() -> None:
    raw = inspect(Path="./start.sh", Args=[], Config={"Env": ["PORT=9000", "EMPTY="]})

    assert container_of(raw).env_port == 9000


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)
KEYS = sorted(
    {
        *inspect(),
        *inspect()["State"],
        *inspect()["Config"],
        *inspect()["HostConfig"],
        "NetworkSettings",
        "Networks",
        "Ports",
        "DeviceRequests",
        "PortBindings",
    }
)


@given(st.dictionaries(st.sampled_from(KEYS), JSON | st.dictionaries(st.sampled_from(KEYS), JSON)))
def test_no_engine_is_too_strange(raw: dict[str, Any]) -> None:
    container_of(raw)
    summary_of(raw)
    event_of(raw)


def event(**changed: Any) -> dict[str, Any]:
    return {
        "status": "die",
        "id": ID,
        "from": "vllm:1",
        "Type": "container",
        "Action": "die",
        "Actor": {"ID": ID, "Attributes": {"exitCode": "137", "image": "vllm:1", "name": "llm"}},
        "scope": "local",
        "time": 1893456000,
        "timeNano": 1893456000123456789,
        **changed,
    }


@pytest.mark.parametrize("number", ["--5", "9" * 5000, 10**30, "²"])
def test_what_is_no_number_of_dockers_costs_that_fact(number: object) -> None:
    seen = container_of({"Id": "c", "RestartCount": number, "HostConfig": {"Memory": number}})

    assert (seen.restart_count, seen.memory_limit) == (0, None)
    assert event_of(event(timeNano=number, time=number)) is None


def test_an_event_is_heard() -> None:
    heard = event_of(event())

    assert heard is not None
    assert (heard.action, heard.container_id, heard.name, heard.exit_code) == (
        "die",
        ID,
        "llm",
        137,
    )
    assert heard.at == datetime(2030, 1, 1, 0, 0, 0, 123456, tzinfo=UTC)
    assert heard.at_ns == 1893456000123456789


@pytest.mark.parametrize(
    "gone", [("status", "id", "from"), ("Type", "Action", "Actor"), ("timeNano",)], ids=str
)
def test_an_event_of_another_age_is_heard(gone: tuple[str, ...]) -> None:
    heard = event_of({key: value for key, value in event().items() if key not in gone})

    assert heard is not None
    assert (heard.action, heard.container_id, heard.at.year) == ("die", ID, 2030)


@pytest.mark.parametrize(
    ("action", "ours"),
    [("health_status: healthy", "health_status"), ("exec_create: sh -c x: y", "exec_create")],
)
def test_an_actions_suffix_is_cut(action: str, ours: str) -> None:
    heard = event_of(event(Action=action, status=action))

    assert heard is not None
    assert heard.action == ours


def test_a_pull_of_an_image_is_heard() -> None:
    image = {"ID": "vllm/vllm-openai:v0.12.0", "Attributes": {"name": "vllm/vllm-openai"}}
    heard = event_of(event(Type="image", Action="pull", status="pull", Actor=image))

    assert heard is not None
    assert (heard.action, heard.name, heard.container_id) == ("pull", image["ID"], "")
    assert event_of(event(Type="image", Action="tag", status="tag", Actor=image)) is None


@pytest.mark.parametrize(
    ("image", "repository"),
    [
        ("vllm/vllm-openai:v0.12.0", "vllm/vllm-openai"),
        ("vllm/vllm-openai", "vllm/vllm-openai"),
        ("docker.io/vllm/vllm-openai:latest", "vllm/vllm-openai"),
        ("index.docker.io/library/vllm", "vllm"),
        ("gpu1:5000/vllm", "gpu1:5000/vllm"),
        ("gpu1:5000/team/vllm:1@sha256:0a", "gpu1:5000/team/vllm"),
    ],
)
def test_an_image_is_called_the_same_in_every_version(image: str, repository: str) -> None:
    assert repository_of(image) == repository


def test_a_kill_is_heard_with_its_signal() -> None:
    heard = event_of(event(Action="kill", Actor={"ID": ID, "Attributes": {"signal": "15"}}))

    assert heard is not None
    assert (heard.signal, heard.exit_code) == ("15", None)


@pytest.mark.parametrize(
    "changed",
    [
        {"Type": "network"},
        {"Action": "", "status": ""},
        {"Actor": {}, "id": ""},
        {"time": None, "timeNano": None},
    ],
    ids=str,
)
def test_what_is_no_container_event_is_none(changed: dict[str, Any]) -> None:
    assert event_of(event(**changed)) is None


@pytest.mark.parametrize(
    ("at_ns", "since"),
    [(1_000_000_000, "1.000000001"), (1_999_999_999, "2.000000000"), (7, "0.000000008")],
)
def test_since_is_the_next_nanosecond(at_ns: int, since: str) -> None:
    assert since_after(at_ns) == since


def frame(stream: int, data: bytes) -> bytes:
    return bytes([stream, 0, 0, 0]) + len(data).to_bytes(4, "big") + data


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        pytest.param(frame(1, b"a\n") + frame(2, b"b\n"), "a\nb\n", id="frames"),
        pytest.param(b"a\r\nb\r\n", "a\nb\n", id="terminal"),
        pytest.param(
            frame(1, "é".encode()[:1]) + frame(1, "é".encode()[1:]), "é", id="a character in two"
        ),
        pytest.param(frame(1, b"\xff\n"), "\ufffd\n", id="not text"),
        pytest.param(
            frame(1, b"\x1b[1;31mred\x1b[0m \x1b]0;title\x07x\n"), "red x\n", id="colours"
        ),
        pytest.param(
            frame(1, b"abc\n") + frame(1, b"cut off")[:-3], "abc\ncut ", id="body cut off"
        ),
        pytest.param(frame(1, b"abc\n") + b"\x01\x00", "abc\n", id="header cut off"),
        pytest.param(frame(1, b"col\tumn\n"), "col\tumn\n", id="a tab stays"),
        pytest.param(b"", "", id="nothing"),
        pytest.param(b"short", "short", id="shorter than a header"),
    ],
)
def test_log_text(raw: bytes, text: str) -> None:
    assert log_text(raw, max_bytes=100) == text


def test_a_long_log_keeps_its_end_in_whole_lines() -> None:
    raw = frame(1, b"first line\n") + frame(1, b"second line\nthird\n")

    assert log_text(raw, max_bytes=len(b"line\nthird\n")) == "third\n"


@given(st.lists(st.binary(max_size=20), max_size=6), st.integers(1, 50))
def test_frames_come_apart_however_they_were_written(writes: list[bytes], max_bytes: int) -> None:
    framed = b"".join(frame(1 + i % 2, data) for i, data in enumerate(writes))

    whole = b"".join(writes)
    if len(whole) <= max_bytes:
        assert log_text(framed, max_bytes=max_bytes) == log_text(
            frame(1, whole), max_bytes=max_bytes
        )
    assert len(log_text(framed, max_bytes=max_bytes)) <= max_bytes


@given(st.binary(max_size=200))
def test_no_bytes_are_too_strange(raw: bytes) -> None:
    assert "\x1b" not in log_text(raw, max_bytes=150)
