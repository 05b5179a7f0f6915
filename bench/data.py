#!/usr/bin/python3
"""Our loader against torchvision's, on the same pictures, in rounds: JPEGs of 500 x 375 pixels to
random crops of 224 x 224, normalised. Prints medians over the rounds.

usage: bench/data.py [--rounds 3] [--images 1000] [--threads 2] [--seconds 4]
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

import numpy
from PIL import Image

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


def run_renkei(renkei, source, threads, steps):
    words = [renkei, "bench", "data", source, "--batch", 64, "--threads", threads, "--epochs", 1,
             "--steps", steps, "--decode", "--json", "--quiet", "--set", "data.cache=false"]
    done = subprocess.run(list(map(str, words)), capture_output=True, text=True, check=True)
    return json.loads(done.stdout)["rows"][0]


def run_torchvision(directory, workers, seconds):
    done = subprocess.run(["/usr/bin/python3", ROOT / "bench/peers/torchvision_loader.py", directory,
                           str(workers), "64", str(seconds)], capture_output=True, text=True,
                          check=True)
    return float(done.stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--images", type=int, default=1000)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=4)
    parser.add_argument("--workers", default="1,2,3", help="of torchvision; the best one counts")
    parser.add_argument("--renkei", type=Path, default=RENKEI)
    options = parser.parse_args()

    rates = defaultdict(list)
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        draw(directory / "folder", options.images)
        subprocess.run([options.renkei, "data", "pack", directory / "folder", directory / "shards",
                        "--quiet"], check=True, stdout=subprocess.DEVNULL)
        size = sum(file.stat().st_size for file in directory.glob("folder/*/*")) / options.images
        print(f"{options.images} images of {size / 1000:.0f} kB", file=sys.stderr)
        for number in range(options.rounds):
            for source in ["shards", "folder"]:
                row = run_renkei(options.renkei, directory / source, options.threads,
                                 options.images // 64)
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


main()
