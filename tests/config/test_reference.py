"""The manual and the sample are what the settings say, and are true."""

import re
from pathlib import Path

import pytest

from sentinel.config.load import load_settings
from sentinel.config.reference import every_section, keys, manual
from sentinel.config.sample import sample
from sentinel.config.section import Section
from tests.config.told import load, write

HERE = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("file", "rendered"),
    [("docs/configure.md", manual()), ("deploy/sentinel.example.yaml", sample())],
    ids=["manual", "sample"],
)
def test_the_file_is_what_is_rendered(file: str, rendered: str) -> None:
    assert (HERE / file).read_text(encoding="utf-8") == rendered, "run: make docs"


def test_every_key_has_a_description() -> None:
    for path, section in every_section():
        for key in keys(section):
            assert len(key.description) > 8, f"{path}.{key.name}"
            assert key.description.endswith("."), f"{path}.{key.name}"


def test_every_key_is_in_the_manual() -> None:
    text = manual()
    for path, section in every_section():
        chapter = text.split(f"### `{path}`\n" if path else "### At the top\n")[1].split("###")[0]
        for key in keys(section):
            assert f"| `{key.name}` |" in chapter, f"{path}.{key.name}"


def test_every_section_is_frozen_and_closed() -> None:
    for path, section in every_section():
        assert issubclass(section, Section), path
        assert section.model_config["frozen"], path
        assert section.model_config["extra"] == "forbid", path


def test_the_sample_changes_nothing_as_it_is(tmp_path: Path) -> None:
    assert load(tmp_path, sample()).settings == load(tmp_path, "").settings


def test_the_sample_is_valid_when_every_key_is_used(tmp_path: Path) -> None:
    used = re.sub(r"^( *)#(?! |$)", r"\1", sample(), flags=re.MULTILINE)

    settings = load(tmp_path, used).settings

    assert settings.model_fields_set >= {
        "mode", "docker", "api", "global_", "targets", "pools", "rules", "remedies", "guards",
        "maintenance", "receivers", "route", "inhibit_rules", "time_intervals", "schedule",
        "retention",
    }  # fmt: skip
    assert len(settings.receivers[0].channels) == 6


def test_yaml_in_the_manual_is_valid(tmp_path: Path) -> None:
    blocks = re.findall(r"```yaml\n(.*?)```", manual(), re.DOTALL)

    assert blocks
    for block in blocks:
        assert load_settings(write(tmp_path, block), env={}).settings.receivers


def test_lines_of_the_sample_are_short() -> None:
    assert max(map(len, sample().splitlines())) <= 100
