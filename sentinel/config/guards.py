"""What holds Sentinel back, so that a remedy is never worse than the fault."""

from datetime import timedelta

from sentinel.config.durations import Interval
from sentinel.config.quantities import Count, Positive
from sentinel.config.section import Section


class TargetBudget(Section):
    per_hour: Count = 2
    """Restarts of one target in an hour; Docker's own count."""

    per_day: Count = 4
    """Restarts of one target in a day; Docker's own count."""


class HostBudget(Section):
    at_once: Positive = 1
    """Actions under way at the same time."""

    per_hour: Count = 6
    """Actions on this host in an hour."""


class Budget(Section):
    per_target: TargetBudget = TargetBudget()
    """For each target."""

    per_host: HostBudget = HostBudget()
    """For all targets together."""


class ManyFailing(Section):
    at_least: Positive = 3
    """This many targets failing together are not the targets' fault: nothing is restarted."""

    within: Interval = timedelta(minutes=2)
    """How close together that is."""


class Guards(Section):
    cooldown: Interval = timedelta(minutes=15)
    """Least time between two actions on one target."""

    budget: Budget = Budget()
    """How many actions there may be."""

    verify_within: Interval = timedelta(minutes=15)
    """How soon an action's effect must be seen; else it is taken back or a person is called."""

    many_failing: ManyFailing = ManyFailing()
    """When it is the host and not the targets."""

    approval_expires: Interval = timedelta(minutes=30)
    """How long a question waits for an answer."""
