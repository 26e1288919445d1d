"""A driver to put in the place of NVIDIA's: it answers what a real one answered, or worse.

It is given to the adapter as its library. Its answers come from a recording of a real GPU;
`says` puts others in their place, for one GPU or for all. Errors and constants are the real
package's own, so that a handler of errors meets the real classes.
"""

import importlib
import json
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from sentinel.core.gpu.answer import FIELDS
from sentinel.core.gpu.owner import Owner

pynvml: Any = importlib.import_module("pynvml")  # it has no types

FIXTURES = Path(__file__).parents[1] / "fixtures"
H200 = FIXTURES / "nvidia-h200" / "idle.json"


def error(code: int) -> BaseException:
    """NVML's error of that number."""
    raised: BaseException = pynvml.NVMLError(code)
    return raised


NOT_SUPPORTED = 3
TIMEOUT = 10
FUNCTION_NOT_FOUND = 13
GPU_IS_LOST = 15
UNKNOWN = 999


def recorded(path: Path = H200) -> dict[str, Any]:
    """Answers by question, of one GPU."""
    loaded: dict[str, Any] = json.loads(path.read_text())
    return {key: entry["answer"] for key, entry in loaded["answers"].items()}


def question(name: str, *arguments: object) -> str:
    """How a question is written in a recording; the GPU is left out."""
    return " ".join([name, *(json.dumps(argument) for argument in arguments)])


def field_values(entries: Any) -> Any:
    """Field values as the library returns them: an array of C's, with a union in each place."""
    array = (pynvml.c_nvmlFieldValue_t * len(entries))()
    for place, entry in zip(array, entries, strict=True):
        for name in ("fieldId", "valueType", "nvmlReturn"):
            setattr(place, name, entry[name])
        place.value.ullVal = entry["value"]["ullVal"]
    return array


def revived(answer: Any) -> Any:
    """An answer as the library would return it."""
    if isinstance(answer, Mapping):
        if "error" in answer:
            raise error(answer["error"])
        return SimpleNamespace(**{key: revived(value) for key, value in answer.items()})
    return [revived(each) for each in answer] if isinstance(answer, list) else answer


@dataclass
class Driver:
    """Several GPUs that answer alike, but for what `says` says."""

    gpus: int = 1
    path: Path = H200
    says: dict[tuple[str, int | None], Any] = field(default_factory=dict)  # by name and GPU
    init: BaseException | None = None
    xids: list[tuple[int, int]] = field(default_factory=list)  # number and GPU, not yet told
    asked: list[str] = field(default_factory=list)
    asked_with: dict[str, tuple[Any, ...]] = field(default_factory=dict)
    sessions: int = 0
    hangs: threading.Event | None = None  # every call waits for it

    def __post_init__(self) -> None:
        self._answers = recorded(self.path)
        self.is_open = False

    def __call__(self) -> "Driver":
        return self

    def says_of(self, name: str, answer: Any, gpu: int | None = None) -> None:
        """`answer`: a value, an exception to raise, or a function of the arguments."""
        self.says[name, gpu] = answer

    def forget(self, name: str, gpu: int | None = None) -> None:
        del self.says[name, gpu]

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if not name.startswith("nvml"):
            raise AttributeError(name)
        if not hasattr(pynvml, name):
            raise AssertionError(f"the real package has no {name}")
        return lambda *arguments: self._call(name, arguments)

    def _call(self, name: str, arguments: tuple[Any, ...]) -> Any:
        self.asked.append(name)
        self.asked_with[name] = arguments
        if self.hangs is not None:
            self.hangs.wait()
        own: Callable[..., Any] | None = getattr(type(self), f"_{name}", None)
        if name != "nvmlInit" and not self.is_open:
            raise error(1)
        gpu = arguments[0][0] if arguments and isinstance(arguments[0], bytes) else None
        for which in (name, gpu), ("*", gpu), (name, None), ("*", None):
            if which in self.says and not (which == ("*", None) and own):
                return self._said(self.says[which], arguments)
        if own is not None:
            return own(self, *arguments)
        asked = arguments if gpu is None else arguments[1:]
        key = question(name, *(list(each) if isinstance(each, tuple) else each for each in asked))
        if key not in self._answers:
            raise error(NOT_SUPPORTED)
        said = self._answers[key]
        return field_values(said) if name == "nvmlDeviceGetFieldValues" else revived(said)

    @staticmethod
    def _said(answer: Any, arguments: tuple[Any, ...]) -> Any:
        if isinstance(answer, BaseException):
            raise answer
        return answer(*arguments) if callable(answer) else answer

    # what differs from one GPU to the next, or from one call to the next

    def _nvmlInit(self) -> None:  # noqa: N802 - NVML's own name
        if self.init is not None:
            raise self.init
        self.is_open = True
        self.sessions += 1

    def _nvmlShutdown(self) -> None:  # noqa: N802
        self.is_open = False

    def _nvmlDeviceGetCount(self) -> int:  # noqa: N802
        return self.gpus

    def _nvmlDeviceGetHandleByIndex(self, index: int) -> bytes:  # noqa: N802
        return bytes([index])

    def _nvmlDeviceGetUUID(self, handle: bytes) -> str:  # noqa: N802
        return uuid(handle[0])

    def _nvmlDeviceGetMinorNumber(self, handle: bytes) -> int:  # noqa: N802
        return handle[0]

    def _nvmlEventSetCreate(self) -> str:  # noqa: N802
        return "events"

    def _nvmlDeviceRegisterEvents(self, *arguments: object) -> None:  # noqa: N802
        pass

    def _nvmlEventSetFree(self, events: object) -> None:  # noqa: N802
        pass

    def _nvmlEventSetWait_v2(self, events: object, timeout: int) -> Any:  # noqa: N802
        if not self.xids:
            raise error(TIMEOUT)
        number, gpu = self.xids.pop(0)
        return SimpleNamespace(device=bytes([gpu]), eventData=number)


def counters(**nanoseconds: int) -> Any:
    """Field values in which the driver tells these counters, `f269=…`, and no other."""
    return field_values(
        [
            {
                "fieldId": each,
                "valueType": 3,
                "nvmlReturn": 0 if f"f{each}" in nanoseconds else NOT_SUPPORTED,
                "value": {"ullVal": nanoseconds.get(f"f{each}", 0)},
            }
            for each in FIELDS
        ]
    )


def uuid(gpu: int) -> str:
    return f"GPU-{gpu}0000000-1111-2222-3333-444444444444"


class FakeProcesses:
    """A host on which every process is its own."""

    sees_host = True

    def owner(self, pid: int) -> Owner:
        return Owner(state="S")

    def device_rules(self, pid: int) -> str | None:
        return None
