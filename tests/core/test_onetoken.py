import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentinel.core.model.target import Answer
from sentinel.core.onetoken import FORMS, first_model, is_not_offered, why_no_token


def answer(
    status: int | None, said: Any = None, *, failure: str = "", body: bytes | None = None
) -> Answer:
    content = json.dumps(said).encode() if body is None else body
    at = datetime(2030, 1, 1, tzinfo=UTC)
    return Answer(at=at, took=0.1, status=status, body=content, failure=failure, says=failure)


def refused(message: str) -> dict[str, Any]:
    return {"error": {"message": message}}


@pytest.mark.parametrize(
    ("said", "model"),
    [
        ({"data": [{"id": "a"}]}, "a"),
        ({"data": [{"id": "lora", "parent": "a"}, {"id": "a", "parent": None}]}, "a"),
        ({"data": [{"id": "lora", "parent": "elsewhere"}]}, "lora"),
        ({"data": [None, {"id": 7}, {"id": "a"}]}, "a"),
        ({"data": []}, None),
        ({"data": "a"}, None),
        ([], None),
        (None, None),
    ],
)
def test_first_model(said: Any, model: str | None) -> None:
    assert first_model(answer(200, said)) == model
    assert first_model(answer(500, said)) is None


@pytest.mark.parametrize(
    ("status", "said", "offered"),
    [
        pytest.param(404, {"detail": "Not Found"}, False, id="no route"),
        pytest.param(404, refused("The model `m` does not exist."), True, id="no model"),
        pytest.param(405, {}, False, id="no method"),
        pytest.param(
            400, refused("The model does not support Completions API"), False, id="no API"
        ),
        pytest.param(400, refused("Unsupported task: 'embed'"), False, id="no task"),
        pytest.param(400, refused("max_tokens is too large"), True, id="bad request"),
        pytest.param(501, refused("Not implemented"), False, id="not implemented"),
        pytest.param(500, refused("does not support"), True, id="a fault"),
        pytest.param(200, {"choices": [1]}, True, id="answered"),
    ],
)
def test_is_not_offered(status: int, said: Any, offered: bool) -> None:
    assert is_not_offered(answer(status, said)) is not offered


def test_an_answer_that_never_came_says_nothing_of_what_is_offered() -> None:
    assert not is_not_offered(answer(None, failure="timeout"))


def test_a_long_reason_is_cut_and_on_one_line() -> None:
    said = why_no_token(answer(500, refused("a\nb " * 500)), FORMS[0])

    assert len(said) == 200
    assert said.startswith("HTTP 500: a b a b")


@given(st.binary(max_size=60), st.sampled_from([200, 400, 404, 500]))
def test_no_body_is_too_strange(body: bytes, status: int) -> None:
    strange = answer(status, body=body)

    assert why_no_token(strange, FORMS[0])
    first_model(strange)
    is_not_offered(strange)
