import pytest

from sentinel.core.gpu.xid import LABELS, XIDS, explain, label_of


@pytest.mark.parametrize(
    ("numbers", "helps"),
    [
        ([13, 31, 94], "restart"),
        ([43, 45, 63, 92, 154], "nothing"),
        ([46, 48, 62, 64, 74, 95, 109, 119, 120, 140, 143, 155, 156, 158], "reset"),
        ([79], "reboot"),
        ([144, 149, 150], "inspect"),
    ],
    ids=["restart", "nothing", "reset", "reboot", "inspect"],
)
def test_what_helps_is_what_the_catalogue_says(numbers: list[int], helps: str) -> None:
    assert {XIDS[number].helps for number in numbers} == {helps}


def test_sentinel_acts_only_where_a_restart_is_the_cure() -> None:
    assert {xid.helps for xid in XIDS.values() if xid.may_act} == {"restart"}
    assert not any(XIDS[number].may_act for number in (43, 45, 48, 79, 95, 119, 154))


def test_what_a_container_cannot_cure_is_critical() -> None:
    assert all(
        (xid.severity == "critical") == (xid.helps in ("reset", "reboot")) for xid in XIDS.values()
    )


@pytest.mark.parametrize("number", [0, 1, 160, 165, 999, 2**40])
def test_a_number_that_is_not_in_the_table_is_other(number: int) -> None:
    assert label_of(number) == "other"
    assert f"Xid {number}" in explain(number)


def test_every_label_is_one_of_the_table_or_other() -> None:
    assert {*map(label_of, XIDS), "other"} == set(LABELS)
    assert len(LABELS) == len(set(LABELS))


def test_a_sentence_says_what_happened_and_what_helps() -> None:
    assert explain(79) == (
        "Xid 79: the GPU fell off the bus. "
        "The host needs a reboot; a restart of the container does not help"
    )
