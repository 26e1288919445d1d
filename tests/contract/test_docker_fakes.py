"""The Docker adapters on an engine that is absent, hung, cut off, upgraded or strange.

`Engine` speaks just enough HTTP on a unix socket, and misbehaves as told.
"""

import json
import socketserver
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from sentinel.adapters.docker_events import DockerEvents
from sentinel.adapters.docker_eyes import DockerEyes
from sentinel.adapters.docker_hands import DockerHands
from sentinel.core.model.container import EngineEvent, Status
from sentinel.core.model.errors import Ambiguous, Permanent, SentinelError, Transient

ID = "c" * 64
STARTED = datetime(2030, 1, 1, 12, 0, 0, 123456, tzinfo=UTC)

Say = Callable[[bytes], None]
Route = Callable[[str, Say], None]


def reply(status: int, body: object = None, *, kind: str = "application/json") -> Route:
    def route(_request: str, say: Say) -> None:
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        content = b"" if status in (204, 304) else content
        say(
            f"HTTP/1.1 {status} X\r\nContent-Type: {kind}\r\n"
            f"Content-Length: {len(content)}\r\n\r\n".encode()
            + content
        )

    return route


def refusal(status: int, message: str) -> Route:
    return reply(status, {"message": message})


def inspected(status: str = "running", started: str = "2030-01-01T12:00:00.123456789Z") -> Route:
    return reply(
        200,
        {
            "Id": ID,
            "Name": "/llm",
            "Path": "vllm",
            "Args": ["serve", "m"],
            "State": {"Status": status, "StartedAt": started},
            "Config": {},
            "HostConfig": {},
        },
    )


class Engine(socketserver.ThreadingUnixStreamServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, path: Path) -> None:
        self.api = "1.41"
        self.routes: dict[str, Route] = {}
        self.asked: list[str] = []
        self.frozen = threading.Event()
        self.hang_on: set[str] = set()
        self.gate = threading.Event()
        super().__init__(str(path), _Talk)
        self.host = f"unix://{path}"
        threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()

    def close(self) -> None:
        self.gate.set()
        self.shutdown()
        self.server_close()


class _Talk(socketserver.StreamRequestHandler):
    server: Engine

    def handle(self) -> None:
        while line := self.rfile.readline().decode().strip():
            while self.rfile.readline().strip():
                pass
            self.server.asked.append(line)
            what = line.split()[1].partition("?")[0]
            name = what.rpartition("/")[2]
            if name in self.server.hang_on:
                self.server.gate.wait(20)
                return
            if what == "/version":
                reply(200, {"ApiVersion": self.server.api})(line, self._say)
                continue
            route = self.server.routes.get(name, refusal(404, "No such thing"))
            if not what.startswith(f"/v{self.server.api}/"):
                route = refusal(
                    400, "client version 1.41 is too old. Minimum supported API version is 1.44"
                )
            try:
                route(line, self._say)
            except ConnectionAbortedError:
                return

    def _say(self, data: bytes) -> None:
        self.wfile.write(data)
        self.wfile.flush()


def cut(_request: str, _say: Say) -> None:
    raise ConnectionAbortedError


def cut_in_the_middle(_request: str, say: Say) -> None:
    say(b'HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n{"half":')
    raise ConnectionAbortedError


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    engine = Engine(tmp_path / "docker.sock")
    yield engine
    engine.close()


@pytest.fixture
def eyes(engine: Engine) -> Iterator[DockerEyes]:
    eyes = DockerEyes(engine.host, read=0.4)
    yield eyes
    eyes.close()


@pytest.fixture
def hands(engine: Engine) -> Iterator[DockerHands]:
    hands = DockerHands(engine.host, margin=0.4)
    yield hands
    hands.close()


LOOKS: dict[str, Callable[[DockerEyes], Any]] = {
    "list": lambda eyes: eyes.list(),
    "inspect": lambda eyes: eyes.inspect(ID),
    "log": lambda eyes: eyes.log_tail(ID, lines=10),
}


@pytest.mark.parametrize("look", LOOKS.values(), ids=LOOKS.keys())
class TestEyesOnAnEngineThatDoesNotAnswer:
    def test_absent(self, look: Callable[[DockerEyes], Any], tmp_path: Path) -> None:
        with pytest.raises(Transient, match="No such file") as caught:
            look(DockerEyes(f"unix://{tmp_path}/none.sock"))
        assert caught.value.hint

    def test_hung(
        self, look: Callable[[DockerEyes], Any], engine: Engine, eyes: DockerEyes
    ) -> None:
        engine.hang_on = {"json", "logs"}

        with pytest.raises(Transient, match="no answer in time"):
            look(eyes)

    @pytest.mark.parametrize(
        "route",
        [
            pytest.param(cut, id="closes"),
            pytest.param(cut_in_the_middle, id="closes in the middle"),
            pytest.param(refusal(500, "driver failed"), id="refuses"),
        ],
    )
    def test_cut_off(
        self, look: Callable[[DockerEyes], Any], route: Route, engine: Engine, eyes: DockerEyes
    ) -> None:
        engine.routes = {"json": route, "logs": route}

        with pytest.raises(Transient):
            look(eyes)

    def test_back_again(
        self, look: Callable[[DockerEyes], Any], engine: Engine, eyes: DockerEyes
    ) -> None:
        engine.routes = {"json": cut, "logs": cut}
        with pytest.raises(Transient):
            look(eyes)

        engine.routes = {"json": refusal(404, "No such container"), "logs": reply(200, b"")}
        if look is LOOKS["list"]:
            engine.routes = {"json": reply(200, [])}

        assert not look(eyes)


