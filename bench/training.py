#!/usr/bin/env python3
"""Training steps of renkei against PyTorch's DDP, both with the same wheel of torch.

A round trains each network once with each contestant: renkei's own network, the same one from a .pt2 file, and
DDP over Gloo (gradients as bucket views) in each of its modes. All have the same batch, optimizer, threads and
cores, and 2 steps to warm up (torch.compile: as many as it needs). What counts is the median over the rounds of
the median step; the peer is DDP's best mode, and the ratio its time over that of renkei's slower way.

usage: bench/training.py [--networks resnet50,gpt2] [--rounds 3] [--steps 5] [--ranks 2] [--threads 1]
                         [--precision fp32|bf16] [--modes eager,compile] [--json FILE]
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

from networks import NETWORKS, ROOT

PEER = ROOT / "bench/peers/torch_training.py"
CACHE = ROOT / "build/bench"  # exported networks, and what torch.compile has made
OURS = ["built in", ".pt2"]
MODES = ["eager", "channels_last", "compile", "compile+channels_last"]
WARM_UP = 2
# As renkei starts its own ranks, but for the cores.
MPIRUN = ["mpirun.openmpi", "--oversubscribe", "--bind-to", "none", "--mca", "plm", "isolated", "--mca", "ras",
          "^slurm", "--mca", "mpi_yield_when_idle", "1", *(["--allow-run-as-root"] if os.geteuid() == 0 else [])]


class Failed(Exception):
    """A contestant that did not train, with what it said."""


def cores_of(rank, options):
    """The cores of a rank for taskset, or none where there are too few."""
    mine = sorted(os.sched_getaffinity(0))
    if len(mine) < options.ranks * options.threads:
        return None
    return ",".join(map(str, mine[rank * options.threads:(rank + 1) * options.threads]))


def pinned(rank, options, words):
    cores = cores_of(rank, options)
    return [str(word) for word in (["taskset", "-c", cores] if cores else []) + list(words)]


def environment(options):
    return {**os.environ, "OMP_NUM_THREADS": str(options.threads), "MKL_NUM_THREADS": str(options.threads),
            "TORCHINDUCTOR_CACHE_DIR": str(CACHE / "inductor"), "GLOO_SOCKET_IFNAME": "lo"}


def last_lines(text):
    return "\n".join(text.strip().splitlines()[-6:])


def steps_of(name, options):
    return options.steps * 20 if name == "mlp" else options.steps


def exported(name):
    """The network as a .pt2 file; written again when what writes it has changed."""
    file = CACHE / f"{name}.pt2"
    sources = [ROOT / "bench/networks.py", ROOT / "src/capture/export_model.py"]
    if not file.exists() or file.stat().st_mtime < max(source.stat().st_mtime for source in sources):
        print(f"exporting {file}", file=sys.stderr)
        done = subprocess.run([sys.executable, ROOT / "bench/networks.py", name, file], capture_output=True, text=True,
                              check=False)
        if done.returncode != 0:
            raise Failed(f"the export of {name} failed: {last_lines(done.stderr)}")
    return file


def run_renkei(name, way, options, settings=()):
    """Trains with renkei; its summary, with the median of the steps after the warm-up as "median"."""
    network = NETWORKS[name]
    model = [name, []] if way == "built in" else [exported(name), network.file_settings]
    with tempfile.TemporaryDirectory() as directory:
        words = [options.renkei, "train", "--model", model[0], "--data", "random", "--threads", options.threads,
                 "--batch-per-device", network.batch, "--steps", WARM_UP + steps_of(name, options), "--json",
                 "--quiet", "--run-dir", f"{directory}/run"]
        # Few enough samples to be kept: the peer trains on one batch.
        for setting in [f"data.samples={network.batch * options.ranks}", *network.settings, *model[1], *settings]:
            words += ["--set", setting]
        if options.precision != "fp32":
            words += ["--precision", options.precision]
        command = [*MPIRUN, "--host", f"localhost:{options.ranks}"]
        for rank in range(options.ranks):
            command += [*([":"] if rank else []), "-n", "1", *pinned(rank, options, words)]
        done = subprocess.run(command, capture_output=True, text=True, env=environment(options), check=False)
        if done.returncode != 0:
            raise Failed(f"{' '.join(map(str, words))}\n{last_lines(done.stderr)}")
        lines = map(json.loads, Path(f"{directory}/run/metrics.jsonl").read_text().splitlines())
        seconds = [line["seconds"] for line in lines if "seconds" in line]
        return {**json.loads(done.stdout), "median": statistics.median(seconds[WARM_UP:])}


def run_torch(name, mode, options):
    """Trains with PyTorch, with DDP if there are several ranks; the median step in seconds."""
    with tempfile.TemporaryDirectory() as directory:
        processes = []
        for rank in range(options.ranks):
            words = [sys.executable, PEER, name, "--mode", mode, "--steps", steps_of(name, options), "--threads",
                     options.threads, "--precision", options.precision, "--rank", rank, "--ranks", options.ranks,
                     "--meeting", directory]
            with open(f"{directory}/{rank}", "w") as messages:
                processes.append(subprocess.Popen(pinned(rank, options, words), stdout=subprocess.PIPE, text=True,
                                                  stderr=messages, env=environment(options)))
        outputs = [process.communicate()[0] for process in processes]
        for rank, process in enumerate(processes):
            if process.returncode != 0:
                said = Path(f"{directory}/{rank}").read_text()
                raise Failed(f"PyTorch's {name}, {mode}, rank {rank}:\n{last_lines(said)}")
    return json.loads(outputs[0])["median"]


def contestants(name, options):
    network = NETWORKS[name]
    ours = [way for way in OURS if way in options.ours and (way == ".pt2" or network.built_in)]
    return ours, [mode for mode in options.modes if network.images or "channels_last" not in mode]


def run_round(name, options, seconds, failures, times):
    """Each contestant once; those that failed before are left out."""
    ours, modes = contestants(name, options)
    for way in [*ours, *modes]:
        if way in failures:
            continue
        try:
            if way in ours:
                result = run_renkei(name, way, options)
                times[way] = result["time"]
                seconds[way].append(result["median"])
            else:
                seconds[way].append(run_torch(name, way, options))
        except Failed as failure:
            failures[way] = str(failure)
            print(f"{name}, {way}: {failure}", file=sys.stderr)


def row_of(name, options, seconds, failures, times):
    ours, modes = contestants(name, options)
    medians = {way: statistics.median(values) for way, values in seconds.items() if way not in failures}
    peers = [mode for mode in modes if mode in medians]
    ways = [way for way in ours if way in medians]
    best = min(peers, key=medians.get) if peers else None
    complete = best and len(ways) == len(ours) > 0
    return {"network": name, "batch": NETWORKS[name].batch, "ranks": options.ranks, "threads": options.threads,
            "precision": options.precision, "step_seconds": medians, "rounds": dict(seconds), "best": best,
            "ratio": medians[best] / max(medians[way] for way in ways) if complete else None,
            "time": times, "failures": failures}


def print_row(row, columns, widths):
    cells = [f"{row['step_seconds'][way] * 1e3:.1f}" if way in row["step_seconds"]
             else "failed" if way in row["failures"] else "" for way in columns]
    ratio = f"{row['ratio']:.2f}" if row["ratio"] else ""
    print(f"{row['network']:17}" + "".join(f"{cell:>{width}}" for cell, width in zip(cells, widths, strict=True)) +
          f"  {row['best'] or '':22}{ratio:>6}", flush=True)


def parse(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--networks", type=lambda text: text.split(","), default=list(NETWORKS))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=5, help="that count; 20 times as many of the mlp")
    parser.add_argument("--ranks", type=int, default=2, help="1: PyTorch without DDP")
    parser.add_argument("--threads", type=int, default=1, help="of a rank")
    parser.add_argument("--precision", choices=["fp32", "bf16"], default="fp32")
    parser.add_argument("--modes", type=lambda text: text.split(",") if text else [], default=MODES)
    parser.add_argument("--ours", type=lambda text: text.split(","), default=OURS, help="built in, .pt2 or both")
    parser.add_argument("--renkei", type=Path, default=ROOT / "build/bin/renkei")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args(arguments)
    for given, known in ((options.networks, NETWORKS), (options.modes, MODES), (options.ours, OURS)):
        for name in given:
            if name not in known:
                parser.error(f"{name} is not one of {', '.join(known)}")
    if not options.renkei.exists():
        parser.error(f"{options.renkei} is missing: `make build` makes it, or name another with --renkei")
    if not shutil.which(MPIRUN[0]):
        parser.error(f"{MPIRUN[0]} is missing: `make setup` installs it")
    options.renkei = options.renkei.resolve()
    return options


def main():
    options = parse()
    columns = [*options.ours, *options.modes]
    widths = [max(10, len(column) + 2) for column in columns]
    print(f"{options.ranks} ranks × {options.threads} threads, {options.precision}; milliseconds a step, medians of "
          f"{options.rounds} rounds")
    print(f"{'network':17}" + "".join(f"{column:>{width}}" for column, width in zip(columns, widths, strict=True)) +
          f"  {'best mode':22}{'ratio':>6}", flush=True)
    rows = []
    for name in options.networks:
        seconds, failures, times = defaultdict(list), {}, {}
        for _ in range(options.rounds):
            run_round(name, options, seconds, failures, times)
        rows.append(row_of(name, options, seconds, failures, times))
        print_row(rows[-1], columns, widths)
        if options.json:  # after each network: the run is long
            options.json.write_text(json.dumps({"rows": rows}, indent=2) + "\n")
    if any(row["failures"] for row in rows):
        sys.exit(1)


if __name__ == "__main__":
    main()
