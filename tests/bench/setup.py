"""What both sides of the comparison are told: how often, by which rules, and whom to tell."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

HOST = "bench"
REPOSITORY = Path(__file__).resolve().parents[2]
RULES = sorted((REPOSITORY / "rules").glob("*.yaml"))
DEATH, METRIC = "BenchTargetDown", "BenchKVCacheUsageHigh"

# Without `for`, so that the time measured is the way of the news and not a wish to wait.
FAULTS = {
    DEATH: 'max by (target, host) (1 - up{job="vllm"}) > 0',
    METRIC: "max by (target, host) (vllm:kv_cache_usage_perc) > 0.95",
}


@dataclass(frozen=True, slots=True)
class Setup:
    folder: Path
    interval: int  # seconds, of scrapes and of evaluation
    pace: dict[str, str] = field(
        default_factory=lambda: {
            "group_wait": "0s",
            "group_interval": "1s",
            "repeat_interval": "4h",
        }
    )

    @property
    def timeout(self) -> str:
        return "900ms" if self.interval == 1 else "3s"

    @property
    def rules(self) -> Path:
        file = self.folder / "bench.rules.yaml"
        rules = [
            {"alert": name, "expr": expression, "labels": {"severity": "warning"}}
            for name, expression in FAULTS.items()
        ]
        file.write_text(yaml.safe_dump({"groups": [{"name": "bench", "rules": rules}]}))
        return file

    def sentinel(self, prefix: str, hook: str) -> dict[str, Any]:
        """sentinel.yaml. It watches only: every death here is brought back by the bench."""
        interval = f"{self.interval}s"
        return {
            "mode": "watch",
            "targets": {"discover": [{"name": f"{prefix}*"}]},
            "global": {
                "scrape_interval": interval,
                "scrape_timeout": self.timeout,
                "external_labels": {"host": HOST},
            },
            "rules": {"files": [str(self.rules)]},
            "route": {"receiver": "hook", **self.pace},
            "receivers": [{"name": "hook", "webhook_configs": [{"url": hook}]}],
        }
