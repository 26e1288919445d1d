"""What holds for every test.

What is logged is plain text: to draw a traceback with all its values takes seconds. How long an
example of hypothesis takes says more of the machine than of the code.
"""

import pytest
import structlog
from hypothesis import settings

settings.register_profile("sentinel", deadline=None)
settings.load_profile("sentinel")

_PLAIN = structlog.dev.ConsoleRenderer(
    colors=False, exception_formatter=structlog.dev.plain_traceback
)
_PROCESSORS = [*structlog.get_config()["processors"][:-1], _PLAIN]


def pytest_runtest_setup(item: pytest.Item) -> None:
    structlog.configure(processors=_PROCESSORS)
