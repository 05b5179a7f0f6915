#!/usr/bin/env python3
"""What each switch of the kernels gives: training steps with everything on, and with one switch off, in
rounds. Prints medians, and the time without over the time with.

usage: bench/switches.py [--models resnet50,vgg16] [--rounds 3] [--steps 3] [--ranks 2]
"""

import argparse
import statistics
from collections import defaultdict

from training import MODELS, run_renkei

SWITCHES = ["blocked_layout", "winograd", "dense", "direct_gradients"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    print("milliseconds a step, and how many times as long it takes without\n")
    print("| | all on | " + " | ".join(f"`{name}` off" for name in SWITCHES) + " |\n" +
          "|---" * (len(SWITCHES) + 2) + "|")
    for model in options.models.split(","):
        batch = 64 // options.ranks if model == "mlp" else 8
        seconds = defaultdict(list)
        for _ in range(options.rounds):
            for switch in [None, *SWITCHES]:
                settings = [f"compute.{switch}=false"] if switch else []
                result = run_renkei(model, batch, options, settings)
                seconds[switch].append(result["step_seconds"]["median"])
        medians = {switch: statistics.median(values) for switch, values in seconds.items()}
        print(f"| {model} | {medians[None] * 1e3:.1f} | " +
              " | ".join(f"{medians[switch] / medians[None]:.2f} ×" for switch in SWITCHES) + " |", flush=True)


if __name__ == "__main__":
    main()
