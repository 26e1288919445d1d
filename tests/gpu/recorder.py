"""Writes down every question to the real library, its answer, and how long it took."""

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.gpu.driver import pynvml, question

_SECRET = ("nvmlDeviceGetUUID", "nvmlDeviceGetSerial")


class Recorder:
    """In the place of the package; asks it."""

    def __init__(self) -> None:
        self.answers: dict[str, dict[str, Any]] = {}
        self.took: dict[str, list[float]] = {}

    def __call__(self) -> "Recorder":
        return self

    def __getattr__(self, name: str) -> Callable[..., Any]:
        real = getattr(pynvml, name)
        return lambda *arguments: self._ask(name, real, arguments)

    def _ask(self, name: str, real: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
        began = time.perf_counter()
        try:
            answer = real(*arguments)
        except pynvml.NVMLError as raised:
            self._note(name, arguments, {"error": raised.value}, began)
            raise
        self._note(name, arguments, plain(answer), began)
        return answer

    def _note(self, name: str, arguments: tuple[Any, ...], answer: Any, began: float) -> None:
        took = time.perf_counter() - began
        said = [list(one) if isinstance(one, tuple) else one for one in arguments]
        key = question(name, *(one for one in said if isinstance(one, int | str | list)))
        self.took.setdefault(key, []).append(took)
        if isinstance(answer, str) and name in _SECRET:
            answer = "GPU-00000000-1111-2222-3333-444444444444"
        self.answers[key] = {"answer": answer, "microseconds": round(took * 1e6, 1)}

    def save(self, path: Path, about: str) -> None:
        whole = {"about": about, "answers": dict(sorted(self.answers.items()))}
        path.write_text(json.dumps(whole, indent=1) + "\n")


def plain(answer: Any) -> Any:
    """An answer as JSON has it. What is a pointer is left out."""
    if answer is None or isinstance(answer, bool | int | float | str):
        return answer
    if isinstance(answer, bytes):
        return answer.decode(errors="replace")
    if isinstance(answer, list | tuple):
        return [plain(each) for each in answer]
    if hasattr(answer, "_fields_"):
        return {name: plain(getattr(answer, name)) for name, *_ in answer._fields_}
    if hasattr(answer, "_length_"):
        return [plain(each) for each in answer]
    if hasattr(answer, "__dict__"):
        return {key: plain(value) for key, value in vars(answer).items()}
    return None
