"""`python -m tests.fuzz SECONDS [--seed N]`: exit status 1 if something was found."""

import argparse
import random
import sys

from tests.fuzz.campaign import FUZZERS, Plan, run


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("seconds", type=float)
    parser.add_argument("--seed", type=int, help="the same cases again; random by default")
    parser.add_argument("--only", choices=list(FUZZERS), help="one fuzzer")
    parser.add_argument("--case", type=int, help="one case of that fuzzer")
    parser.add_argument("--findings", type=int, default=1, help="go on until so many")
    asked = parser.parse_args()
    seed = random.SystemRandom().randrange(1 << 32) if asked.seed is None else asked.seed
    print(f"seed {seed}", flush=True)
    names = [asked.only] if asked.only else list(FUZZERS)
    return run(Plan(seed, names, asked.seconds, asked.case, asked.findings))


if __name__ == "__main__":
    sys.exit(main())
