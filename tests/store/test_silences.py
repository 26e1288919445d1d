"""Silences, as they are after the daemon has been away."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from sentinel.core.dispatch.silence import Silence
from sentinel.core.model.labels import Matcher
from sentinel.store.memory import open_memory
from sentinel.store.silences import KEPT

NOW = datetime(2030, 1, 1, 12, tzinfo=UTC)
ONE = Silence(
    id="35360c0f-3945-4cfd-ae5a-fdf2a1bb6a61",
    matchers=(Matcher("target", "=~", 't1-."a'), Matcher("名", "!=", "\n")),
    starts_at=NOW,
    ends_at=NOW + timedelta(hours=2, microseconds=1),
    updated_at=NOW,
    created_by="alice",
    comment="换显卡",
)


def test_a_silence_comes_back_as_it_was(tmp_path: Path) -> None:
    memory = open_memory(tmp_path / "state.db")
    memory.silences.save(ONE)
    memory.close()

    again = open_memory(tmp_path / "state.db")
    assert again.silences.all() == [ONE]
    again.close()


def test_a_silence_that_is_saved_again_has_changed() -> None:
    memory = open_memory(":memory:")
    changed = replace(ONE, ends_at=NOW, comment="over")
    memory.silences.save(ONE)
    memory.silences.save(changed)

    assert memory.silences.all() == [changed]
    memory.close()


def test_a_silence_is_forgotten_long_after_its_end() -> None:
    memory = open_memory(":memory:")
    memory.silences.save(ONE)

    memory.silences.forget(ONE.ends_at)
    assert memory.silences.all() == [ONE]
    memory.silences.forget(ONE.ends_at + KEPT)
    assert memory.silences.all() == []
    memory.close()


def test_silences_go_on_in_ram() -> None:
    memory = open_memory(":memory:")
    silences = memory.silences
    silences.save(ONE)

    memory.retreat("the disk is full")

    assert silences.all() == [ONE]
    memory.close()
