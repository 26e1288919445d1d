"""What the server answers on each path, and what it counts and logs of it.

/health says only that the engine is not known to be dead; with a stopped engine it is 200 for
ever, as in vLLM.
"""

import asyncio
import time

from .arguments import Arguments
from .backend import Backend
from .calls import EngineDeadError
from .completions import engine_dead, failure, read, streamed, whole
from .exposition import Exposition
from .faults import Trouble, read_commands
from .http_counts import HttpCounts
from .journal import Journal
from .web import PHRASES, Answer, Request, json_answer

METRICS_TYPE = "text/plain; version=1.0.0; charset=utf-8"
COMPLETIONS = ("/v1/completions", "/v1/chat/completions")
READABLE = ("/health", "/ping", "/metrics", "/version", "/load", "/v1/models")


class Routes:
    def __init__(
        self,
        *,
        arguments: Arguments,
        backend: Backend,
        exposition: Exposition,
        journal: Journal,
        trouble: Trouble,
        max_len: int,
        dev_mode: bool,
    ) -> None:
        self._arguments, self._backend, self._exposition = arguments, backend, exposition
        self._journal, self._trouble, self._max_len = journal, trouble, max_len
        self._dev_mode = dev_mode
        self.http = HttpCounts()

    def log(self, request: Request, answer: Answer, took: float) -> None:
        handler = request.path if request.path in (*READABLE, *COMPLETIONS) else "none"
        received = int(request.headers.get("content-length", "0") or 0)
        sizes = (received, len(answer.body))
        self.http.count(handler, request.method, answer.status, sizes=sizes, took=took)
        if not self._arguments.disable_uvicorn_access_log:
            line = f'"{request.method} {request.path} HTTP/{request.version}" {answer.status}'
            text = f"INFO:     {request.client} - {line} {PHRASES[answer.status]}"
            self._journal.say("", "", text)

    async def respond(self, request: Request) -> Answer:
        path = request.path
        if path.startswith("/sim/"):
            return self._obey(path.removeprefix("/sim/"))
        if self._arguments.api_key and path.startswith("/v1"):
            bearer = request.headers.get("authorization", "").removeprefix("Bearer ")
            if bearer not in self._arguments.api_key:
                return json_answer({"error": "Unauthorized"}, 401)
        if path in COMPLETIONS:
            if request.method != "POST":
                return _not_allowed("POST")
            return await self._complete(request)
        if path in READABLE and request.method not in ("GET", "HEAD"):
            return _not_allowed("GET")
        if path == "/metrics":
            return await self._metrics()
        return self._state(path, request.method)

    def _state(self, path: str, method: str) -> Answer:
        if path in ("/health", "/ping"):
            return Answer(503 if self._backend.dead else 200)
        if path == "/version":
            return json_answer({"version": "0.32.0"})
        if path == "/load":
            tracked = self._arguments.enable_server_load_tracking
            return json_answer({"server_load": len(self._backend.calls) if tracked else 0})
        if path == "/v1/models":
            cards = [self._card(name) for name in self._arguments.names]
            return json_answer({"object": "list", "data": cards})
        if self._dev_mode and path == "/is_sleeping":
            return json_answer({"is_sleeping": self._backend.asleep})
        if self._dev_mode and path in ("/sleep", "/wake_up") and method == "POST":
            self._backend.sleep(asleep=path == "/sleep")
            return Answer()
        return json_answer({"detail": "Not Found"}, 404)

    def _card(self, name: str) -> dict[str, object]:
        return {
            "id": name,
            "object": "model",
            "created": int(time.time()),
            "owned_by": "vllm",
            "root": self._arguments.model,
            "parent": None,
            "max_model_len": self._max_len,
        }

    async def _metrics(self) -> Answer:
        await asyncio.sleep(self._trouble.metrics_delay)
        if self._trouble.metrics == "none":
            return json_answer({"detail": "Not Found"}, 404)
        text = self._exposition.text() + self.http.text()
        if self._trouble.metrics == "garbage":
            text = "<html>" + text[: len(text) // 2] + '\nvllm:num_requests_running{engine="0\n'
        return Answer(body=text.encode(), content_type=METRICS_TYPE)

    async def _complete(self, request: Request) -> Answer:
        asked = read(request, names=self._arguments.names, max_len=self._max_len)
        if isinstance(asked, Answer):
            return asked
        try:
            if asked.stream:
                call = self._backend.begin(prompt=asked.prompt, limit=asked.limit)
                kind = "text/event-stream; charset=utf-8"
                return Answer(content_type=kind, chunks=streamed(asked, call, self._backend.end))
            await self._backend.complete(prompt=asked.prompt, limit=asked.limit)
        except EngineDeadError as error:
            return engine_dead(error)
        return whole(asked)

    def _obey(self, text: str) -> Answer:
        try:
            commands = read_commands(text)
        except ValueError as error:
            return failure(str(error), "BadRequestError", 400)
        for command in commands:
            self._trouble.begin(command)
        doing = [command.name for command in commands]
        return json_answer({"doing": doing, "engine_pid": self._backend.pid})


def _not_allowed(allowed: str) -> Answer:
    answer = json_answer({"detail": "Method Not Allowed"}, 405)
    answer.extra["allow"] = allowed
    return answer