@pytest.mark.parametrize("body", [b"<html>", b'"x"', b"null", b""], ids=repr)
def test_an_answer_that_is_none_is_not_an_empty_list(
    engine: Engine, eyes: DockerEyes, body: bytes
) -> None:
    engine.routes = {"json": reply(200, body)}

    with pytest.raises(Transient):
        eyes.list()
    with pytest.raises(Transient):
        eyes.inspect(ID)


def test_an_engine_upgraded_under_us_is_talked_to_anew(engine: Engine, eyes: DockerEyes) -> None:
    engine.routes = {"json": reply(200, [])}
    eyes.list()

    engine.api = "1.52"

    assert eyes.list() == []
    assert engine.asked[-1].startswith("GET /v1.52/containers/json")


def test_a_container_of_a_strange_engine_costs_only_what_is_strange(
    engine: Engine, eyes: DockerEyes
) -> None:
    engine.routes = {"json": reply(200, {"Id": ID, "State": None, "Config": 7})}

    container = eyes.inspect(ID)

    assert container is not None
    assert container.status is Status.CREATED


def stop(hands: DockerHands) -> None:
    hands.stop(ID, if_started_at=STARTED, grace=0)


def start(hands: DockerHands) -> None:
    hands.start(ID, if_started_at=STARTED)


class TestHands:
    @pytest.mark.parametrize("act", [stop, start])
    def test_nothing_is_done_blind(
        self, act: Callable[[DockerHands], None], engine: Engine, hands: DockerHands
    ) -> None:
        engine.routes = {"json": refusal(500, "no"), "stop": reply(204), "start": reply(204)}

        with pytest.raises(Transient):
            act(hands)

        assert not [line for line in engine.asked if line.startswith("POST")]

    @pytest.mark.parametrize(
        ("route", "kind", "says"),
        [
            pytest.param(reply(204), None, "", id="done"),
            pytest.param(reply(304), None, "", id="was so already"),
            pytest.param(
                refusal(404, "network net not found"), Permanent, "network net", id="gone"
            ),
            pytest.param(refusal(400, "no such executable"), Permanent, "executable", id="bad"),
            pytest.param(refusal(409, "removal in progress"), Transient, "removal", id="conflict"),
            pytest.param(
                refusal(500, "did not receive an exit event"), Transient, "exit event", id="failed"
            ),
            pytest.param(cut, Ambiguous, "Docker does not answer", id="closed"),
            pytest.param(
                refusal(400, "client version 1.41 is too old"), Transient, "too old", id="upgraded"
            ),
        ],
    )
    @pytest.mark.parametrize(("act", "status"), [(stop, "running"), (start, "exited")])
    def test_what_the_engine_says_of_an_act(
        self,
        act: Callable[[DockerHands], None],
        status: str,
        route: Route,
        kind: type[SentinelError] | None,
        says: str,
        engine: Engine,
        hands: DockerHands,
    ) -> None:
        engine.routes = {"json": inspected(status), act.__name__: route}

        if kind is None:
            act(hands)
        else:
            with pytest.raises(kind, match=says):
                act(hands)

        posts = [line.split()[1] for line in engine.asked if line.startswith("POST")]
        query = "?t=0" if act is stop else ""
        assert posts == [f"/v1.41/containers/{ID}/{act.__name__}{query}"]

    def test_a_stop_that_outlasts_its_grace_and_margin_is_ambiguous(
        self, engine: Engine, hands: DockerHands
    ) -> None:
        engine.routes = {"json": inspected()}
        engine.hang_on = {"stop"}

        with pytest.raises(Ambiguous, match="no answer in time"):
            stop(hands)

    @pytest.mark.parametrize(
        ("status", "started"),
        [
            pytest.param("running", "2030-01-01T12:00:05Z", id="started since"),
            pytest.param("running", "2030-01-01T12:00:00.123456Z", id="still running"),
            pytest.param("paused", "2030-01-01T12:00:05Z", id="started and paused since"),
            pytest.param(
                "running", "2030-01-01T11:00:00Z", id="started since, by a clock set back"
            ),
        ],
    )
    def test_what_is_up_needs_no_start(
        self, status: str, started: str, engine: Engine, hands: DockerHands
    ) -> None:
        engine.routes = {"json": inspected(status, started), "start": cut}

        start(hands)

    @pytest.mark.parametrize(
        ("status", "started"),
        [
            pytest.param("exited", "2030-01-01T12:00:05Z", id="ran and ended since"),
            pytest.param("restarting", "2030-01-01T12:00:05Z", id="crash loop since"),
            pytest.param("created", "0001-01-01T00:00:00Z", id="never ran"),
            pytest.param("dead", "2030-01-01T12:00:00.123456Z", id="dead"),
            pytest.param("removing", "2030-01-01T12:00:00.123456Z", id="being removed"),
        ],
    )
    def test_another_run_is_not_started(
        self, status: str, started: str, engine: Engine, hands: DockerHands
    ) -> None:
        engine.routes = {"json": inspected(status, started), "start": reply(204)}

        with pytest.raises(Permanent):
            start(hands)

        assert not [line for line in engine.asked if line.startswith("POST")]

    @pytest.mark.parametrize("status", ["exited", "created", "dead", "removing"])
    def test_what_does_not_run_needs_no_stop(
        self, status: str, engine: Engine, hands: DockerHands
    ) -> None:
        engine.routes = {"json": inspected(status), "stop": cut}

        stop(hands)


