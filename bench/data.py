#!/usr/bin/env python3
"""What data costs. Studies, each with a table on stdout:

  loader    our loader against torchvision's, on the same pictures, in rounds: JPEGs of 500 x 375 pixels to
            random crops of 224 x 224, normalised
  archive   shards against one file per image, with cold caches (drops those of the system: for root)
  size      time per sample against the size of the data set, from a quarter of the memory to four times as
            much, for accelerators of several speeds, and from which speed on data limits; a plot, too

usage: bench/data.py [loader|archive|size] [--rounds 3] [--images N] [--threads 2]
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

import numpy
from PIL import Image

from plot import plot

ROOT = Path(__file__).resolve().parent.parent
RENKEI = ROOT / "build/bin/renkei"


def draw(directory, images):
    """Noise with the spectrum of photos (1/f); its JPEGs have about the size of ImageNet's."""
    random = numpy.random.default_rng(1)
    y, x = numpy.fft.fftfreq(375)[:, None], numpy.fft.rfftfreq(500)[None, :]
    falloff = 1 / numpy.maximum(numpy.hypot(x, y), 1 / 500)
    for number in range(images):
        folder = directory / f"class{number % 10}"
        folder.mkdir(parents=True, exist_ok=True)
        planes = [numpy.fft.irfft2(numpy.fft.rfft2(random.standard_normal((375, 500))) * falloff,
                                   s=(375, 500)) for _ in range(3)]
        grey = planes[0]
        pixels = numpy.stack([grey + 0.3 * plane for plane in planes], axis=2)
        pixels = 128 + 50 * (pixels - pixels.mean()) / pixels.std()
        Image.fromarray(numpy.clip(pixels, 0, 255).astype(numpy.uint8)).save(
            folder / f"{number:06}.jpg", quality=90)


def run_torchvision(directory, workers, seconds):
    done = subprocess.run([sys.executable, ROOT / "bench/peers/torchvision_loader.py", directory,
                           str(workers), "64", str(seconds)], capture_output=True, text=True,
                          check=True)
    return float(done.stdout)


def repeat(drawn, directory, images):
    """More files with the same pictures: storage does not know that they are the same."""
    files = sorted(drawn.glob("*/*.jpg"))
    for number in range(images):
        folder = directory / f"class{number % 10}"
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(files[number % len(files)], folder / f"{number:06}.jpg")


def pack(options, source, target, *arguments):
    subprocess.run([options.renkei, "data", "pack", source, target, "--quiet", *map(str, arguments)],
                   check=True, stdout=subprocess.DEVNULL)


def bench(options, source, *arguments):
    words = [options.renkei, "bench", "data", source, "--threads", options.threads, "--json", "--quiet",
             *arguments]
    done = subprocess.run(list(map(str, words)), capture_output=True, text=True, check=True)
    return json.loads(done.stdout)["rows"]


def study_loader(options, directory):
    images = options.images or 1000
    rates = defaultdict(list)
    draw(directory / "folder", images)
    pack(options, directory / "folder", directory / "shards")
    size = sum(file.stat().st_size for file in directory.glob("folder/*/*")) / images
    print(f"{images} images of {size / 1000:.0f} kB", file=sys.stderr)
    for number in range(options.rounds):
        for source in ["shards", "folder"]:
            row = bench(options, directory / source, "--batch", 64, "--epochs", 1, "--steps", images // 64,
                        "--decode", "--set", "data.cache=false")[0]
            rates[f"renkei, {source}"].append(row["samples_per_second"])
            rates["decoding alone"].append(row["decode_samples_per_second"])
        for workers in options.workers.split(","):
            rates[f"torchvision, {workers} workers"].append(
                run_torchvision(directory / "folder", int(workers), options.seconds))
        print(f"round {number + 1} of {options.rounds}", file=sys.stderr)
    medians = {name: statistics.median(values) for name, values in rates.items()}
    for name, rate in medians.items():
        print(f"{name:<24}{rate:8.0f} samples/s   {' '.join(f'{x:.0f}' for x in rates[name])}")
    peer = max(rate for name, rate in medians.items() if name.startswith("torchvision"))
    print(f"\nours / best peer: {medians['renkei, shards'] / peer:.2f}")
    print(f"ours / decoding alone: {medians['renkei, shards'] / medians['decoding alone']:.2f}")


def drop_caches():
    os.sync()
    Path("/proc/sys/vm/drop_caches").write_text("3")


