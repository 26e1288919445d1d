"""The page about GPUs says what the code does."""

import re
from pathlib import Path

from sentinel.core.gpu import samples
from sentinel.core.gpu.reading import RECOVERY_ACTIONS
from sentinel.core.gpu.throttle import REASONS, THROTTLING
from sentinel.core.gpu.xid import XIDS

PAGE = (Path(__file__).parents[3] / "docs" / "gpu.md").read_text(encoding="utf-8")
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in PAGE.splitlines()
    if line.startswith("| ")
]
HELPS = {
    "nothing": "nothing needs to be done",
    "restart": "starting the container again",
    "reset": "a reset of the GPU",
    "reboot": "a reboot of the host",
    "inspect": "looking into it",
}


def test_every_series_is_described() -> None:
    names = {value for value in vars(samples).values() if str(value).startswith("sentinel_")}

    assert names == set(re.findall(r"`(sentinel_\w+)`", " ".join(row[0] for row in ROWS)))


def test_every_xid_is_where_it_belongs() -> None:
    told = {row[0]: row[1] for row in ROWS if len(row) == 2}
    for helps, words in HELPS.items():
        numbers: set[int] = set()
        for first, last in re.findall(r"(\d+)(?: to (\d+))?", told[words]):
            numbers |= set(range(int(first), int(last or first) + 1))

        assert numbers == {xid.number for xid in XIDS.values() if xid.helps == helps}


def test_every_reason_is_told_and_whether_it_is_throttling() -> None:
    told = {
        reason: row[1] == "yes"
        for row in ROWS
        for reason in re.findall(r"`(\w+)`", row[0])
        if reason in REASONS
    }

    assert told == {reason: reason in THROTTLING for reason in REASONS}


def test_every_recovery_action_is_told() -> None:
    (row,) = [row for row in ROWS if "`sentinel_gpu_recovery_action`" in row[0]]

    assert all(action in row[2] for action in (*RECOVERY_ACTIONS, "other"))