OLD = {
    "status": "die",
    "id": ID,
    "from": "vllm",
    "Type": "container",
    "Action": "die",
    "time": 5,
    "timeNano": 5_000_000_001,
}
OLD["Actor"] = {"ID": ID, "Attributes": {"exitCode": "137", "name": "llm"}}
NEW = {key: value for key, value in OLD.items() if key not in ("status", "id", "from")}


def stream(*lines: bytes, then: Callable[[], object]) -> Route:
    def route(_request: str, say: Say) -> None:
        say(
            b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
        )
        for line in lines:
            say(f"{len(line):x}\r\n".encode() + line + b"\r\n")
        then()
        raise ConnectionAbortedError

    return route


def follow(
    engine_host: str, *, since_ns: int | None = None, silence: float = 0.3
) -> list[EngineEvent | str]:
    said: list[EngineEvent | str] = []
    DockerEvents(engine_host, silence=silence).follow(
        since_ns, opened=lambda: said.append("opened"), heard=said.append
    )
    return said


class TestEvents:
    @pytest.mark.parametrize("raw", [OLD, NEW], ids=["before 1.52", "from 1.52"])
    def test_an_event_of_any_age_of_engine_is_heard(
        self, raw: dict[str, object], engine: Engine
    ) -> None:
        engine.routes = {"events": stream(json.dumps(raw).encode() + b"\n", then=lambda: None)}

        opened, event = follow(engine.host)

        assert opened == "opened"
        assert isinstance(event, EngineEvent)
        assert (event.action, event.container_id, event.exit_code, event.name) == (
            "die",
            ID,
            137,
            "llm",
        )

    def test_an_event_in_pieces_is_one_and_garbage_is_none(self, engine: Engine) -> None:
        whole = json.dumps(NEW).encode()
        lines = (whole[:20], whole[20:] + b"\n" + b"\xff{garbage\n[]\n7\n", whole + b"\n")
        engine.routes = {"events": stream(*lines, then=lambda: None)}

        assert len(follow(engine.host)) == 3

    def test_a_frozen_engine_is_an_end(self, engine: Engine) -> None:
        engine.routes = {"events": stream(then=lambda: engine.gate.wait(20))}

        begun = time.monotonic()

        assert follow(engine.host) == ["opened"]
        assert time.monotonic() - begun < 3

    def test_an_engine_frozen_before_it_answers_is_transient(self, engine: Engine) -> None:
        engine.hang_on = {"events"}

        with pytest.raises(Transient, match="no answer in time"):
            follow(engine.host)

    @pytest.mark.parametrize(
        "route",
        [pytest.param(cut, id="closes"), pytest.param(refusal(500, "no"), id="refuses")],
    )
    def test_a_stream_that_cannot_be_opened_is_transient(
        self, route: Route, engine: Engine
    ) -> None:
        engine.routes = {"events": route}

        with pytest.raises(Transient):
            follow(engine.host)

    def test_no_engine_is_transient(self, tmp_path: Path) -> None:
        with pytest.raises(Transient):
            follow(f"unix://{tmp_path}/none.sock")

    def test_it_asks_for_what_came_after_and_for_what_concerns_containers(
        self, engine: Engine
    ) -> None:
        engine.routes = {"events": stream(then=lambda: None)}

        follow(engine.host, since_ns=1_999_999_999)

        query = engine.asked[-1]
        assert "since=2.000000000" in query
        assert "%22type%22%3A+%5B%22container%22%2C+%22image%22%5D" in query
        assert "exec" not in query

    def test_an_error_of_the_listener_is_its_own(self, engine: Engine) -> None:
        engine.routes = {"events": stream(json.dumps(NEW).encode() + b"\n", then=lambda: None)}

        def broken(_event: EngineEvent) -> None:
            raise OSError("the listener's")

        with pytest.raises(OSError, match="the listener's"):
            DockerEvents(engine.host).follow(None, opened=lambda: None, heard=broken)
