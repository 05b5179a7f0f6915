"""Prediction against reality: renkei simulate --measure beside renkei train on this machine.

Each configuration is simulated from measured ops, then trained; rounds are interleaved and the median step of
all rounds counts. What a sample costs the loader is taken from a run on one rank. Prints the table of
docs/simulate.md.

    bench/simulate.py [--rounds 3] [--only mlp]
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

RENKEI = Path(__file__).parent.parent / "build" / "bin" / "renkei"

NETWORKS = {
    "mlp": (["--set", "model.hidden=512", "--set", "model.layers=10"], 64, 60),
    "lenet": ([], 64, 40),
    "resnet18": (["--set", "model.image_size=64"], 16, 12),
}
PLANS = [("data", 1, 1), ("data", 2, 1), ("data", 4, 1), ("pipeline", 2, 2)]


def renkei(*arguments):
    done = subprocess.run([RENKEI, *map(str, arguments), "--json", "--quiet"], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"renkei {' '.join(map(str, arguments))}\n{done.stderr}")
    return json.loads(done.stdout)


def simulated(model, settings, batch, ranks, stages, load_rate):
    plan = ["--plan", "auto", "--stages", stages] if stages > 1 else []
    result = renkei("simulate", "--model", model, *settings, "--measure", "--batch", batch, "--devices", ranks,
                    "--load-rate", load_rate, *plan)
    return result["rows"][0]["step_seconds"]


def trained(model, settings, batch, ranks, stages, steps):
    plan = ["--plan", "auto", "--set", f"plan.stages={stages}"] if stages > 1 else []
    with tempfile.TemporaryDirectory() as directory:
        result = renkei("train", "--model", model, *settings, "--data", "random", "--batch", batch, "--steps", steps,
                        "-n", ranks, "--threads", 1, "--run-dir", f"{directory}/run", *plan)
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    errors = []
    print("| network | plan | ranks | simulated | measured | error |\n|---|---|---|---|---|---|")
    for model, (settings, batch, steps) in NETWORKS.items():
        if options.only and model != options.only:
            continue
        load_rate = batch / trained(model, settings, batch, 1, 1, steps)["time"]["data"]
        for kind, ranks, stages in PLANS:
            predictions, measurements = [], []
            for _ in range(options.rounds):
                predictions.append(simulated(model, settings, batch, ranks, stages, load_rate))
                measurements.append(trained(model, settings, batch, ranks, stages, steps)["step_seconds"]["median"])
            ours, real = statistics.median(predictions), statistics.median(measurements)
            errors.append(ours / real - 1)
            print(f"| {model} | {kind} | {ranks} | {1e3 * ours:.1f} ms | {1e3 * real:.1f} ms | "
                  f"{100 * errors[-1]:+.0f} % |", flush=True)
    within = [sum(abs(error) <= limit for error in errors) for limit in (0.1, 0.2)]
    print(f"\nwithin 10 %: {within[0]} of {len(errors)}; within 20 %: {within[1]} of {len(errors)}")


if __name__ == "__main__":
    main()
