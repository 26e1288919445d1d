"""What is remembered, when the file it is in cannot be had."""

import sqlite3
import stat
from datetime import UTC, datetime
from pathlib import Path

import pytest

from sentinel.core.model.errors import Permanent
from sentinel.core.model.incident import Subject
from sentinel.store.database import migrations
from sentinel.store.memory import Memory, open_memory

NOW = datetime(2030, 1, 1, 12, tzinfo=UTC)
SUBJECT = Subject(kind="target", name="t1-a")


def open_incident(memory: Memory) -> int:
    return memory.incidents.open_for(SUBJECT, "critical", NOW)[0].number


def test_it_is_for_the_owner_alone(tmp_path: Path) -> None:
    memory = open_memory(tmp_path / "state.db")
    open_incident(memory)

    assert {stat.S_IMODE(file.stat().st_mode) for file in tmp_path.iterdir()} == {0o600}
    memory.close()


def test_all_of_a_transaction_is_written_or_none_of_it(tmp_path: Path) -> None:
    memory = open_memory(tmp_path / "state.db")

    with pytest.raises(RuntimeError, match="in between"), memory.together():
        open_incident(memory)
        raise RuntimeError("in between")

    assert memory.incidents.open() == []
    memory.close()


def test_a_transaction_that_cannot_be_written_leaves_the_next_one_free(tmp_path: Path) -> None:
    memory = open_memory(tmp_path / "state.db")
    pages = memory.db.execute("PRAGMA page_count").fetchone()[0]
    memory.db.execute(f"PRAGMA max_page_count = {pages}")  # the disk is full

    with pytest.raises(sqlite3.OperationalError, match="full"), memory.together():
        memory.db.execute("CREATE TABLE more (text)")
        memory.db.execute("INSERT INTO more VALUES (?)", ("x" * 100_000,))

    memory.db.execute("PRAGMA max_page_count = 1000000")
    with memory.together():
        assert open_incident(memory) == 1
    memory.close()


def test_in_ram_it_goes_on_from_what_was_in_the_file(tmp_path: Path) -> None:
    memory = open_memory(tmp_path / "state.db")
    incidents = memory.incidents  # whoever holds a part goes on with it
    open_incident(memory)

    memory.retreat("disk is full")
    incidents.acknowledge(1, "ada", NOW)

    assert memory.trouble == "disk is full"
    assert [i.acknowledged_by for i in incidents.open()] == ["ada"]
    on_disk = sqlite3.connect(tmp_path / "state.db")
    assert on_disk.execute("SELECT acknowledged_by FROM incident").fetchone() == (None,)
    on_disk.close()
    memory.close()


def test_it_comes_back_with_all_that_happened_meanwhile(tmp_path: Path) -> None:
    memory = open_memory(tmp_path / "state.db")
    open_incident(memory)
    memory.retreat("disk is full")
    memory.incidents.acknowledge(1, "ada", NOW)

    assert memory.come_back()

    assert memory.trouble == ""
    memory.close()
    again = open_memory(tmp_path / "state.db")
    assert [i.acknowledged_by for i in again.incidents.open()] == ["ada"]
    again.close()


@pytest.mark.parametrize("damage", ["all of it", "the middle"])
def test_a_damaged_file_is_left_as_it_is_and_never_written_over(
    tmp_path: Path, damage: str
) -> None:
    file = tmp_path / "state.db"
    memory = open_memory(file)
    for _ in range(200):
        memory.counters.exist("x" * 500, {"n": str(_)})
    memory.close()
    content = bytearray(file.read_bytes())
    start = 0 if damage == "all of it" else 4096
    content[start:] = b"\xa5" * (len(content) - start)
    file.write_bytes(content)

    memory = open_memory(file)

    assert memory.trouble
    assert not memory.is_whole
    assert open_incident(memory) == 1  # in RAM
    assert not memory.come_back()
    memory.close()
    assert file.read_bytes() == bytes(content)


def test_a_file_that_may_only_be_read_still_tells_what_is_open(tmp_path: Path) -> None:
    file = tmp_path / "state.db"
    memory = open_memory(file)
    open_incident(memory)
    memory.close()

    def refused(_path: object) -> sqlite3.Connection:
        raise sqlite3.OperationalError("attempt to write a readonly database")

    with pytest.MonkeyPatch.context() as patched:
        real = "sentinel.store.memory.open_database"
        ram = open_memory(":memory:").db
        patched.setattr(real, lambda path: ram if path == ":memory:" else refused(path))
        memory = open_memory(file)

    assert "readonly" in memory.trouble
    assert [i.number for i in memory.incidents.open()] == [1]
    assert memory.come_back()
    memory.close()


def test_a_file_of_a_newer_sentinel_is_refused(tmp_path: Path) -> None:
    db = sqlite3.connect(tmp_path / "state.db")
    db.execute(f"PRAGMA user_version = {len(migrations()) + 1}")
    db.close()

    with pytest.raises(Permanent, match="newer"):
        open_memory(tmp_path / "state.db")


def test_what_is_over_is_forgotten_and_what_is_open_stays(tmp_path: Path) -> None:
    memory = open_memory(tmp_path / "state.db")
    open_incident(memory)

    memory.forget(datetime(2040, 1, 1, tzinfo=UTC))

    assert [i.number for i in memory.incidents.open()] == [1]
    memory.close()
