#!/usr/bin/env python3
"""`vllm serve` without a GPU, a model or vLLM: `simulated_vllm.py serve MODEL [options]`.

The options are vLLM's; what goes wrong is chosen by SIM_* in the environment or, while it runs,
by `POST /sim/<fault>`: see `simulation/settings.py` and `simulation/faults.py`.
"""

import sys

from simulation.main import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
