"""A target as Prometheus's API tells of it: its labels, where it is asked, what came of it."""

from collections.abc import Mapping
from typing import Literal

from sentinel.api.prometheus.copies import About, Description, Scraped
from sentinel.core.alerting.duration import show_duration
from sentinel.core.model.container import Status
from sentinel.runtime.target import Target

Health = Literal["up", "down", "unknown"]


def told(target: Target, about: About, descriptions: Mapping[str, Description]) -> Scraped:
    assert target.endpoint is not None
    url, address = f"{target.endpoint.url}/metrics", target.endpoint.instance
    scheme = target.endpoint.url.partition("://")[0]
    labels = {
        "instance": address,
        "job": "vllm",
        "target": target.name,
        "host": about.host,
    }
    discovered = {
        "__address__": address,
        "__scheme__": scheme,
        "__metrics_path__": "/metrics",
        "__scrape_interval__": show_duration(about.scrape_interval),
        "__scrape_timeout__": show_duration(about.scrape_timeout),
        "__meta_docker_container_id": target.container.id,
        "__meta_docker_container_name": f"/{target.name}",
        "job": "vllm",
    }
    last = target.scrape
    health, because = _health(target)
    return Scraped(
        labels=labels,
        discovered=discovered,
        url=url,
        health=health,
        last_error=because,
        at=last.at if last else None,
        took=last.took if last else 0.0,
        descriptions=descriptions,
    )


def _health(target: Target) -> tuple[Health, str]:
    """As Prometheus says it, and why if it is down."""
    if target.container.status is not Status.RUNNING:
        return "down", f"the container is {target.container.status}"
    if target.scrape is None:
        return "unknown", ""
    if target.scrape.ok:
        return "up", ""
    return "down", target.scrape.says or target.scrape.failure or f"HTTP {target.scrape.status}"
