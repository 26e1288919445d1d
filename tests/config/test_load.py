"""Files, drop-ins, environment: what is read and which one wins."""

import os
import socket
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path

import pytest

from sentinel.config.fault import ConfigRefused
from sentinel.config.load import load_settings
from sentinel.core.model.intent import Mode
from tests.config.told import faults_of, load, write


def test_an_empty_configuration_is_the_defaults(tmp_path: Path) -> None:
    settings = load(tmp_path, "").settings

    assert settings.mode is Mode.WATCH
    assert settings.state_dir == Path("/var/lib/sentinel")
    assert settings.api.socket == Path("/run/sentinel/sentinel.sock")
    assert settings.global_.scrape_interval == timedelta(seconds=5)
    assert settings.global_.scrape_timeout == timedelta(seconds=3)
    assert settings.global_.evaluation_interval == timedelta(seconds=5)
    assert settings.global_.external_labels == {"host": socket.gethostname()}
    assert settings.route.receiver == "log"
    assert settings.route.group_by == ("incident",)
    assert settings.route.group_wait == timedelta()
    assert settings.route.group_interval == timedelta(seconds=5)
    assert settings.route.repeat_interval == timedelta(hours=4)
    assert settings.rules.files == (f"{tmp_path}/rules.d/*.yaml",)
    assert settings.log_patterns == (f"{tmp_path}/patterns.d/*.yaml",)
    assert settings.targets.by_default


@pytest.mark.parametrize(
    ("text", "timeout", "evaluation"),
    [("global: {scrape_interval: 1s}", 1, 1), ("global: {scrape_interval: 10s}", 3, 10)],
)
def test_intervals_follow_the_scrape_interval(
    tmp_path: Path, text: str, timeout: int, evaluation: int
) -> None:
    everywhere = load(tmp_path, text).settings.global_

    assert everywhere.scrape_timeout == timedelta(seconds=timeout)
    assert everywhere.evaluation_interval == timedelta(seconds=evaluation)


def test_a_host_that_is_given_stays(tmp_path: Path) -> None:
    settings = load(tmp_path, "global: {external_labels: {host: gpu7, site: a}}").settings

    assert settings.global_.external_labels == {"host": "gpu7", "site": "a"}


@pytest.mark.parametrize(
    ("env", "state", "sock"),
    [
        pytest.param({}, "{here}/state", "{here}/s.sock", id="file"),
        pytest.param(
            {"STATE_DIRECTORY": "/s", "SENTINEL_SOCKET": "/x.sock", "RUNTIME_DIRECTORY": "/r"},
            "/s",
            "/x.sock",
            id="environment over file",
        ),
        pytest.param(
            {"STATE_DIRECTORY": "/s:/t", "RUNTIME_DIRECTORY": "/r"},
            "/s",
            "{here}/s.sock",
            id="systemd lists several; its run directory is a default only",
        ),
    ],
)
def test_the_environment_wins_over_the_file(
    tmp_path: Path, env: Mapping[str, str], state: str, sock: str
) -> None:
    settings = load(tmp_path, "state_dir: state\napi: {socket: s.sock}", env).settings

    assert str(settings.state_dir) == state.format(here=tmp_path)
    assert str(settings.api.socket) == sock.format(here=tmp_path)


def test_a_flag_wins_over_the_environment(tmp_path: Path) -> None:
    file = write(tmp_path, "")
    env = {"STATE_DIRECTORY": "/s", "SENTINEL_SOCKET": "/x", "SENTINEL_CONFIG": "/nowhere"}

    loaded = load_settings(file, env=env, state_dir=Path("/f"), socket_path=Path("/f.sock"))

    assert loaded.settings.state_dir == Path("/f")
    assert loaded.settings.api.socket == Path("/f.sock")


def test_the_run_directory_is_where_the_socket_is_by_default(tmp_path: Path) -> None:
    settings = load(tmp_path, "", {"RUNTIME_DIRECTORY": "/run/other"}).settings

    assert settings.api.socket == Path("/run/other/sentinel.sock")


def test_the_environment_names_the_file(tmp_path: Path) -> None:
    file = write(tmp_path, "mode: act", "other.yaml")

    assert load_settings(None, env={"SENTINEL_CONFIG": str(file)}).settings.mode is Mode.ACT


@pytest.mark.parametrize("what", ["missing", "folder", "unreadable"])
def test_a_file_asked_for_by_name_must_be_there(tmp_path: Path, what: str) -> None:
    file = tmp_path / "sentinel.yaml"
    if what == "folder":
        file.mkdir()
    if what == "unreadable":
        file.symlink_to(file)

    with pytest.raises(ConfigRefused) as refused:
        load_settings(file, env={})

    [fault] = refused.value.faults
    assert fault.message.startswith("cannot be read")


