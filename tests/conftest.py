"""What is logged in a test is plain text: to draw a traceback with all its values takes seconds."""

import pytest
import structlog

_PLAIN = structlog.dev.ConsoleRenderer(
    colors=False, exception_formatter=structlog.dev.plain_traceback
)
_PROCESSORS = [*structlog.get_config()["processors"][:-1], _PLAIN]


def pytest_runtest_setup(item: pytest.Item) -> None:
    structlog.configure(processors=_PROCESSORS)
