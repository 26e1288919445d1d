"""Whatever the bytes are, the answer is a configuration or faults, never a traceback."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from sentinel.config.document import LIMIT_BYTES, compose, dotted, plain
from sentinel.config.fault import ConfigRefused, Fault
from sentinel.config.load import load_settings
from sentinel.config.reference import every_section, keys
from sentinel.config.settings import Settings
from tests.config.told import told

NO_FAULT = Fault("", 0, 0, "", "refused without a fault", "")
BOMB = "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{new}: &{new} [{', '.join([f'*{old}'] * 10)}]\n"
    for old, new in zip("abcdefg", "bcdefgh", strict=True)
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(b"mode: \xff\n", "1:7 (file): not UTF-8", id="not UTF-8"),
        pytest.param("mode: äct\n".encode("utf-16"), "1:1 (file): not UTF-8", id="UTF-16"),
        pytest.param(
            b"mode: act\nmode: \x00\n", "2:7 (file): control character U+0000", id="control"
        ),
        pytest.param("- a\n", "1:1 (file): the file holds a list", id="list"),
        pytest.param("act\n", "1:1 (file): the file holds a single value", id="text"),
        pytest.param(
            "a: 1\n\tb: 2\n", "2:1 (file): not YAML: a tab where YAML wants spaces", id="tab"
        ),
        pytest.param(
            "docker:\n\thost: x\n", "2:1 (file): not YAML: a tab where YAML wants spaces", id="tab 2"
        ),
        pytest.param("mode: act\n---\nmode: act\n", "2:1 (file): a second document", id="two"),
        pytest.param("mode: *x\n", "1:7 mode: no anchor &x before", id="unknown alias"),
        pytest.param("docker: &x [*x]\n", "1:13 docker[0]: *x holds itself", id="endless alias"),
        pytest.param("mode: !!python/object:os.system x\n",
                     "1:7 mode: tag 'tag:yaml.org,2002:python/object:os.system'", id="tag"),
        pytest.param("? [a]\n: b\n", "1:3 (file): a key that is not a word", id="list as key"),
        pytest.param("mode: act\nmode: act\n", "2:1 mode: is given twice, first in line 1", id="dup"),
        pytest.param(
            "docker: {host: 'unix:///a', host: 'unix:///b'}\n",
            "1:29 docker.host: is given twice, first in line 1",
            id="twice, deep down",
        ),
        pytest.param("docker: {<<: x}\n", "1:10 docker.<<: merges no mapping", id="merges a text"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_told_with_its_place(
    tmp_path: Path, text: str | bytes, expected: str
) -> None:
    assert told(tmp_path, text) == [expected]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        pytest.param(BOMB, "too many values", id="aliases that multiply"),
        pytest.param("a: " + "[" * 500, "nested too deeply", id="deep lists"),
        pytest.param("a: " + "{a: " * 500, "nested too deeply", id="deep mappings"),
        pytest.param(
            "a0: &a0 [x]\n" + "".join(f"a{i}: &a{i} [*a{i - 1}]\n" for i in range(1, 200)),
            "nested too deeply",
            id="deep by aliases",
        ),
        pytest.param("a: " + "x" * LIMIT_BYTES, "the file is too large", id="large"),
        pytest.param("a: " + "[" * 50_000, "nest", id="very deep lists"),
        pytest.param("a: 'b", "not YAML", id="open quote"),
        pytest.param("a: b: c", "not YAML", id="two colons"),
        pytest.param("%YAML 9.9\n---\na: b", "not YAML", id="another YAML"),
    ],
)
def test_what_would_exhaust_the_machine_is_refused(tmp_path: Path, text: str, says: str) -> None:
    [line] = told(tmp_path, text)

    assert says in line


@pytest.mark.parametrize("text", ["", "\n\n", "# nothing\n", "---\n", "~\n", "\ufeff# mark\n"])
def test_an_empty_file_is_an_empty_configuration(tmp_path: Path, text: str) -> None:
    assert told(tmp_path, text) == []


def test_a_key_with_nothing_after_it_is_left_out(tmp_path: Path) -> None:
    assert told(tmp_path, "mode:\ndocker:\nreceivers:\nglobal: {scrape_interval: ~}\n") == []


def test_scalars_stay_what_was_written() -> None:
    text = b"a: 01:00\nb: yes\nc: 0755\nd: 2030-01-01\ne: ~\nf: '~'\ng: 1e3\n"

    entries, faults = compose(text, Path("/f"))

    assert not faults
    assert plain(entries) == {
        "a": "01:00", "b": "yes", "c": "0755", "d": "2030-01-01", "e": None, "f": "~", "g": "1e3",
    }  # fmt: skip


def test_anchors_and_merges_work_and_what_is_written_wins() -> None:
    text = b"x: &x {a: 1, b: 2}\ny: {<<: *x, b: 3}\nz: {<<: [*x, {c: 4}]}\n"

    entries, faults = compose(text, Path("/f"))

    assert not faults
    assert plain(entries)["y"] == {"a": "1", "b": "3"}
    assert plain(entries)["z"] == {"a": "1", "b": "2", "c": "4"}


def test_keys_are_dotted() -> None:
    assert dotted(("receivers", 0, "webhook_configs", 1, "url")) == (
        "receivers[0].webhook_configs[1].url"
    )


@settings(
    max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None
)
@given(st.one_of(st.binary(max_size=200), st.text(max_size=200).map(str.encode)))
@example(b"a: &a\n  b: *a\n")
@example(b"? ? ? :\n")
@example(b"!<tag:yaml.org,2002:null> x")
def test_any_bytes_are_read_or_refused(tmp_path: Path, content: bytes) -> None:
    _read_or_refuse(tmp_path, content)


_NAMES = sorted({key.name for _, section in every_section() for key in keys(section)})
_VALUES = st.recursive(
    st.sampled_from(["~", "''", "1", "-1", "1m", "x", "50%", "true", "https://h", "a=b", "log"]),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda items: f"[{', '.join(items)}]"),
        st.dictionaries(st.sampled_from(_NAMES), inner, max_size=3).map(
            lambda entries: "{" + ", ".join(f"{k}: {v}" for k, v in entries.items()) + "}"
        ),
    ),
    max_leaves=8,
)


@settings(
    max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None
)
@given(st.dictionaries(st.sampled_from(sorted(Settings.model_fields)), _VALUES, max_size=5))
def test_any_yaml_of_known_words_is_taken_or_refused(
    tmp_path: Path, entries: dict[str, str]
) -> None:
    _read_or_refuse(tmp_path, "".join(f"{k}: {v}\n" for k, v in entries.items()).encode())


def _read_or_refuse(folder: Path, content: bytes) -> None:
    file = folder / "sentinel.yaml"
    file.write_bytes(content)
    faults: tuple[Fault, ...] = ()
    try:
        load_settings(file, env={})
    except ConfigRefused as refused:
        faults = refused.faults or (NO_FAULT,)
    for fault in faults:
        assert "\n" not in str(fault)
        assert fault.line >= 1
        assert fault.column >= 1
        assert fault.message
        assert fault.allowed
