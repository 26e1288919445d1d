"""Stands between a daemon and the Docker engine, and fails as engines do.

Only this one's clients notice: the engine itself, and what a test asks of it directly, go on.
After `hang` what was sent meanwhile is delivered late, as by an engine that was stopped and
continued: nothing is lost.
"""

import contextlib
import socket
import threading
from collections.abc import Callable
from pathlib import Path

ENGINE = Path("/var/run/docker.sock")


class DockerProxy:
    def __init__(self, path: Path, engine: Path = ENGINE) -> None:
        self._path, self._engine = path, engine
        self._listener: socket.socket | None = None
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._flows = threading.Event()
        self._last_words = b""
        self.go_on()

    @property
    def url(self) -> str:
        return f"unix://{self._path}"

    def go_on(self) -> None:
        """Be as good as the engine itself; also after any of the failures."""
        if self._listener is None:
            self._path.unlink(missing_ok=True)
            self._listener = socket.socket(socket.AF_UNIX)
            self._listener.bind(str(self._path))
            self._listener.listen(64)
            self._start(self._accept, self._listener)
        self._flows.set()

    def refuse(self) -> None:
        """The engine is down: every connection ends, and new ones are refused."""
        listener, self._listener = self._listener, None
        if listener is not None:
            listener.shutdown(socket.SHUT_RDWR)  # or `accept` would go on in its thread
            listener.close()
        self.cut()

    def hang(self) -> None:
        """The engine is frozen: connections are taken, nothing is ever answered."""
        self._flows.clear()

    def hang_after(self, words: bytes) -> None:
        """Freeze once a request with these words is with the engine: it will be carried out."""
        self._last_words = words

    @property
    def hangs(self) -> bool:
        return not self._flows.is_set()

    def cut(self) -> None:
        """Every connection ends; new ones are as good as before."""
        with self._lock:
            ended, self._open = self._open, set()
        for end in ended:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self.refuse()
        self._flows.set()  # whoever waits for it finds its connection ended

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            engine = socket.socket(socket.AF_UNIX)
            engine.connect(str(self._engine))
            with self._lock:
                self._open |= {client, engine}
            self._start(self._join, client, engine)

    def _join(self, client: socket.socket, engine: socket.socket) -> None:
        answers = self._start(self._pump, engine, client)
        self._pump(client, engine)  # requests
        answers.join()
        with self._lock:
            self._open -= {client, engine}
        client.close()
        engine.close()

    def _pump(self, source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while piece := source.recv(1 << 16):
                self._flows.wait()
                if self._last_words and self._last_words in piece:
                    self._last_words = b""
                    self.hang()
                sink.sendall(piece)
        with contextlib.suppress(OSError):
            sink.shutdown(socket.SHUT_WR)

    def _start(self, call: Callable[..., None], *words: socket.socket) -> threading.Thread:
        thread = threading.Thread(target=call, args=words, daemon=True)
        thread.start()
        return thread
