import unicodedata
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentinel.core.model.message import AlertFacts, DecisionFacts, Kind, Notice
from sentinel.core.voice.plain import cut, plain
from sentinel.core.voice.say import Said, say
from sentinel.core.voice.words import CHINESE, ENGLISH, WORDS, Language

BECAUSE = "restarted 2 times in the last hour; the budget is 2 per hour"
EXITED = AlertFacts(
    status="firing",
    labels={
        "alertname": "VllmContainerExited",
        "severity": "critical",
        "target": "t1-a",
        "host": "gpu-7",
        "model_name": "qwen",
    },
    annotations={"summary": "t1-a has exited", "description": "Nobody stopped it."},
    starts_at="2030-01-01T03:00:00Z",
)
QUEUE = replace(
    EXITED,
    labels={"alertname": "VllmQueueBacklog", "severity": "warning", "target": "t1-a"},
    annotations={"summary": "queue"},
    starts_at="2030-01-01T02:59:00Z",
)
NOTICE = Notice(
    kind="held",
    group_key="g",
    group_labels={},
    alerts=(QUEUE, EXITED),
    incident={
        "id": "i-000007",
        "severity": "critical",
        "subject": {"kind": "target", "name": "t1-a"},
        "opened_at": "2030-01-01T02:59:01.250000Z",
        "diagnosis": {"cause": "clean_stop", "advice": "Look who stopped it."},
    },
    decision=DecisionFacts(action="restart", would=True, guard="budget_target", because=BECAUSE),
    headline="exited with code 0 and nobody stopped it",
    facts={"target": "t1-a", "state": "failed", "because": "exited with code 0"},
)
KINDS: list[Kind] = ["alert", "held", "approval", "action", "resolved", "digest", "test"]


def rows(said: Said) -> dict[str, str]:
    return {line.label: line.text for line in said.lines}


def test_a_held_action_says_what_where_since_when_the_cause_and_why_not() -> None:
    said = say(NOTICE)

    assert said.title == "HELD BACK critical · t1-a · exited with code 0 and nobody stopped it"
    assert said.rows == (
        "Where: target t1-a",
        "Since: 2030-01-01 02:59:01 UTC",
        "State: failed: exited with code 0",
        "Cause: clean_stop",
        "Advice: Look who stopped it.",
        "Would do: restart",
        "Held back by: budget_target",
        f"Because: {BECAUSE}",
        "Alerts: VllmQueueBacklog, VllmContainerExited",
        "Detail: Nobody stopped it.",
        "To look: sentinel incidents show i-000007",
    )


def test_chinese_has_its_own_labels_and_the_same_sentences() -> None:
    said = say(NOTICE, language="zh")

    assert said.title.startswith("操作被拦下 严重 · t1-a · ")
    assert f"理由：{BECAUSE}" in said.rows
    assert "拦下它的：budget_target" in said.rows


@pytest.mark.parametrize(
    ("kind", "would", "label"),
    [
        ("held", True, "Would do"),
        ("alert", True, "Would do"),
        ("approval", True, "Asks to"),
        ("action", False, "Action"),
    ],
)
def test_done_is_told_from_would_be_done(kind: Kind, would: bool, label: str) -> None:
    decision = DecisionFacts(action="restart", would=would, guard=None, because=BECAUSE)

    told = rows(say(replace(NOTICE, kind=kind, decision=decision)))
    assert told[label] == "restart"
    assert "Held back by" not in told


def test_an_approval_says_what_to_type() -> None:
    told = rows(say(replace(NOTICE, kind="approval", facts={"intent": "n-000012"})))

    assert told["To approve"] == "sentinel approve n-000012"


def test_without_facts_the_alerts_speak() -> None:
    """As when a Prometheus outside posted them."""
    said = say(Notice(kind="alert", group_key="", group_labels={}, alerts=(EXITED,), incident=None))

    assert said.title == "FIRING critical · t1-a · t1-a has exited"
    assert said.rows[:2] == (
        "Where: target t1-a, host gpu-7, model qwen",
        "Since: 2030-01-01 03:00:00 UTC",
    )


def test_the_loudest_firing_alert_speaks_for_the_group() -> None:
    over = replace(EXITED, status="resolved")
    notice = Notice(
        kind="alert", group_key="", group_labels={}, alerts=(over, QUEUE), incident=None
    )

    assert say(notice).title == "FIRING warning · t1-a · queue"
    assert rows(say(notice))["Resolved"] == "VllmContainerExited"


