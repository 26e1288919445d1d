from typing import Any

import pytest

from sentinel.core.gpu import samples as series
from sentinel.core.gpu.owner import Owner
from sentinel.core.gpu.reading import Driver, GpuReading, HostGpus, XidEvent
from sentinel.core.gpu.roster import Roster
from sentinel.core.gpu.xid import LABELS
from tests.core.gpu.gpus import GIB, A, B, gpu, held, host


class Watched:
    """A roster with a clock."""

    def __init__(self, **xids: Any) -> None:
        self.roster, self.at = Roster(xids), 1000.0

    def see(self, seen: HostGpus, *, after: float = 5.0, **owners: Owner) -> list[tuple[str, str]]:
        self.at += after
        return self.roster.see(
            seen, {int(pid[1:]): one for pid, one in owners.items()}, (), self.at
        )

    def series(self, name: str, **wanted: str) -> dict[str, float | None]:
        """Values by UUID."""
        return {
            labels["uuid"]: value
            for found, labels, value in self.roster.rows("gpu1")
            if found == name and wanted.items() <= labels.items() and value is not None
        }


def test_a_gpu_that_was_there_and_is_not_any_more_is_lost() -> None:
    watched = Watched()
    watched.see(host(gpu(0, power=80.0), gpu(1)))

    watched.see(host(gpu(0, uuid=B)))  # the driver counts anew

    assert watched.series(series.GPU_UP) == {A: 0.0, B: 1.0}
    assert watched.series(series.POWER) == {}
    assert watched.series(series.GPU_UP, gpu="1") == {B: 1.0}  # it keeps its place
    assert [uuid for _, uuid, _ in watched.roster.troubles()] == [A]


def test_a_gpu_in_trouble_is_not_up_and_its_figures_end() -> None:
    watched = Watched()
    watched.see(host(gpu(0, power=80.0)))

    watched.see(host(gpu(0, trouble="GPU is lost")))

    assert watched.series(series.GPU_UP) == {A: 0.0}
    assert watched.series(series.POWER) == {}
    assert watched.series(series.XID_ERRORS, xid="79") == {A: 0.0}


def test_a_gpu_that_comes_back_is_up_again() -> None:
    watched = Watched()
    watched.see(host(gpu(0)))
    watched.see(host(gpu(0, trouble="GPU requires reset")))

    watched.see(host(gpu(0)))

    assert watched.series(series.GPU_UP) == {A: 1.0}
    assert not list(watched.roster.troubles())


@pytest.mark.parametrize("state", [Driver.HUNG, Driver.FAILED, Driver.MISMATCH, Driver.NO_LIBRARY])
def test_while_the_driver_does_not_answer_only_what_was_lost_is_told(state: Driver) -> None:
    watched = Watched()
    watched.see(host(gpu(0), gpu(1)))
    watched.see(host(gpu(1)))

    watched.see(host(state=state))

    assert watched.series(series.GPU_UP) == {A: 0.0}


def test_a_driver_without_gpus_has_lost_those_it_had() -> None:
    watched = Watched()
    watched.see(host(gpu(0)))

    watched.see(host(state=Driver.NO_GPUS))

    assert watched.series(series.GPU_UP) == {A: 0.0}


def test_a_lost_gpu_can_still_be_found_by_what_it_was() -> None:
    watched = Watched()
    watched.see(host(gpu(0, minor=3)))

    watched.see(host(GpuReading(index=0, uuid=A, trouble="GPU is lost")))
    watched.see(host(state=Driver.NO_GPUS))

    assert [(each.uuid, each.minor) for each in watched.roster.gpus] == [(A, 3)]


def test_every_xid_stands_at_0_before_the_first() -> None:
    watched = Watched()

    watched.see(host(gpu(0)))

    assert {xid: watched.series(series.XID_ERRORS, xid=xid) for xid in LABELS} == {
        xid: {A: 0.0} for xid in LABELS
    }


def test_xids_are_counted_where_they_happened_and_go_on_from_before() -> None:
    watched = Watched(**{A: {"31": 4.0}})

    new = watched.see(
        host(gpu(0), gpu(1), xids=(XidEvent(xid=31, uuid=A), XidEvent(xid=7777, uuid=B)))
    )

    assert new == [(A, "31"), (B, "other")]
    assert watched.series(series.XID_ERRORS, xid="31") == {A: 5.0, B: 0.0}
    assert watched.series(series.XID_ERRORS, xid="other") == {A: 0.0, B: 1.0}


def test_an_xid_of_an_unnamed_gpu_may_have_been_anywhere() -> None:
    watched = Watched()
    watched.see(host(gpu(0), gpu(1)))

    assert watched.see(host(gpu(0), gpu(1), xids=(XidEvent(xid=79),))) == [(A, "79"), (B, "79")]


def test_an_xid_that_comes_as_its_gpu_is_lost_counts() -> None:
    watched = Watched()
    watched.see(host(gpu(0)))

    watched.see(host(state=Driver.FAILED, xids=(XidEvent(xid=79, uuid=A),)))
    watched.see(host(gpu(0, trouble="GPU is lost")))

    assert watched.series(series.XID_ERRORS, xid="79") == {A: 1.0}


def test_memory_is_orphaned_only_after_a_while() -> None:
    watched, seen = Watched(), host(gpu(0, processes=held(p7=GIB)))
    watched.see(seen, p7=Owner())
    early = watched.series(series.MEMORY_ORPHANED)

    watched.see(seen, after=61.0, p7=Owner())

    assert early == {A: 0.0}
    assert watched.series(series.MEMORY_ORPHANED) == {A: GIB}


def test_memory_that_was_freed_meanwhile_starts_anew() -> None:
    watched, seen = Watched(), host(gpu(0, processes=held(p7=GIB)))
    watched.see(seen, p7=Owner())
    watched.see(host(gpu(0)), after=40.0)

    watched.see(seen, after=40.0, p7=Owner())

    assert watched.series(series.MEMORY_ORPHANED) == {A: 0.0}


def test_what_the_driver_does_not_tell_has_no_series() -> None:
    watched = Watched()

    watched.see(host(gpu(0, memory_used=None, processes=None)))

    told = {name for name, _, value in watched.roster.rows("gpu1") if value is not None}
    assert told == {series.GPU_UP, series.XID_ERRORS}


@pytest.mark.parametrize(
    ("remap", "retirement", "pending"),
    [(None, None, {}), (False, None, {A: 0.0}), (None, True, {A: 1.0}), (True, False, {A: 1.0})],
)
def test_memory_waits_for_a_reset_on_new_gpus_and_old(
    remap: bool | None, retirement: bool | None, pending: dict[str, float]
) -> None:
    watched = Watched()

    watched.see(host(gpu(0, remap_pending=remap, retirement_pending=retirement)))

    assert watched.series(series.REMAP_PENDING) == pending


def test_the_recovery_that_the_driver_asks_for_is_1_and_all_others_0() -> None:
    watched = Watched()

    watched.see(host(gpu(0, recovery_action="gpu_reset")))

    asked = {
        labels["action"]: value
        for name, labels, value in watched.roster.rows("gpu1")
        if name == series.RECOVERY_ACTION
    }
    assert asked["gpu_reset"] == 1.0
    assert sum(value or 0.0 for value in asked.values()) == 1.0
    assert len(asked) == 9
