"""Saving and loading a state of 500 MB: Renkei's files, the disk itself, and the peers.

    bench/checkpoints.py [--directory DIR] [--mib 500] [--ranks 2] [--repeat 3]

Every save ends with a sync, every load begins with the pages dropped, so that the disk counts.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import time
from pathlib import Path

import torch
import torch.distributed.checkpoint as dcp
from safetensors.torch import load_file, save_file

ROOT = Path(__file__).resolve().parent.parent
DRIVER = ROOT / "build/bin/checkpoint_driver"
TENSORS = 40


def sync(path):
    for file in [path] if path.is_file() else path.rglob("*"):
        descriptor = os.open(file, os.O_RDONLY)
        os.fsync(descriptor)
        os.close(descriptor)


def drop(path):
    for file in [path] if path.is_file() else [f for f in path.rglob("*") if f.is_file()]:
        descriptor = os.open(file, os.O_RDONLY)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(descriptor)


def timed(work):
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def disk(directory, mib):
    """What the disk can do: plain writes and reads of 16 MiB."""
    file, block = directory / "plain", os.urandom(16 << 20)

    def write():
        with open(file, "wb", buffering=0) as out:
            for _ in range(mib // 16):
                out.write(block)
            os.fsync(out.fileno())

    def read():
        with open(file, "rb", buffering=0) as source:
            while source.read(16 << 20):
                pass

    saved = timed(write)
    drop(file)
    return saved, timed(read)


def renkei(directory, mib, ranks):
    done = subprocess.run([DRIVER, directory / "renkei", str(mib), str(ranks)], check=True,
                          capture_output=True, text=True)
    result = json.loads(done.stdout)
    assert result["equal"]
    return result["save"], result["load"]


def peer(directory, mib, save, load):
    count = mib * (1 << 20) // 4 // TENSORS
    state = {f"tensor{i}": torch.rand(count) for i in range(TENSORS)}
    path = directory / "peer"

    def saving():
        save(state, path)
        sync(path)

    saved = timed(saving)
    drop(path)
    return saved, timed(lambda: load(state, path))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--directory", type=Path, default=Path("/tmp/renkei-bench-checkpoints"))
    parser.add_argument("--mib", type=int, default=480)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--repeat", type=int, default=3)
    given = parser.parse_args()
    ways = {
        "disk": lambda where: disk(where, given.mib),
        "renkei": lambda where: renkei(where, given.mib, given.ranks),
        "torch.save": lambda where: peer(where, given.mib, torch.save,
                                         lambda _, path: torch.load(path)),
        "safetensors": lambda where: peer(where, given.mib, save_file,
                                          lambda _, path: [t.sum() for t in load_file(path).values()]),
        "torch.distributed.checkpoint": lambda where: peer(
            where, given.mib, lambda state, path: dcp.save(state, checkpoint_id=path, no_dist=True),
            lambda state, path: dcp.load(state, checkpoint_id=path, no_dist=True)),
    }
    times = {name: [] for name in ways}
    for _ in range(given.repeat):  # in turn, so that a slow minute of the disk meets all
        for name, way in ways.items():
            shutil.rmtree(given.directory, ignore_errors=True)
            given.directory.mkdir(parents=True)
            times[name].append(way(given.directory))
    shutil.rmtree(given.directory, ignore_errors=True)
    print(f"{'':30}{'save MiB/s':>12}{'load MiB/s':>12}")
    for name, rows in times.items():
        saved, loaded = (statistics.median(row[i] for row in rows) for i in (0, 1))
        print(f"{name:30}{given.mib / saved:12.0f}{given.mib / loaded:12.0f}")


if __name__ == "__main__":
    main()
