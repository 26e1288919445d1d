"""Secrets come from where they should, and go nowhere else."""

import json
from pathlib import Path

import pytest

from sentinel.config.addresses import Secret
from sentinel.config.load import load_settings
from sentinel.config.reference import every_section
from sentinel.config.secrets import read_secret, read_secret_file
from sentinel.config.settings import Settings
from sentinel.core.model.errors import Permanent
from tests.config.told import load, write

URL = "https://hook.example.org/hunter2"
BY_FILE = "receivers: [{name: a, webhook_configs: [{url_file: hook}]}]"


def secret_file(folder: Path, content: str = URL, mode: int = 0o600) -> Path:
    file = folder / "hook"
    file.write_text(content)
    file.chmod(mode)
    return file


def webhook_secret(settings: Settings, **env: str) -> str | None:
    return read_secret(settings.receivers[0].webhook_configs[0], "url", env)


@pytest.mark.parametrize("ending", ["", "\n", "\r\n"])
def test_a_secret_is_read_from_its_file_without_the_line_end(tmp_path: Path, ending: str) -> None:
    secret_file(tmp_path, URL + ending)

    loaded = load(tmp_path, BY_FILE)

    assert webhook_secret(loaded.settings) == URL
    assert not loaded.unready
    assert "a secret is written" not in "".join(w.message for w in loaded.warnings)


def test_a_credential_wins_over_the_file(tmp_path: Path) -> None:
    secret_file(tmp_path, "https://old")
    credentials = tmp_path / "credentials"
    credentials.mkdir()
    (credentials / "hook").write_text(URL + "\n")

    settings = load(tmp_path, BY_FILE).settings

    assert webhook_secret(settings, CREDENTIALS_DIRECTORY=str(credentials)) == URL
    assert webhook_secret(settings, CREDENTIALS_DIRECTORY="/nowhere") == "https://old"


def test_a_secret_may_come_from_the_environment(tmp_path: Path) -> None:
    text = "receivers: [{name: a, webhook_configs: [{url: '${HOOK}'}]}]"

    loaded = load(tmp_path, text, {"HOOK": URL})

    assert not loaded.unready
    assert not [w for w in loaded.warnings if "secret" in w.message]
    assert webhook_secret(loaded.settings, HOOK=URL) == URL
    with pytest.raises(Permanent, match="the environment has no HOOK"):
        webhook_secret(loaded.settings)


def test_an_inline_secret_is_accepted_with_a_warning(tmp_path: Path) -> None:
    loaded = load(tmp_path, f"receivers:\n  - name: a\n    webhook_configs: [{{url: {URL}}}]\n")

    [warning] = [w for w in loaded.warnings if "secret" in w.message]
    assert (warning.line, warning.column) == (3, 29)
    assert warning.key == "receivers[0].webhook_configs[0].url"
    assert webhook_secret(loaded.settings) == URL


@pytest.mark.parametrize(
    ("content", "mode", "says"),
    [
        pytest.param(None, 0, "No such file", id="missing"),
        pytest.param(URL, 0o644, "may be read by everybody", id="open to all"),
        pytest.param(URL, 0o604, "may be read by everybody", id="open to others"),
        pytest.param("", 0o600, "is empty", id="empty"),
        pytest.param("\n", 0o600, "is empty", id="a line end alone"),
        pytest.param("x" * 100_000, 0o600, "is too large", id="large"),
        pytest.param("http://10.0.0.1/x", 0o600, "plain http", id="plain http in the file"),
        pytest.param("not an address", 0o600, "an address with a space", id="no address"),
    ],
)
def test_a_secret_that_cannot_be_used_is_told_and_stops_nothing(
    tmp_path: Path, content: str | None, mode: int, says: str
) -> None:
    if content is not None:
        secret_file(tmp_path, content, mode)

    loaded = load(tmp_path, BY_FILE)

    [fault] = loaded.unready
    assert says in fault.message
    assert fault.key == "receivers[0].webhook_configs[0].url_file"
    assert (fault.line, fault.column) == (1, 52)
    with pytest.raises(Permanent, match=says):
        webhook_secret(loaded.settings)


@pytest.mark.parametrize("mode", [0o600, 0o400, 0o640, 0o440])
def test_owner_and_group_may_read_a_secret(tmp_path: Path, mode: int) -> None:
    assert read_secret_file(secret_file(tmp_path, mode=mode), {}) == URL


@pytest.mark.parametrize(
    "name", [pytest.param(".", id="folder"), pytest.param("x/y", id="no folder")]
)
def test_what_is_no_file_is_no_secret(tmp_path: Path, name: str) -> None:
    with pytest.raises(Permanent):
        read_secret_file(tmp_path / name, {})


def test_files_that_hold_the_token_and_api_keys_are_looked_at_too(tmp_path: Path) -> None:
    text = """\
        api: {listen: "127.0.0.1:1", token_file: token}
        targets: {overrides: [{name: a, api_key_file: key}]}
        """
    assert [f.key for f in load(tmp_path, text).unready] == [
        "api.token_file",
        "targets.overrides[0].api_key_file",
    ]


def test_a_secret_is_in_no_repr_and_no_dump(tmp_path: Path) -> None:
    text = """\
        global:
          slack_api_url: https://hunter2
          smtp_auth_password: hunter2
          http_config: {authorization: {credentials: hunter2}, proxy_url: "http://u:hunter2@p", http_headers: {X: {secrets: [hunter2]}}, proxy_connect_header: {Y: [hunter2]}}
          slack_socket_mode: {app_level_token: hunter2}
        receivers:
          - name: a
            webhook_configs: [{url: "https://hunter2"}]
            wecom_configs: [{url: "https://hunter2"}]
            slack_configs: [{}, {app_token: hunter2, channel: c}]
            wechat_configs: [{corp_id: c, api_secret: hunter2}]
            email_configs: [{to: a, from: b, smarthost: "c:1", auth_secret: hunter2}]
            alertmanager_configs: [{url: "https://a", basic_auth: {password: hunter2}}]
        schedule: {heartbeat: {url: "https://hunter2"}}
        """
    loaded = load(tmp_path, text)
    settings = loaded.settings

    shown = [
        repr(settings),
        str(settings),
        json.dumps(settings.model_dump(mode="json", by_alias=True)),
        repr(settings.model_dump()),
        "".join(map(str, loaded.warnings)),
    ]
    assert "hunter2" not in "".join(shown)
    assert "<secret>" in shown[2]


def test_every_secret_has_a_file_beside_it() -> None:
    for path, section in every_section():
        for key in section.SECRETS:
            assert f"{key}_file" in section.model_fields, f"{path}.{key}"
            assert section.model_fields[key].annotation != Secret


def test_every_key_that_sounds_secret_is_one() -> None:
    words = ("password", "secret", "token", "credentials", "api_key")
    for path, section in every_section():
        for key in section.model_fields:
            is_file = key.endswith("_file")
            if any(word in key for word in words) and not is_file and key != "token_url":
                assert key in section.SECRETS or key == "secrets", f"{path}.{key}"
            if any(word in key for word in words) and is_file:
                known = (*section.SECRET_FILES, *(f"{secret}_file" for secret in section.SECRETS))
                assert key in known, f"{path}.{key}"


def test_faults_of_secrets_repeat_none(tmp_path: Path) -> None:
    file = write(tmp_path, BY_FILE)
    secret_file(tmp_path, "http://10.0.0.1/hunter2 and more")

    [fault] = load_settings(file, env={}).unready

    assert "hunter2" not in str(fault)
