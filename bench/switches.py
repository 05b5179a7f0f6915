#!/usr/bin/env python3
"""What each switch of the kernels gives: training steps with everything on, and with one switch off, in
rounds. Prints medians, and the time without over the time with.

usage: bench/switches.py [--networks resnet50,vgg16] [--rounds 3] [--steps 3] [--ranks 2]
"""

import argparse
import statistics
import sys
from collections import defaultdict
from pathlib import Path

from training import Failed, run_renkei

from networks import NETWORKS, ROOT

SWITCHES = ["blocked_layout", "winograd", "dense", "direct_gradients"]
BUILT_IN = [name for name, network in NETWORKS.items() if network.built_in]


def measure(name, options):
    """The median step for each switch that is off, and for None: all on."""
    way = "built in" if NETWORKS[name].built_in else ".pt2"
    seconds = defaultdict(list)
    for _ in range(options.rounds):
        for switch in [None, *SWITCHES]:
            settings = [f"compute.{switch}=false"] if switch else []
            seconds[switch].append(run_renkei(name, way, options, settings)["median"])
    return {switch: statistics.median(values) for switch, values in seconds.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--networks", default=",".join(BUILT_IN))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--precision", choices=["fp32", "bf16"], default="fp32")
    parser.add_argument("--renkei", type=Path, default=ROOT / "build/bin/renkei")
    options = parser.parse_args()
    print("milliseconds a step, and how many times as long it takes without\n")
    print("| | all on | " + " | ".join(f"`{name}` off" for name in SWITCHES) + " |\n" +
          "|---" * (len(SWITCHES) + 2) + "|")
    for name in options.networks.split(","):
        try:
            medians = measure(name, options)
        except Failed as failure:
            sys.exit(f"{name}: {failure}")
        print(f"| {name} | {medians[None] * 1e3:.1f} | " +
              " | ".join(f"{medians[switch] / medians[None]:.2f} ×" for switch in SWITCHES) + " |", flush=True)


if __name__ == "__main__":
    main()
