"""A container is given the time it asks for, and the time that its engine drains."""

from datetime import UTC, datetime

import pytest

from sentinel.core.model.container import Container, Status
from sentinel.core.model.launch import By, Launch
from sentinel.core.policy.grace import stop_grace

AT = datetime(2030, 1, 1, tzinfo=UTC)


def container(*argv: str, own: int | None = None) -> Container:
    return Container(
        id="c",
        name="t1-a",
        image="vllm",
        image_id="sha256:1",
        argv=argv,
        status=Status.RUNNING,
        stop_timeout=own,
    )


@pytest.mark.parametrize(
    ("argv", "own", "seconds"),
    [
        pytest.param((), None, 10, id="Docker's own"),
        pytest.param((), 120, 120, id="its own"),
        pytest.param((), 0, 0, id="none at all"),
        pytest.param((), -1, 300, id="as long as it takes, but not for ever"),
        pytest.param(("--shutdown-timeout", "30"), None, 45, id="as long as it drains"),
        pytest.param(("--shutdown_timeout=30",), 60, 60, id="its own is longer"),
        pytest.param(("--shutdown-time=30",), None, 45, id="cut short"),
        pytest.param(("sh", "-c", 'vllm serve m --shutdown-timeout "30"; x'), None, 45, id="line"),
        pytest.param(("--shutdown-timeout=9", "--shutdown-timeout=30"), None, 45, id="the last"),
        pytest.param(("--shutdown-timeout", "0"), None, 10, id="no drain"),
        pytest.param(("--shutdown-timeout", "$N"), None, 10, id="not known"),
    ],
)
def test_the_time_to_stop(argv: tuple[str, ...], own: int | None, seconds: int) -> None:
    assert stop_grace(container(*argv, own=own)) == seconds


def test_what_a_file_says_is_taken_from_the_log() -> None:
    facts = {"shutdown_timeout": 90}
    launch = Launch(target="t1-a", container_id="c", started_at=AT, by=By.OTHER, facts=facts)

    assert stop_grace(container("--config", "/c.yaml"), launch) == 105
