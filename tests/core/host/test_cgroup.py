import pytest

from sentinel.core.host.cgroup import CgroupReading, places, pressure_of, reading_of

BOX = "0f61c21c194151209784106ecf6d9e0668cc0b16cb492dad7daf849be9c5605c"
SCOPE = f"/system.slice/docker-{BOX}.scope"

V1 = f"9:name=systemd:/docker/{BOX}\n5:devices:/docker/{BOX}\n4:memory:/docker/{BOX}\n0::/docker/{BOX}\n"
V1_SYSTEMD = f"11:memory:{SCOPE}\n3:cpu,cpuacct:{SCOPE}\n1:name=systemd:{SCOPE}\n"
V2 = f"0::{SCOPE}\n"
V2_BELOW = f"0::{SCOPE}/init.scope\n"
V2_SLICE = f"0::/models.slice/docker-{BOX}.scope\n"
ROOTLESS = f"0::/user.slice/user-1000.slice/user@1000.service/user.slice/docker-{BOX}.scope\n"


@pytest.mark.parametrize(
    ("membership", "place"),
    [
        pytest.param(V1, (1, f"/docker/{BOX}"), id="1, cgroupfs"),
        pytest.param(V1_SYSTEMD, (1, SCOPE), id="1, systemd"),
        pytest.param(V2, (2, SCOPE), id="2, systemd"),
        pytest.param(f"0::/docker/{BOX}\n", (2, f"/docker/{BOX}"), id="2, cgroupfs"),
        pytest.param(V2_BELOW, (2, SCOPE), id="a process below its container's group"),
        pytest.param(V2_SLICE, (2, f"/models.slice/docker-{BOX}.scope"), id="a slice of its own"),
        pytest.param(
            ROOTLESS,
            (2, f"/user.slice/user-1000.slice/user@1000.service/user.slice/docker-{BOX}.scope"),
            id="rootless",
        ),
    ],
)
def test_the_memory_of_a_container_is_accounted_for_where_its_process_says(
    membership: str, place: tuple[int, str]
) -> None:
    assert next(iter(places(BOX, membership))) == place


def test_without_its_process_the_usual_places_are_tried() -> None:
    assert list(places(BOX, "")) == [
        (2, SCOPE),
        (2, f"/docker/{BOX}"),
        (1, SCOPE),
        (1, f"/docker/{BOX}"),
    ]


def test_version_2() -> None:
    files = {
        "memory.events": "low 0\nhigh 0\nmax 131\noom 2\noom_kill 1\noom_group_kill 0\n",
        "memory.current": "11837440\n",
        "memory.max": "50331648\n",
        "memory.pressure": "some avg10=0.00 avg60=12.50 avg300=3.00 total=20999\nfull avg10=0.00 avg60=4.00 avg300=0.00 total=4432\n",
        "cgroup.procs": "30999\n31210\n",
    }

    assert reading_of(files) == CgroupReading(
        used=11837440, limit=50331648, kills=1, failures=131, pressure=0.125, pids=(30999, 31210)
    )


def test_version_1() -> None:
    files = {
        "memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 1\n",
        "memory.failcnt": "77\n",
        "memory.usage_in_bytes": "11837440\n",
        "memory.limit_in_bytes": "50331648\n",
        "cgroup.procs": "30999\n",
    }

    assert reading_of(files) == CgroupReading(
        used=11837440, limit=50331648, kills=1, failures=77, pids=(30999,)
    )


@pytest.mark.parametrize(
    "files", [{"memory.max": "max\n"}, {"memory.limit_in_bytes": "9223372036854771712\n"}, {}]
)
def test_no_limit_is_none(files: dict[str, str]) -> None:
    assert reading_of(files).limit is None


def test_kernels_that_do_not_count_kills_tell_none() -> None:
    old = {"memory.oom_control": "oom_kill_disable 0\nunder_oom 0\n"}

    assert reading_of(old).kills is None


@pytest.mark.parametrize("text", ["", "some", "some avg60=x total=1", "\n\n", "some avg10=1.00"])
def test_pressure_that_is_not_told_is_none(text: str) -> None:
    assert pressure_of(text) == {}