def test_drop_ins_merge_append_and_keep_their_own_folder(tmp_path: Path) -> None:
    write(tmp_path, "guards: {verify_within: 1m}\ntemplates: [b.tmpl]", "sentinel.d/10-b.yaml")
    write(tmp_path, "receivers: [{name: b}]\ntemplates: [c.tmpl]", "sentinel.d/20-c.yml")
    write(tmp_path, "mode: act", "sentinel.d/30-not-yaml.txt")

    loaded = load(tmp_path, "receivers: [{name: a}]\nguards: {cooldown: 1m}\ntemplates: [a.tmpl]\n")

    assert loaded.settings.mode is Mode.WATCH
    assert loaded.settings.guards.cooldown == timedelta(minutes=1)
    assert loaded.settings.guards.verify_within == timedelta(minutes=1)
    assert [receiver.name for receiver in loaded.settings.receivers] == ["a", "b"]
    assert loaded.settings.templates == (
        f"{tmp_path}/a.tmpl",
        f"{tmp_path}/sentinel.d/b.tmpl",
        f"{tmp_path}/sentinel.d/c.tmpl",
    )
    assert [file.name for file in loaded.files] == ["sentinel.yaml", "10-b.yaml", "20-c.yml"]


def test_a_value_in_two_files_names_both_places(tmp_path: Path) -> None:
    drop_in = write(tmp_path, "\nguards:\n  cooldown: 2m\n", "sentinel.d/a.yaml")

    [fault] = faults_of(tmp_path, "guards: {cooldown: 1m}")

    assert (fault.file, fault.line, fault.column) == (str(drop_in), 3, 13)
    assert fault.key == "guards.cooldown"
    assert fault.message == f"is set in two files, also at {tmp_path}/sentinel.yaml:1:20"


def test_a_fault_names_the_file_it_is_in(tmp_path: Path) -> None:
    drop_in = write(tmp_path, "receivers:\n  - label: b\n", "sentinel.d/a.yaml")

    faults = faults_of(tmp_path, "receivers:\n  - name: a\n  - colour: b\n")

    assert {(f.file, f.line, f.key) for f in faults if f.message.startswith("unknown")} == {
        (str(drop_in), 2, "receivers[2].label"),
        (f"{tmp_path}/sentinel.yaml", 3, "receivers[1].colour"),
    }


def test_a_file_that_is_no_yaml_is_the_only_thing_told(tmp_path: Path) -> None:
    write(tmp_path, "route: {receiver: a}\nmood: act", "sentinel.d/a.yaml")

    [fault] = faults_of(tmp_path, "receivers: [{name: a}\n")

    assert fault.message.startswith("not YAML")
    assert fault.file == f"{tmp_path}/sentinel.yaml"


def test_hidden_files_and_other_names_are_no_drop_ins(tmp_path: Path) -> None:
    for name in (".#a.yaml", ".yaml", "a.yaml~", "a.yaml.bak", "README"):
        write(tmp_path, "nonsense: 1", f"sentinel.d/{name}")

    assert len(load(tmp_path, "").files) == 1


@pytest.mark.parametrize("what", ["folder", "dangling link"])
def test_a_drop_in_that_cannot_be_read_is_a_fault(tmp_path: Path, what: str) -> None:
    drop_in = write(tmp_path, "", "sentinel.d/b.yaml").with_name("a.yaml")
    if what == "folder":
        drop_in.mkdir()
    else:
        drop_in.symlink_to("nowhere")

    [fault] = faults_of(tmp_path, "mode: act")

    assert fault.file == str(drop_in)
    assert fault.message.startswith("cannot be read")


def test_drop_ins_hold_without_a_main_file(tmp_path: Path) -> None:
    (tmp_path / "sentinel.d").mkdir()
    file = tmp_path / "sentinel.yaml"
    write(tmp_path, "mode: approve", "sentinel.d/a.yaml")
    file.write_text("")

    assert load_settings(file, env={}).settings.mode is Mode.APPROVE


def test_the_fingerprint_follows_the_content(tmp_path: Path) -> None:
    first = load(tmp_path, "mode: act").fingerprint
    second = load(tmp_path, "mode: watch").fingerprint
    third = load(tmp_path, "mode: act").fingerprint

    assert first == third != second


def test_relative_names_on_the_command_line_start_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, "state_dir: state")
    monkeypatch.chdir(tmp_path)

    loaded = load_settings(Path("sentinel.yaml"), env={"SENTINEL_SOCKET": "x.sock"})

    assert loaded.settings.state_dir == Path(os.getcwd()) / "state"  # noqa: PTH109
    assert loaded.settings.api.socket == tmp_path / "x.sock"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        pytest.param("", "nobody is told: no receiver has a channel", id="no receiver"),
        pytest.param("receivers: [{name: a}]", "nobody is told: no receiver has a channel", id="no channel"),
        pytest.param(
            "receivers: [{name: a, wecom_configs: [{url: 'https://h'}]}, {name: b}]",
            "nobody is told: everything goes to Sentinel's log alone",
            id="no route to either of two",
        ),
    ],
)  # fmt: skip
def test_that_nobody_is_told_is_told(tmp_path: Path, text: str, says: str) -> None:
    assert says in [warning.message for warning in load(tmp_path, text).warnings]


def test_what_is_set_in_vain_is_told_with_its_place(tmp_path: Path) -> None:
    loaded = load(tmp_path, "mode: act\nschedule:\n  digest: {cron: 0 9 * * *}\n")

    assert (3, 3, "schedule.digest") in [(w.line, w.column, w.key) for w in loaded.warnings]
