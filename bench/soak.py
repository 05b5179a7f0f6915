"""A long run with random faults: is anything lost, does memory or the number of open files grow?

    bench/soak.py [--ranks 8] [--minutes 30] [--between 45] [--seed 1]

Ranks of `renkei train` are killed, stopped and told to save by signals at random moments, about every `--between`
seconds; the job starts again by itself. Then a run that nobody disturbs does as many steps, and both must have the same
parameters. Prints one JSON object.
"""

import argparse
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROGRAM = ROOT / "build/bin/renkei"
DEADLINE = 15  # seconds, for ranks that are stopped
TRAIN = ("train", "--model", "mlp", "--set", "model.hidden=256", "--set", "model.layers=6", "--data", "random", "--set",
         "data.samples=4096", "--batch", "256", "--set", "optim.name=adamw", "--set", "train.lr=0.001", "--threads", "1",
         "--quiet", "--json", "--set", f"comm.timeout={DEADLINE}s", "--set", "train.check_replicas=100")  # fmt: skip


def ranks_below(directory):
    """Processes of ranks that run in this directory."""
    found = {}
    for entry in os.listdir("/proc"):
        try:
            if not entry.isdigit() or os.readlink(f"/proc/{entry}/cwd") != str(directory):
                continue
            words = dict(w.split("=", 1) for w in Path(f"/proc/{entry}/environ").read_text().split("\0") if "=" in w)
            if "OMPI_COMM_WORLD_RANK" in words and os.readlink(f"/proc/{entry}/exe").endswith("renkei-torch"):
                found[int(words["OMPI_COMM_WORLD_RANK"])] = int(entry)
        except (OSError, ValueError):
            continue
    return found


def use_of(pid):
    """MiB in memory, open files."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
        return pages * 4096 / 2**20, len(os.listdir(f"/proc/{pid}/fd"))
    except (OSError, ValueError, IndexError):
        return None


def disturb(process, directory, given, chance):
    """Faults until the time is up; then the run is told to save and end."""
    end, faults, samples = time.monotonic() + given.minutes * 60, {"killed": 0, "stopped": 0}, []
    next_fault = time.monotonic() + chance.uniform(0.5, 1.5) * given.between
    while time.monotonic() < end and process.poll() is None:
        time.sleep(2)
        ranks = ranks_below(directory)
        uses = [use for use in map(use_of, ranks.values()) if use]
        own = use_of(process.pid)
        if len(uses) == given.ranks and own:
            samples.append((max(u[0] for u in uses), max(u[1] for u in uses), *own))
        if time.monotonic() < next_fault or len(ranks) < given.ranks:
            continue
        kind, sent = chance.choice((("killed", signal.SIGKILL), ("killed", signal.SIGKILL), ("stopped", signal.SIGSTOP)))
        os.kill(ranks[chance.randrange(given.ranks)], sent)
        faults[kind] += 1
        next_fault = time.monotonic() + chance.uniform(0.5, 1.5) * given.between
    return faults, samples


def trend(samples, column):
    """The median of the first and of the last quarter."""
    quarter = max(1, len(samples) // 4)
    return [round(statistics.median(s[column] for s in part), 1) for part in (samples[:quarter], samples[-quarter:])]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, default=8)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--between", type=float, default=45, help="seconds from one fault to the next")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    chance = random.Random(given.seed)
    with tempfile.TemporaryDirectory(prefix="renkei-soak-") as name:
        directory = Path(name).resolve()
        (directory / "tmp").mkdir()
        environment = {**os.environ, "TMPDIR": str(directory / "tmp")}
        shared = set(os.listdir("/dev/shm"))
        with open(directory / "words", "w") as words:
            process = subprocess.Popen(
                [PROGRAM, *TRAIN, "-n", str(given.ranks), "--steps", "100000000", "--restarts", "100000", "--run-dir",
                 "run", "--checkpoint-every", "20steps"], cwd=directory, env=environment, text=True,
                stdout=subprocess.PIPE, stderr=words)  # fmt: skip
            faults, samples = disturb(process, directory, given, chance)
            process.send_signal(signal.SIGTERM)
            stdout, _ = process.communicate(timeout=600)
        told = (directory / "words").read_text()
        if process.returncode != 0 or not samples:
            sys.exit(f"the run ended with {process.returncode}\n{told[-3000:]}")
        ended = json.loads(stdout)
        losses = [json.loads(line) for line in (directory / "run/metrics.jsonl").read_text().splitlines()]
        steps = [line["step"] for line in losses if "loss" in line]
        again = [PROGRAM, *TRAIN, "-n", str(given.ranks), "--steps", str(ended["steps"]), "--run-dir", "whole"]
        done = subprocess.run(again, cwd=directory, env=environment, capture_output=True, text=True)
        whole = json.loads(done.stdout)
        left = [n for n in set(os.listdir("/dev/shm")) - shared if "renkei" in n or f".{os.getuid()}." in n]
        result = {
            "ranks": given.ranks, "minutes": given.minutes, "faults": faults, "restarts": told.count("restart "),
            "steps": ended["steps"], "every_step_once": steps == list(range(ended["steps"])),
            "same_parameters": ended["parameters_checksum"] == whole["parameters_checksum"],
            "rank_mib": trend(samples, 0), "rank_files": trend(samples, 1), "supervisor_mib": trend(samples, 2),
            "supervisor_files": trend(samples, 3), "left_in_shared_memory": left,
            "left_in_tmp": [str(p) for p in (directory / "tmp").rglob("*") if p.is_file()],
        }  # fmt: skip
        print(json.dumps(result, indent=2))
        good = result["every_step_once"] and result["same_parameters"] and not left and not result["left_in_tmp"]
        sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
