"""How Alertmanager's API says no: the status, and JSON text that its clients show to people.

What breaks a rule of the API's schema has a code beside it, as in Alertmanager; what breaks a
rule of alerts or silences is a text alone. Nothing else decides a status here.
"""

from starlette.responses import Response

from sentinel.api.answers import Refused, answer, status_of
from sentinel.core.model.errors import Permanent, SentinelError

WRONG_KIND, MISSING, TOO_FEW = 601, 602, 612


class ApiError(Exception):
    def __init__(self, status: int, message: str, *, code: int | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.code = code

    def answer(self) -> Response:
        told = self.message if self.code is None else {"code": self.code, "message": self.message}
        return answer(told, self.status)


def unreadable(name: str, why: object) -> ApiError:
    """The body is not what the schema says it is."""
    return ApiError(400, f'parsing {name} body from "" failed, because {why}', code=400)


def missing(what: str) -> ApiError:
    return ApiError(422, f"{what} in body is required", code=MISSING)


def translated(error: SentinelError) -> ApiError:
    """What the daemon refused, or did not answer."""
    told = f"{error.message}. {error.hint}" if error.hint else error.message
    if isinstance(error, Permanent) and not isinstance(error, Refused):
        named = error.facts.get("status")
        return ApiError(404 if named == 404 else 400, told)
    return ApiError(status_of(error), told)
