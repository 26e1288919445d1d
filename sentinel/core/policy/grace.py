"""How long a container is given to stop.

vLLM drains for `--shutdown-timeout` seconds (0 by default) and needs about ten more to let go
of the GPU; Docker's own default of ten would cut requests off and look like a SIGKILL.
"""

import re

from sentinel.core.model.container import Container
from sentinel.core.model.launch import Launch

_DOCKERS = 10
_TEARDOWN = 15
_NO_END = 300  # where the container asks for as long as it takes: a hung engine takes for ever
_DRAIN = re.compile(r"--shutdown(?:[-_]\w*)?[=\s]+['\"]?(\d+)")


def stop_grace(container: Container, launch: Launch | None = None) -> int:
    """Seconds: the container's own stop timeout, or longer where vLLM drains for longer."""
    own = container.stop_timeout if container.stop_timeout is not None else _DOCKERS
    own = own if own >= 0 else _NO_END
    drain = _drain_of(container, launch)
    return max(own, drain + _TEARDOWN) if drain else own


def _drain_of(container: Container, launch: Launch | None) -> int:
    """As its log says, wherever it has that from; else as its command line does."""
    said = launch.facts.get("shutdown_timeout") if launch is not None else None
    if said is not None:
        return int(float(said))
    found = _DRAIN.findall(" ".join(container.argv))
    return int(found[-1]) if found else 0
