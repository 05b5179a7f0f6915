#!/usr/bin/env python3
"""A pipeline of two stages on two cores against one core and against data parallel training, and what
--plan auto chooses: interleaved rounds, medians.

    bench/pipeline.py [--rounds N] [--steps N] [--models resnet50 gpt]
"""

import argparse
import json
import statistics
import subprocess
import tempfile
from pathlib import Path

RENKEI = Path(__file__).parent.parent / "build/bin/renkei"
MODELS = {
    "resnet50": ["--model", "resnet50", "--batch", "16"],
    "gpt": ["--model", "gpt", "--batch", "16", "--set", "model.hidden=256", "--set", "model.layers=8",
            "--set", "model.sequence=128", "--set", "model.vocabulary=8192"],
}
WAYS = {
    "one core": ["-n", "1", "--micro-batches", "8"],
    "pipeline": ["-n", "2", "--plan", "auto", "--stages", "2", "--micro-batches", "8"],
    "data parallel": ["-n", "2", "--plan", "data", "--micro-batches", "4"],
    "auto": ["-n", "2", "--plan", "auto"],
}


def train(model, way, steps, directory):
    done = subprocess.run([RENKEI, "train", *MODELS[model], *WAYS[way], "--data", "random", "--steps",
                           str(steps), "--set", "run.threads=1", "--json", "--quiet"],
                          cwd=directory, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--models", nargs="+", default=list(MODELS), choices=list(MODELS))
    options = parser.parse_args()
    print(f"{'model':10} {'way':14} {'samples/s':>9} {'× one core':>10}  plan; predicted step, memory")
    with tempfile.TemporaryDirectory() as directory:
        for model in options.models:
            results = {way: [] for way in WAYS}
            for _ in range(options.rounds):
                for way in WAYS:
                    results[way].append(train(model, way, options.steps, directory))
            rates = {way: statistics.median(r["samples_per_second"] for r in runs)
                     for way, runs in results.items()}
            for way, runs in results.items():
                plan = runs[-1]["plan"]
                note = f"{plan['stages']} stages × {plan['replicas']}, {plan['schedule']}"
                if runs[-1]["predicted"]:
                    step = statistics.median(r["predicted"]["step_seconds"] / r["step_seconds"]["median"]
                                             for r in runs)
                    memory = max(p / m["device"] for p, m in zip(runs[-1]["predicted"]["memory_bytes"],
                                                                 runs[-1]["memory_bytes"]))
                    note += f"; {100 * step - 100:+.0f} %, {100 * memory - 100:+.0f} %"
                print(f"{model:10} {way:14} {rates[way]:9.2f} {rates[way] / rates['one core']:10.2f}  {note}",
                      flush=True)


if __name__ == "__main__":
    main()
