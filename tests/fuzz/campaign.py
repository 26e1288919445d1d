"""Runs cases for a time, one after the other, and says how to see a finding again.

Case `n` of a fuzzer depends on the seed alone, never on the clock or on cases before it. The
cases run in a child, which leaves word of where it is: native code that ends the process, or
a case that never ends, is a finding like any other.
"""

import faulthandler
import mmap
import os
import random
import resource
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.fuzz import (
    answers,
    expositions,
    expressions,
    kills,
    logs,
    posts,
    routings,
    rulefiles,
    snapshots,
)

SLOW_S = 5.0  # of the thread's own time, for a case with all its checks
HUNG_S = 30
MEMORY = 3 << 30
FOUND = 3  # the exit status of a child that has said what it found; a hung one ends with 1


@dataclass(frozen=True, slots=True)
class Fuzzer:
    make: Callable[[random.Random], Any]
    check: Callable[[Any], None]
    every: int = 1  # of so many rounds it takes part in one


FUZZERS: dict[str, Fuzzer] = {
    "exposition": Fuzzer(expositions.make, expositions.check),
    "expression": Fuzzer(expressions.make, expressions.check),
    "post": Fuzzer(posts.make, posts.check),
    "routing": Fuzzer(routings.make, routings.check),
    "rulefile": Fuzzer(rulefiles.make, rulefiles.check),
    "snapshot": Fuzzer(snapshots.make, snapshots.check),
    "log": Fuzzer(logs.make, logs.check),
    "answer": Fuzzer(answers.make, answers.check),
    "kill": Fuzzer(kills.make, kills.check, every=500),
}


@dataclass(frozen=True, slots=True)
class Plan:
    seed: int
    names: Sequence[str]
    seconds: float
    case: int | None = None  # only this one
    findings: int = 1  # stop after so many


def dice_of(seed: int, name: str, case: int) -> random.Random:
    return random.Random(f"{seed} {name} {case}")


def run(plan: Plan) -> int:
    """Run the plan in a child; the number of findings."""
    with TemporaryDirectory(prefix="sentinel-fuzz-") as folder:
        place = Path(folder) / "place"
        place.write_bytes(bytes(64))
        with warnings.catch_warnings():  # later Pythons warn of forks beside threads: none is used
            warnings.simplefilter("ignore", DeprecationWarning)
            child = os.fork()
        if child == 0:
            _end(_campaign, plan, place)
        _, status = os.waitpid(child, 0)
        code = os.waitstatus_to_exitcode(status)
        if code not in (0, FOUND):
            name, _, case = place.read_bytes().rstrip(b"\0").decode().partition(" ")
            print(f"FOUND: the process ended with {code}", file=sys.stderr)
            _show(plan, name, int(case or 0))
    return 0 if code == 0 else 1


def _end(work: Callable[[Plan, Path], int], plan: Plan, place: Path) -> None:
    code = 70
    try:
        code = FOUND if work(plan, place) else 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        os._exit(code)


def _campaign(plan: Plan, place: Path) -> int:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    for warm in (0, 1, 2, 3, 4, 5):
        expressions.store_of(warm)
    found = 0
    done = dict.fromkeys(plan.names, 0)
    until = time.monotonic() + plan.seconds
    with place.open("r+b") as file, mmap.mmap(file.fileno(), 64) as said:
        for case in range(plan.case or 0, 1 << 60):
            for name in plan.names:
                if case % FUZZERS[name].every and plan.case is None:
                    continue
                said[:64] = f"{name} {case}".encode().ljust(64, b"\0")
                faulthandler.dump_traceback_later(HUNG_S, exit=True)
                found += not _passes(plan, name, case)
                faulthandler.cancel_dump_traceback_later()
                done[name] += 1
                if found >= plan.findings:
                    break
            if plan.case is not None or found >= plan.findings or time.monotonic() > until:
                break
    cases = ", ".join(f"{count} {name}" for name, count in done.items())
    print(f"seed {plan.seed}: {cases} cases, {found} findings")
    return found


def _passes(plan: Plan, name: str, case: int) -> bool:
    fuzzer = FUZZERS[name]
    subject = fuzzer.make(dice_of(plan.seed, name, case))
    began = time.thread_time()
    try:
        fuzzer.check(subject)
        took = time.thread_time() - began
        if took <= SLOW_S:
            return True
        print(f"FOUND: took {took:.2f} s", file=sys.stderr)
    except BaseException:
        print("FOUND:", file=sys.stderr)
        traceback.print_exc()
    _show(plan, name, case)
    return False


def _show(plan: Plan, name: str, case: int) -> None:
    subject = repr(FUZZERS[name].make(dice_of(plan.seed, name, case)))
    shown = subject if len(subject) <= 4000 else subject[:3900] + f"... ({len(subject)} characters)"
    print(f"input: {shown}", file=sys.stderr)
    print(f"again: python -m tests.fuzz 0 --seed {plan.seed} --only {name} --case {case}",
          file=sys.stderr, flush=True)  # fmt: skip
