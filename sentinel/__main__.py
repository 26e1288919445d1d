"""`python -m sentinel` is `sentinel`."""

from sentinel.cli.main import run

run()
