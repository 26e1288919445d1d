"""How Prometheus's API answers: its envelope, its kinds of error, its status codes.

`ApiError` carries the kind; nothing else decides a status here. What a client can read of an
error is in `error`, in Prometheus's own words where it has some.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from starlette.responses import Response

from sentinel.api.snapshot import to_json

Kind = Literal[
    "bad_data", "execution", "timeout", "canceled", "internal", "not_found", "unavailable"
]

STATUS: dict[Kind, int] = {
    "bad_data": 400,
    "execution": 422,
    "timeout": 503,
    "canceled": 503,
    "internal": 500,
    "not_found": 404,
    "unavailable": 503,
}
TRUNCATED = "results truncated due to limit"


class ApiError(Exception):
    def __init__(self, kind: Kind, message: str) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message


class Rendered(bytes):
    """JSON already, and put into the answer as it is."""


@dataclass(frozen=True, slots=True)
class Found:
    data: object
    warnings: Sequence[str] = ()
    infos: Sequence[str] = ()

    def rendered(self) -> bytes:
        data = self.data if isinstance(self.data, Rendered) else to_json(self.data)
        beside = {"warnings": self.warnings, "infos": self.infos}
        more = b"".join(
            f',"{key}":'.encode() + to_json(list(told)) for key, told in beside.items() if told
        )
        return b'{"status":"success","data":' + data + more + b"}"


def bad(parameter: str, why: object) -> ApiError:
    """A parameter is not what it should be."""
    return ApiError("bad_data", f'invalid parameter "{parameter}": {why}')


def success(body: bytes) -> Response:
    return Response(body, media_type="application/json")


def failure(error: ApiError) -> Response:
    told = {"status": "error", "errorType": error.kind, "error": error.message}
    return Response(to_json(told), status_code=STATUS[error.kind], media_type="application/json")
