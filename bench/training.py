#!/usr/bin/env python3
"""Training steps of renkei against PyTorch's, in rounds: each round trains each network with renkei
and then with each peer, with the same batch, threads and number of steps. Prints medians over the
rounds and PyTorch's time over ours.

usage: bench/training.py [--models resnet50,vgg16] [--batch 8] [--ranks 2] [--threads 1]
                         [--rounds 3] [--steps 5] [--peers eager,ddp] [--json FILE]
"""

import argparse
import json
import statistics
import subprocess
import tempfile
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RENKEI = ROOT / "build/bin/renkei"
PEER = ROOT / "bench/peers/torch_training.py"
MODELS = ["mlp", "alexnet", "resnet50", "inception_v3", "vgg16"]


def run_renkei(model, batch, options, settings=()):
    with tempfile.TemporaryDirectory() as directory:
        words = [RENKEI, "train", "--model", model, "--data", "random", "-n", options.ranks, "--threads",
                 options.threads, "--batch-per-device", batch, "--steps", steps_of(model, options),
                 "--json", "--quiet", "--run-dir", f"{directory}/run", "--set", "train.lr=1e-4",
                 "--set", "train.momentum=0.9",
                 # Few enough to be kept: the peer trains on one batch.
                 "--set", f"data.samples={batch * options.ranks}",
                 *(word for setting in settings for word in ("--set", setting))]
        done = subprocess.run(list(map(str, words)), capture_output=True, text=True)
        if done.returncode != 0:
            raise SystemExit(f"renkei failed: {done.stderr.strip()}")
        return json.loads(done.stdout)


def run_torch(mode, model, batch, options):
    words = [sys.executable, PEER, mode, model, batch, steps_of(model, options), options.threads]
    ranks = 1 if mode == "eager" else options.ranks
    with tempfile.TemporaryDirectory() as directory:
        processes = [subprocess.Popen([str(word) for word in [*words, rank, ranks, directory]],
                                      stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
                     for rank in range(ranks)]
        outputs = [process.communicate()[0] for process in processes]
    return json.loads(outputs[0])["median"]


def steps_of(model, options):
    return options.steps * 20 if model == "mlp" else options.steps


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--batch", type=int, default=8, help="per rank; the mlp always has 64 in all")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--peers", default="ddp")
    parser.add_argument("--json")
    options = parser.parse_args()
    peers = options.peers.split(",")
    if options.ranks == 1 and peers != ["eager"]:
        parser.error("with one rank there is nothing to distribute: use --peers eager")

    rows = []
    print(f"{options.ranks} ranks × {options.threads} threads; milliseconds a step")
    print(f"{'model':14}{'renkei':>10}" + "".join(f"{peer:>12}{'ratio':>8}" for peer in peers) +
          "   where renkei's step goes")
    for model in options.models.split(","):
        batch = 64 // options.ranks if model == "mlp" else options.batch
        seconds, ours = defaultdict(list), []
        for _ in range(options.rounds):
            ours.append(run_renkei(model, batch, options))
            seconds["renkei"].append(ours[-1]["step_seconds"]["median"])
            for peer in peers:
                seconds[peer].append(run_torch(peer, model, batch, options))
        medians = {name: statistics.median(values) for name, values in seconds.items()}
        time = ours[len(ours) // 2]["time"]
        step = sum(time.values())
        shares = {name: value / step for name, value in time.items() if value / step > 0.001}
        rows.append({"model": model, "batch": batch, "ranks": options.ranks,
                     "threads": options.threads, "step_seconds": medians["renkei"],
                     "peers": {peer: medians[peer] for peer in peers},
                     "ratio": min(medians[peer] for peer in peers) / medians["renkei"],
                     "time": time})
        print(f"{model:14}{medians['renkei'] * 1e3:10.1f}" +
              "".join(f"{medians[peer] * 1e3:12.1f}{medians[peer] / medians['renkei']:8.2f}"
                      for peer in peers) +
              "   " + ", ".join(f"{name} {share:.1%}" for name, share in shares.items()), flush=True)
    if options.json:
        Path(options.json).write_text(json.dumps({"rows": rows}, indent=2) + "\n")


if __name__ == "__main__":
    main()
