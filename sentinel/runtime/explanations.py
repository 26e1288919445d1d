"""The explanations of one turn, by the name of the target: each made when somebody asks for it.

Any thread may ask. It is made on the loop's thread, since it reads what only that may touch.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from queue import Empty, SimpleQueue
from threading import get_ident
from typing import Any

from sentinel.core.model.errors import Transient

Json = dict[str, Any]
_ANSWERED_WITHIN = 5.0  # seconds


class Explanations(Mapping[str, Json]):
    def __init__(
        self,
        names: Collection[str],
        build: Callable[[str], Json],
        ask_loop: Callable[[Callable[[], None]], None],
    ) -> None:
        """To be made on the loop's thread; `ask_loop` has a call made there."""
        self._names, self._build, self._ask_loop = names, build, ask_loop
        self._home = get_ident()

    def __getitem__(self, name: str) -> Json:
        if name not in self._names:
            raise KeyError(name)
        return self._build(name) if get_ident() == self._home else self._from_afar(name)

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def _from_afar(self, name: str) -> Json:
        box: SimpleQueue[Json | BaseException] = SimpleQueue()

        def build() -> None:
            try:
                box.put(self._build(name))
            except BaseException as error:  # noqa: BLE001 - handed to who asked
                box.put(error)

        self._ask_loop(build)
        try:
            found = box.get(timeout=_ANSWERED_WITHIN)
        except Empty:
            raise Transient("the loop is busy and has not answered in time") from None
        if isinstance(found, BaseException):
            raise found
        return found
