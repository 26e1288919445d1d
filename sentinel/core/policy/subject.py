"""Whom an alert is about: a target, else a GPU, else the host.

An alert belongs to a target if its `target`, `container` or `instance` label names it, by
container name or by `host:port` of its endpoint: so do those a real Prometheus sends.
"""

from collections.abc import Mapping

from sentinel.core.model.incident import Subject

SEVERITIES = ("info", "warning", "critical")


def subject_of(labels: Mapping[str, str], targets: Mapping[str, str | None], host: str) -> Subject:
    """`targets` maps each target's name to the `host:port` of its endpoint."""
    if labels.get("host", host) != host:  # what another host calls t1 is not our t1
        return Subject(kind="host", name=labels["host"])
    by_instance = {instance: name for name, instance in targets.items() if instance}
    for label in ("target", "container", "instance"):
        value = labels.get(label)
        if value in targets:
            return Subject(kind="target", name=str(value))
        if value in by_instance:
            return Subject(kind="target", name=by_instance[str(value)])
    if labels.get("target"):  # one that has just gone
        return Subject(kind="target", name=labels["target"])
    gpu = labels.get("uuid") or labels.get("gpu")
    if gpu:
        return Subject(kind="gpu", name=gpu)
    return Subject(kind="host", name=labels.get("host") or host)


def worst(*severities: str) -> str:
    """The most severe; a word we do not know counts as `warning`."""
    ranked = [s if s in SEVERITIES else "warning" for s in severities]
    return max(ranked, key=SEVERITIES.index, default="info")
