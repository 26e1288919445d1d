"""What every way of sending has in common."""

from sentinel.config.http_client import HttpConfig
from sentinel.config.quantities import Flag
from sentinel.config.section import Section


class Channel(Section):
    """One entry of a receiver's list is one channel: order and rate are kept for each."""

    send_resolved: Flag = True
    """Tell also when alerts are resolved."""


class HttpChannel(Channel):
    http_config: HttpConfig | None = None
    """How to speak HTTP there. Default: `global.http_config`."""
