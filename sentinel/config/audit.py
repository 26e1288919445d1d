"""Where the audit goes, beside the log."""

from typing import ClassVar

from pydantic import Field

from sentinel.config.addresses import FilePath, SecretReceiverUrl
from sentinel.config.durations import Duration
from sentinel.config.section import Section


class Audit(Section):
    SECRETS: ClassVar = {"url": False}

    url: SecretReceiverUrl | None = None
    """Address to POST each line to: what was resolved, ordered and done, as one JSON object."""

    url_file: FilePath | None = Field(default=None, examples=["/etc/sentinel/audit"])
    """File with the address to POST each line to."""

    timeout: Duration | None = None
    """Longest time one request may take; 0 and the default are 10s."""
