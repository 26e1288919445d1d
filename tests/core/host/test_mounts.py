from typing import Any

import pytest

from sentinel.core.host.mounts import mount_of, mounts_of, written_paths

MOUNTINFO = r"""22 1 259:2 / / rw,relatime shared:1 - ext4 /dev/nvme0n1p2 rw,errors=remount-ro
23 22 0:21 / /proc rw,nosuid - proc proc rw
30 22 0:26 / /dev/shm rw,nosuid,nodev shared:5 - tmpfs tmpfs rw
41 22 259:5 / /var/lib/docker rw,relatime shared:9 - xfs /dev/nvme1n1 rw,attr2
42 22 0:44 / /mnt/model\040store ro,relatime - nfs4 filer:/models rw,vers=4.2
43 22 7:1 / /opt/models ro - squashfs /dev/loop1 ro
44 22 0:25 /systemd/inaccessible/dir /home ro,nosuid - tmpfs tmpfs rw,size=3G
45 22 259:6 / /data rw,relatime master:1 - ext4 /dev/sdb rw
46 45 259:7 / /data rw,relatime - ext4 /dev/sdc rw
broken line
"""
MOUNTS = mounts_of(MOUNTINFO)


@pytest.mark.parametrize(
    ("path", "point", "is_disk"),
    [
        ("/var/lib/sentinel", "/", True),
        ("/var/lib/docker/volumes/hub/_data", "/var/lib/docker", True),
        ("/var/lib/docker", "/var/lib/docker", True),
        ("/var/lib/docker-old", "/", True),
        ("/mnt/model store/llama", "/mnt/model store", True),
        ("/opt/models/x", "/opt/models", False),
        ("/dev/shm/x", "/dev/shm", False),
        ("/home/alice/.cache/huggingface", "/home", False),
        ("/", "/", True),
    ],
)
def test_a_path_lies_on_the_nearest_mount_above(path: str, point: str, is_disk: bool) -> None:
    mount = mount_of(path, MOUNTS)

    assert mount is not None
    assert (mount.point, mount.is_disk) == (point, is_disk)


def test_what_is_mounted_over_another_counts() -> None:
    mount = mount_of("/data/x", MOUNTS)

    assert mount is not None
    assert mount.device == "259:7"


def test_where_nothing_is_known_nothing_is_said() -> None:
    assert mount_of("/x", []) is None
    assert mounts_of("") == []


INSPECTED: dict[str, Any] = {
    "LogPath": "/var/lib/docker/containers/1/1-json.log",
    "GraphDriver": {"Data": {"UpperDir": "/var/lib/docker/overlay2/9/diff"}, "Name": "overlay2"},
    "Mounts": [
        {"Type": "bind", "Source": "/home/a/.cache/huggingface", "RW": True},
        {"Type": "bind", "Source": "/models", "RW": False},
        {"Type": "volume", "Source": "/var/lib/docker/volumes/hub/_data", "RW": True},
        {"Type": "tmpfs", "Source": "", "RW": True},
    ],
}


def test_a_container_writes_to_its_layer_and_to_what_it_was_given_to_write() -> None:
    assert written_paths(INSPECTED) == (
        "/var/lib/docker/overlay2/9/diff",
        "/home/a/.cache/huggingface",
        "/var/lib/docker/volumes/hub/_data",
    )


def test_an_engine_that_does_not_tell_layers_tells_where_logs_are() -> None:
    told = {**INSPECTED, "GraphDriver": None, "Mounts": None}

    assert written_paths(told) == ("/var/lib/docker/containers/1/1-json.log",)


@pytest.mark.parametrize(
    "raw",
    [
        {},
        {"Mounts": "x", "GraphDriver": [], "LogPath": 7},
        {"Mounts": [None, {"Type": "bind", "Source": 5}, {"Type": "bind", "Source": "C:\\x"}]},
    ],
)
def test_what_is_strange_costs_nothing(raw: dict[str, Any]) -> None:
    assert written_paths(raw) == ()
