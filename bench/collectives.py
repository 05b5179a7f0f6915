#!/usr/bin/env python3
"""Our allreduce against every peer on this machine, in rounds: each round runs renkei with the
linked MPI library's algorithms in the same processes, over ob1 and over UCX, then MPICH's
and torch.distributed's programs. Prints medians over the rounds, best peer / ours; for private buffers,
the best of what the peers choose by themselves / ours.

usage: bench/collectives.py [--ranks 2] [--rounds 3] [--sizes 4KiB:256MiB:*4]
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RENKEI = ROOT / "build/bin/renkei"


def run_renkei(ranks, sizes, pml):
    environment = {**os.environ, "OMPI_MCA_pml": pml,
                   # Without these, UCX refuses a machine that has no fast network.
                   "OMPI_MCA_pml_ucx_tls": "any", "OMPI_MCA_pml_ucx_devices": "any"}
    words = [RENKEI, "bench", "collectives", "-n", ranks, "--sizes", sizes, "--repeat", 5, "--peers",
             "--json", "--quiet", "--threads", 1]
    done = subprocess.run(list(map(str, words)), capture_output=True, text=True, env=environment,
                          check=True)
    return json.loads(done.stdout)["rows"]


def run_mpich(program, ranks, sizes):
    words = ["mpiexec.hydra", "-n", ranks, program, 5, *sizes]
    done = subprocess.run(list(map(str, words)), capture_output=True, text=True, check=True)
    return {int(size): us for size, us in json.loads(done.stdout).items()}


def run_torch(ranks, sizes):
    with tempfile.TemporaryDirectory() as directory:
        processes = [subprocess.Popen(
            [sys.executable, str(ROOT / "bench/peers/torch_allreduce.py"), str(rank), str(ranks),
             directory, "5", *map(str, sizes)], stdout=subprocess.PIPE, text=True,
            stderr=subprocess.DEVNULL) for rank in range(ranks)]
        outputs = [process.communicate()[0] for process in processes]
    return {int(size): us for size, us in json.loads(outputs[0]).items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--sizes", default="4KiB:256MiB:*4")
    options = parser.parse_args()

    with tempfile.TemporaryDirectory() as directory:
        program = Path(directory) / "mpich_allreduce"
        subprocess.run(["mpicxx.mpich", "-O2", "-std=c++17", str(ROOT / "bench/peers/mpi_allreduce.cpp"),
                        "-o", str(program)], check=True)
        times = defaultdict(lambda: defaultdict(list))  # size → contestant → microseconds
        for _ in range(options.rounds):
            for pml in ("ob1", "ucx"):
                for row in run_renkei(options.ranks, options.sizes, pml):
                    column = times[row["size_bytes"]]
                    column[f"ours {row['buffers']}"].append(row["time_us"])
                    column[f"bound {row['buffers']}"].append(row["bound_us"])
                    for peer, us in row["peers"].items():
                        column[f"openmpi-{pml} {peer}"].append(us)
            sizes = sorted(times)
            for peer, result in (("mpich", run_mpich(program, options.ranks, sizes)),
                                 ("torch gloo", run_torch(options.ranks, sizes))):
                for size, us in result.items():
                    times[size][peer].append(us)

    print(f"{options.ranks} ranks, microseconds, medians of {options.rounds} rounds; bound: of once; default: of "
          "what the peers choose by themselves")
    print(f"{'size':>10} {'once':>9} {'shared':>9} {'private':>9} {'bound':>9}  {'best peer':<30} {'us':>9} "
          f"{'default':>9} {'once ×':>7} {'shared ×':>8} {'private ×':>9} {'of bound':>8} {'torch ×':>8}")
    for size in sorted(times):
        median = {name: statistics.median(values) for name, values in times[size].items()}
        peers = {name: us for name, us in median.items() if not name.startswith(("ours", "bound"))}
        best = min(peers, key=peers.get)
        default = min(us for name, us in peers.items() if not name.startswith("openmpi") or name.endswith(" mpi"))
        once, shared, private = (median[f"ours {kind}"] for kind in ("once", "shared", "private"))
        print(f"{size:>10} {once:>9.1f} {shared:>9.1f} {private:>9.1f} {median['bound once']:>9.1f}  "
              f"{best:<30} {peers[best]:>9.1f} {default:>9.1f} {peers[best] / once:>7.2f} "
              f"{peers[best] / shared:>8.2f} {default / private:>9.2f} {median['bound once'] / once:>8.2f} "
              f"{median['torch gloo'] / once:>8.1f}")
    print(json.dumps({str(size): {name: statistics.median(v) for name, v in column.items()}
                      for size, column in times.items()}))


if __name__ == "__main__":
    main()
