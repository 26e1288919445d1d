"""Reads the JSON body of a command: bounded in size and time, every key accounted for.

A key nobody knows is refused by name: a misspelt `for` must not become a pause without end.
"""

import asyncio
import json
from typing import Any

from starlette.requests import ClientDisconnect, Request

from sentinel.api.answers import Refused

LIMIT = 64 * 1024
WITHIN = 10.0  # seconds


async def read_body(request: Request, *allowed: str) -> dict[str, str]:
    """The strings of the body by key; a key that is null or absent is left out."""
    value = _parse(await receive(request, LIMIT))
    for key, given in value.items():
        if key not in allowed:
            raise Refused(400, f"{key}: unknown key", hint=_hint(allowed))
        if given is not None and not isinstance(given, str):
            raise Refused(400, f"{key}: must be a string", hint=_hint(allowed))
    return {key: given for key, given in value.items() if given is not None}


async def receive(request: Request, limit: int) -> bytes:
    """The whole body. Raises `Refused` if it is too large or too slow."""
    read = bytearray()
    try:
        async with asyncio.timeout(WITHIN):
            async for chunk in request.stream():
                read += chunk
                if len(read) > limit:
                    raise Refused(413, f"the body is larger than {limit} bytes")
    except TimeoutError:
        raise Refused(408, f"the body did not arrive within {WITHIN:g} s") from None
    except ClientDisconnect:
        raise Refused(400, "the client went away") from None
    return bytes(read)


def _parse(body: bytes) -> dict[str, Any]:
    if not body.strip():
        return {}
    try:
        value = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise Refused(400, f"the body is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise Refused(400, "the body must be a JSON object")
    return value


def _hint(allowed: tuple[str, ...]) -> str:
    return f"Allowed: {', '.join(allowed)}." if allowed else "This request takes no keys."
