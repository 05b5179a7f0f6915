#!/usr/bin/env python3
"""A pipeline of two stages on two cores against one core and against data parallel training, and what
--plan auto chooses: interleaved rounds, medians. With --schedules: each schedule with two replicas of each stage, on
four ranks, as predicted and as measured.

    bench/pipeline.py [--rounds N] [--steps N] [--models resnet50 gpt] [--schedules]
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
    "resnet18": ["--model", "resnet18", "--set", "model.image_size=96", "--batch", "32"],
    "gpt": ["--model", "gpt", "--batch", "16", "--set", "model.hidden=256", "--set", "model.layers=8",
            "--set", "model.sequence=128", "--set", "model.vocabulary=8192"],
}
WAYS = {
    "one core": ["-n", "1", "--micro-batches", "8"],
    "pipeline": ["-n", "2", "--plan", "auto", "--stages", "2", "--micro-batches", "8"],
    "data parallel": ["-n", "2", "--plan", "data", "--micro-batches", "4"],
    "auto": ["-n", "2", "--plan", "auto"],
}
SCHEDULES = {
    "1f1b": ["--stages", "2", "--schedule", "1f1b"],
    "interleaved": ["--stages", "4", "--schedule", "interleaved"],
    "zero_bubble": ["--stages", "2", "--schedule", "zero_bubble"],
}
for _name, _words in SCHEDULES.items():
    WAYS[_name] = ["-n", "4", "--plan", "auto", "--micro-batches", "4", *_words]


def train(model, way, steps, directory):
    done = subprocess.run([RENKEI, "train", *MODELS[model], *WAYS[way], "--data", "random", "--steps",
                           str(steps), "--set", "run.threads=1", "--json", "--quiet"],
                          cwd=directory, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--models", nargs="+", choices=list(MODELS))
    parser.add_argument("--schedules", action="store_true")
    options = parser.parse_args()
    models = options.models or (["resnet18", "gpt"] if options.schedules else ["resnet50", "gpt"])
    ways = [way for way in WAYS if (way in SCHEDULES) == options.schedules]
    print(f"{'model':10} {'way':14} {'samples/s':>9} {f'× {ways[0]}':>10}  plan; predicted step, memory")
    with tempfile.TemporaryDirectory() as directory:
        for model in models:
            results = {way: [] for way in ways}
            for _ in range(options.rounds):
                for way in ways:
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
                print(f"{model:10} {way:14} {rates[way]:9.2f} {rates[way] / rates[ways[0]]:10.2f}  {note}",
                      flush=True)


if __name__ == "__main__":
    main()
