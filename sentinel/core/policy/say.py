"""Moments and spans as they stand in a sentence."""

from datetime import datetime, timedelta


def clock(at: datetime) -> str:
    return f"{at:%H:%M:%S} UTC"


def span(took: timedelta) -> str:
    seconds = max(int(took.total_seconds()), 0)
    if seconds < 120:
        return f"{seconds} s"
    return f"{seconds // 60} min" if seconds < 7200 else f"{seconds // 3600} h"
