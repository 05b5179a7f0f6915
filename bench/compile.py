#!/usr/bin/env python3
"""torch.compile(backend="renkei") against eager and torch.compile's own backend: training steps of the same model in
one process, in rounds. Prints medians of the rounds' medians, and how many times as long the others take.

usage: bench/compile.py [--networks resnet50,gpt2] [--rounds 3] [--steps 3] [--modes eager,compile,renkei]
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
from collections import defaultdict

from networks import NETWORKS, ROOT

MODES = ["eager", "compile", "renkei"]
DEFAULT = "resnet50,vit_b_16,gpt2,bert"


def run(name, mode, options):
    """The median step of a process of its own, before whatever else the machine does where that is allowed."""
    first = ["chrt", "-f", "50"] if shutil.which("chrt") and os.geteuid() == 0 else []
    command = [*first, sys.executable, "-W", "ignore", str(ROOT / "bench/peers/torch_training.py"), name, "--mode", mode,
               "--steps", str(options.steps), "--threads", str(options.threads)]
    environment = {**os.environ, "OMP_NUM_THREADS": str(options.threads),
                   "TORCHINDUCTOR_CACHE_DIR": str(ROOT / "build/bench/inductor")}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    if done.returncode:
        sys.exit(f"{name}, {mode}: {done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])["median"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--networks", default=DEFAULT)
    parser.add_argument("--modes", default=",".join(MODES))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    modes = options.modes.split(",")
    unknown = [name for name in options.networks.split(",") if name not in NETWORKS]
    if unknown:
        sys.exit(f"there is no network {unknown[0]}: choose of {', '.join(NETWORKS)}")
    print("milliseconds a step, and how many times that of renkei\n")
    print("| | " + " | ".join(modes) + " |\n" + "|---" * (len(modes) + 1) + "|")
    for name in options.networks.split(","):
        seconds = defaultdict(list)
        for _ in range(options.rounds):
            for mode in modes:
                seconds[mode].append(run(name, mode, options))
        median = {mode: statistics.median(values) for mode, values in seconds.items()}
        ours = median.get("renkei", min(median.values()))
        cells = (f"{median[mode] * 1e3:.0f} ({median[mode] / ours:.2f} ×)" for mode in modes)
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
