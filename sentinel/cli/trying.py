"""What `rules test` needs of the rule engine; heavy, so imported when it runs.

A file that cannot be read or understood is refused before any test runs: a test that was
never run must not look like one that failed, and less like one that passed.
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from sentinel.cli.text import clean
from sentinel.config.fault import ConfigRefused, Fault
from sentinel.config.rulefile import load_rule_files
from sentinel.config.ruletest import TestOutcome, run_rule_tests
from sentinel.config.ruletestfile import read_rule_tests
from sentinel.core.alerting.rule import Compat
from sentinel.core.model.errors import Permanent


def run_tests(
    files: Sequence[Path], *, compat: Compat, exact: bool, run: str | None
) -> list[TestOutcome]:
    """Raises `ConfigRefused` if a file is, `Permanent` if `run` finds nothing."""
    try:
        re.compile(run or "")
    except re.error as error:
        hint = "Give a regular expression, such as KVCache."
        raise Permanent(f"--run: {error}", hint=hint) from None
    if faults := [fault for file in files for fault in _faults(file, compat)]:
        raise ConfigRefused(tuple(faults))
    outcomes = run_rule_tests(files, compat=compat, exact=exact, run=run)
    if run and not outcomes:
        raise Permanent(f"--run: no test's name matches {run}", hint="Leave --run out to see all.")
    return outcomes


def report(outcomes: Sequence[TestOutcome]) -> Iterator[str]:
    for outcome in outcomes:
        verdict = "passed" if outcome.passed else "FAILED"
        yield f"{verdict}  {outcome.file}: {clean(outcome.name)}"
        for failure in outcome.failures:
            yield from (f"        {line}" for line in failure.splitlines())
    for warning in dict.fromkeys(text for outcome in outcomes for text in outcome.warnings):
        yield f"warning: {warning}"


def as_json(outcome: TestOutcome) -> dict[str, Any]:
    return {
        "file": str(outcome.file),
        "name": outcome.name,
        "passed": outcome.passed,
        "failures": list(outcome.failures),
        "warnings": list(outcome.warnings),
    }


def _faults(file: Path, compat: Compat) -> Sequence[Fault]:
    read, faults = read_rule_tests(file, compat=compat)
    if read is None:
        return faults
    try:
        load_rule_files(read.rule_files, compat=compat)
    except ConfigRefused as refusal:
        return refusal.faults
    return ()