def test_an_alert_message_of_which_nothing_fires_says_resolved() -> None:
    over = replace(EXITED, status="resolved", ends_at="2030-01-01T03:04:05Z")
    said = say(Notice(kind="alert", group_key="", group_labels={}, alerts=(over,), incident=None))

    assert said.title.startswith("RESOLVED")
    assert rows(said)["Until"] == "2030-01-01 03:04:05 UTC"
    assert not said.calls


@pytest.mark.parametrize(
    ("kind", "calls"),
    [
        ("alert", True),
        ("approval", True),
        ("held", False),
        ("action", False),
        ("resolved", False),
        ("digest", False),
        ("test", False),
    ],
)
def test_who_is_asleep_is_woken_only_when_wanted(kind: Kind, calls: bool) -> None:
    assert say(replace(NOTICE, kind=kind)).calls is calls


def test_a_call_without_alerts_is_not_good_news() -> None:
    assert say(replace(NOTICE, kind="alert", alerts=())).title.startswith("FIRING")


def test_alerts_of_one_name_are_counted() -> None:
    assert rows(say(replace(NOTICE, alerts=(QUEUE, QUEUE))))["Alerts"] == "VllmQueueBacklog ×2"


def test_a_fact_without_a_place_is_said_under_its_own_name() -> None:
    digest = Notice(
        kind="digest",
        group_key="",
        group_labels={},
        alerts=(),
        incident=None,
        headline="3 incidents since yesterday",
        facts={"host": "gpu-7", "would_have_restarted": "2"},
    )

    said = say(digest)
    assert said.title == "DIGEST · gpu-7 · 3 incidents since yesterday"
    assert rows(said) == {"Where": "host gpu-7", "would_have_restarted": "2"}


@pytest.mark.parametrize("since", ["", "yesterday", "2030-01-01T03:00:00+08:00"])
def test_a_time_that_cannot_be_shortened_is_said_as_it_is(since: str) -> None:
    told = rows(say(replace(NOTICE, incident=None, alerts=(), facts={"since": since})))

    assert told.get("Since", "") == since


def test_both_languages_have_the_same_words() -> None:
    assert ENGLISH.labels.keys() == CHINESE.labels.keys()
    assert ENGLISH.headings.keys() == CHINESE.headings.keys() == set(KINDS)


texts = st.text(st.characters() | st.sampled_from("\x1b[]31m\x07\x9b\n\r\u202e\ud800"), max_size=60)


@given(text=texts, kind=st.sampled_from(KINDS), language=st.sampled_from(list(WORDS)))
def test_no_text_forges_a_line_or_stops_a_message(
    text: str, kind: Kind, language: Language
) -> None:
    alert = replace(
        EXITED, labels={"alertname": text, "target": text}, annotations={"summary": text}
    )
    decision = DecisionFacts(action=text, would=True, guard=text, because=text)
    said = say(
        replace(NOTICE, kind=kind, alerts=(alert,), decision=decision, facts={text: text}),
        language=language,
    )

    for row in (said.title, *said.rows):
        assert len(row.splitlines()) == 1
        assert not any(unicodedata.category(char) in ("Cc", "Cs") for char in row)


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("\x1b[1;31mERROR\x1b[0m x", "ERROR x"),
        ("\x1b]8;;http://x\x07link\x1b]8;;\x07", "link"),
        ("\x1b]0;title\x1b\\after", "after"),
        ("a\nGuard: none\tb", "a Guard: none b"),
        ("safe\u202egnp.exe", "safegnp.exe"),
        ("很好 😀", "很好 😀"),
        ("a\x00b\x7fc", "abc"),
        ("ends in \x1b", "ends in"),
        ("half \ud800 a pair", "half \ufffd a pair"),
    ],
)
def test_plain(text: str, left: str) -> None:
    assert plain(text) == left


@given(texts)
def test_plain_text_stays_as_it_is(text: str) -> None:
    assert plain(plain(text)) == plain(text)


@given(st.text(max_size=300), st.integers(3, 200))
def test_cut_gives_the_longest_beginning_that_fits(text: str, limit: int) -> None:
    def size(part: str) -> int:
        return len(part.encode("utf-8", "replace"))

    left = cut(text, limit, size)

    assert size(left) <= limit
    if left != text:
        kept = left.removesuffix("…")
        assert text.startswith(kept)
        assert size(text[: len(kept) + 1] + "…") > limit
