"""Windows outlive a restart of the daemon, killed or not; a damaged file costs only them."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

from sentinel.core.model.series import Store
from sentinel.core.promql import Sample, compile_expression
from sentinel.runtime.remember import SeriesFile
from tests.fakes import FakeClock

NOW = datetime(2030, 1, 1, 12, tzinfo=UTC)
AT = round(NOW.timestamp() * 1000)
RATE = compile_expression("increase(requests_total[5m])")


def fed(store: Store) -> Store:
    source = store.source("scrape/a", {"target": "a"})
    for step in range(60):
        source.put([("requests_total", {}, float(step))], AT - (59 - step) * 5000)
    return store


def value(store: Store) -> float:
    found = RATE.at(store, AT)
    assert isinstance(found, list)
    assert isinstance(found[0], Sample)
    return found[0].value


def test_a_restart_keeps_its_windows(tmp_path: Path) -> None:
    file = SeriesFile(tmp_path / "series.snapshot", FakeClock())
    file.save_now(fed(Store()))

    again = Store()
    since = file.load(again)

    assert since == NOW - timedelta(seconds=295)
    assert value(again) == value(fed(Store()))
    assert (tmp_path / "series.snapshot").stat().st_mode & 0o777 == 0o640


def test_nothing_saved_is_an_empty_store(tmp_path: Path) -> None:
    file = SeriesFile(tmp_path / "series.snapshot", FakeClock())

    assert file.load(Store()) is None


def test_a_damaged_file_is_said_and_left_out(tmp_path: Path) -> None:
    path = tmp_path / "series.snapshot"
    file = SeriesFile(path, FakeClock())
    file.save_now(fed(Store()))
    path.write_bytes(path.read_bytes()[:-100])
    store = Store()

    assert file.load(store) is None
    assert store.sources() == ()