def study_archive(options, directory):
    images = options.images or 20_000
    draw(directory / "drawn", 200)
    repeat(directory / "drawn", directory / "photos", images)
    subprocess.run([options.renkei, "data", "synth", directory / "icons", "--images", str(images),
                    "--test-images", "10", "--size", "64", "--quiet"], check=True, stdout=subprocess.DEVNULL)
    print(f"{images} images each; medians of {options.rounds} rounds\n")
    print("| images | as | samples/s | opens | MB read | read alone, samples/s |\n|---|---|---|---|---|---|")
    for name, folder, side in (("500 x 375", "photos", 224), ("64 x 64", "icons/train", 64)):
        shards = directory / f"{folder.split('/')[0]}-shards"
        pack(options, directory / folder, shards)
        rows = defaultdict(list)
        for _ in range(options.rounds):
            for label, source in (("shards", shards), ("files", directory / folder)):
                drop_caches()
                row = bench(options, source, "--batch", 64, "--epochs", 1, "--side", side, "--steps",
                            images // 64 if side == 64 else images // 640, "--set", "data.cache=false")[0]
                drop_caches()
                # Nothing is decoded: what storage gives.
                begin = time.monotonic()
                subprocess.run([options.renkei, "data", "verify", source, "--quiet"], check=True,
                               stdout=subprocess.DEVNULL)
                row["alone"] = images / (time.monotonic() - begin)
                rows[label].append(row)
        for label, found in rows.items():
            median = {key: statistics.median(row[key] for row in found)
                      for key in ("samples_per_second", "opens", "alone")}
            read = statistics.median(row["read_amplification"] * row["mb_per_second"] * row["epoch_seconds"]
                                     for row in found)
            print(f"| {name} | {label} | {median['samples_per_second']:.0f} | {median['opens']:.0f} | "
                  f"{read:.0f} | {median['alone']:.0f} |", flush=True)


def study_size(options, directory):
    """Pixels, not JPEGs: nothing is decoded, so storage can limit."""
    memory = options.memory << 20
    images = options.images or int(4.1 * memory / (500 * 375 * 3)) + 1
    draw(directory / "drawn", 50)
    repeat(directory / "drawn", directory / "folder", images)
    pack(options, directory / "folder", directory / "shards", "--raw", 1)
    shutil.rmtree(directory / "folder")
    sizes = f"{options.memory // 4}MiB:{options.memory * 4}MiB:*2"
    batch = 32

    def sweep(accelerator, sizes):
        return bench(options, directory / "shards", "--batch", batch, "--memory-limit",
                     f"{options.memory}MiB", "--sizes", sizes, "--accelerator", accelerator)

    series, rows = {}, {}
    free = sweep("none", sizes)
    fastest = max(row["samples_per_second"] for row in free)
    for name, seconds in (("no accelerator", None), ("slow accelerator", 3 / fastest),
                          ("fast accelerator", 0.5 / fastest)):
        rows[name] = free if seconds is None else sweep(f"{seconds * batch * 1e3:.3f}ms", sizes)
        series[name] = [(row["dataset_bytes"] / memory, 1e3 / row["samples_per_second"]) for row in rows[name]]
    print(f"memory of the loader {options.memory} MiB; milliseconds per sample, and utilisation\n")
    print("| data / memory | " + " | ".join(rows) + " | peak memory |\n|---|" + "---|" * (len(rows) + 1))
    for i, row in enumerate(free):
        cells = []
        for found in rows.values():
            used = found[i]["accelerator_utilisation"]
            cells.append(f"{1e3 / found[i]['samples_per_second']:.2f}" + (f" ({used:.0%})" if used else ""))
        peak = max(found[i]["peak_memory_bytes"] for found in rows.values()) / 2**20
        print(f"| {row['dataset_bytes'] / memory:.2f} | " + " | ".join(cells) + f" | {peak:.0f} MiB |")
    print("\nAt four times the memory:\n\n| accelerator takes | needs | gets | utilisation |\n|---|---|---|---|")
    for part in (4, 2.8, 2, 1.4, 1, 0.7, 0.5):
        seconds = part / free[-1]["samples_per_second"]
        row = sweep(f"{seconds * batch * 1e3:.3f}ms", f"{options.memory * 4}MiB:{options.memory * 4}MiB:*2")[0]
        print(f"| {seconds * 1e3:.2f} ms a sample | {0.5625 / seconds:.0f} MB/s | {row['mb_per_second']:.0f} MB/s | "
              f"{row['accelerator_utilisation']:.1%} |", flush=True)
    plot(series, options.plot, "milliseconds per sample", "size of the data set / memory of the loader",
         logarithmic=False)
    print(f"\nplot: {options.plot}")


STUDIES = {"loader": study_loader, "archive": study_archive, "size": study_size}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("study", nargs="?", default="loader", choices=STUDIES)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--images", type=int, default=0)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=4, help="of a run of torchvision")
    parser.add_argument("--workers", default="1,2,3", help="of torchvision; the best one counts")
    parser.add_argument("--memory", type=int, default=512, help="MiB, of the loader in the study of sizes")
    parser.add_argument("--plot", default=str(ROOT / "docs/data-size.svg"))
    parser.add_argument("--renkei", type=Path, default=RENKEI)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        STUDIES[options.study](options, Path(name))


if __name__ == "__main__":
    main()
