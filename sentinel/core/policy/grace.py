"""How long a container is given to stop.

vLLM drains for `--shutdown-timeout` seconds (0 by default) and needs about ten more to let go
of the GPU; Docker's own default of ten would cut requests off and look like a SIGKILL.
"""

from itertools import pairwise

from sentinel.core.model.container import Container

_DOCKERS = 10
_TEARDOWN = 15
_FLAGS = ("--shutdown-timeout", "--shutdown_timeout")


def stop_grace(container: Container) -> int:
    """Seconds: the container's own stop timeout, or longer where vLLM drains for longer."""
    own = container.stop_timeout if container.stop_timeout is not None else _DOCKERS
    drain = _drain_of(container.argv)
    return max(own, drain + _TEARDOWN) if drain else own


def _drain_of(argv: tuple[str, ...]) -> int:
    words = " ".join(argv).replace("=", " ").split()
    found = 0
    for flag, value in pairwise(words):
        if flag in _FLAGS and value.isdigit():
            found = int(value)
    return found
