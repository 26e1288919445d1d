"""The comments of expositions, and when they are read."""

import pytest

from sentinel.api.prometheus.copies import Description
from sentinel.core.model.series import Store
from sentinel.runtime import ingest
from sentinel.runtime.describe import descriptions_in
from sentinel.runtime.ingest import Exposition
from tests.fakes import IDLE


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("# TYPE a counter", {"a": Description("counter")}),
        ("# HELP a Says it.", {"a": Description(help="Says it.")}),
        ("# HELP a", {"a": Description()}),
        (
            "# HELP a  Two  spaces.\n# TYPE a gauge\n# UNIT a bytes\na 1",
            {"a": Description("gauge", " Two  spaces.", "bytes")},
        ),
        (r"# HELP a A \\ and \n line", {"a": Description(help="A \\ and \n line")}),
        ("#\tTYPE\ta\tgauge\r\n", {"a": Description("gauge")}),
        ("# TYPE a untyped", {"a": Description("unknown")}),
        ('# TYPE "a b" gauge', {"a b": Description("gauge")}),
        (
            "# HELP a one\n# HELP b two",
            {"a": Description(help="one"), "b": Description(help="two")},
        ),
        ("# only a comment\n#TYPE\n# EOF\n\na 1", {}),
        ('a{b="# TYPE c gauge"} 1', {}),
        ("", {}),
    ],
)
def test_comments_are_read(text: str, found: dict[str, Description]) -> None:
    assert descriptions_in(text) == found


def test_a_real_exposition_is_described() -> None:
    found = descriptions_in(IDLE.decode())

    assert found["vllm:num_requests_running"].type == "gauge"
    assert found["vllm:time_to_first_token_seconds"].type == "histogram"
    assert all(description.help for description in found.values())


def test_comments_are_read_only_when_the_lines_change(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []

    def reading(text: str) -> dict[str, Description]:
        read.append(text)
        return descriptions_in(text)

    monkeypatch.setattr(ingest, "descriptions_in", reading)
    exposition = Exposition(Store().source("x", {}))
    for at, body in enumerate(
        [b"# TYPE a gauge\na 1\n", b"# TYPE a gauge\na 2\n", b"# TYPE b counter\na 3\nb 1\n"]
    ):
        exposition.take(body, at)
        exposition.take(body, at + 100)

    assert len(read) == 2
    assert exposition.descriptions == {"b": Description("counter")}
