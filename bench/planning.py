#!/usr/bin/env python3
"""How long does planning take, and how does that grow? A table on stdout and a plot (SVG).

Times are those of the processor: planning is one thread, and other work on the machine does not count."""

import argparse
import json
import resource
import subprocess
from pathlib import Path

from plot import plot

ROOT = Path(__file__).resolve().parent.parent
ADAM = ("--set", "plan.optimizer_state=2")


def sizes(**settings):
    return [word for name, value in settings.items() for word in ("--set", f"model.{name}={value}")]


def bert(layers, hidden):
    return ("--model", "bert", *sizes(layers=layers, hidden=hidden, sequence=512), *ADAM)


# What the issue asks for: name, arguments, seconds.
GOALS = [
    ("ResNet-152 on 32 devices", ("--model", "resnet152", "--cluster", "flow-type2", "--devices", 32,
                                  "--batch", 1024), 5),
    ("ResNet-152 on 32 devices, 512 MiB each", ("--model", "resnet152", "--cluster", "flow-type2",
                                                "--devices", 32, "--batch", 1024, "--memory", "512MiB"), 5),
    ("BERT 96 × 2048 on 32 devices", (*bert(96, 2048), "--cluster", "flow-type2", "--devices", 32,
                                      "--batch", 256), 30),
    ("1,000 layers on 1,024 devices", (*bert(1000, 1024), "--cluster", "mn1", "--devices", 1024,
                                       "--batch", 4096), 60),
    ("GPT-3 on 512 devices", ("--model", "gpt", *sizes(layers=96, hidden=12288, heads=96, sequence=2048), *ADAM,
                              "--cluster", "flow-type2", "--devices", 512, "--batch", 512), 10),
]


def plan(program, arguments):
    def used():
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        return usage.ru_utime + usage.ru_stime

    begin = used()
    done = subprocess.run([program, "plan", "--json", "--quiet", "--time-limit", "300", *map(str, arguments)],
                          capture_output=True, text=True, check=True)
    return used() - begin, json.loads(done.stdout)


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--program", default=str(ROOT / "build/bin/renkei"))
    options.add_argument("--plot", default=str(ROOT / "docs/planning.svg"))
    options = options.parse_args()
    print("| problem | seconds | limit | step | plan |\n|---|---|---|---|---|")
    for name, arguments, limit in GOALS:
        seconds, result = plan(options.program, arguments)
        chosen = (f'{result["stages"]} stages, {result["micro_batches"]} micro-batches, '
                  f'{result["schedule"]}, {result["ranks"]} ranks')
        print(f'| {name} | {seconds:.1f} | {limit} | {result["predicted"]["step_seconds"]:.3g} s | '
              f'{chosen} |', flush=True)
    layers, devices = [], []
    for count in (10, 30, 100, 300, 1000):
        layers.append((count, plan(options.program, (*bert(count, 1024), "--cluster", "mn1",
                                                     "--devices", 32, "--batch", 256))[0]))
    for count in (2, 8, 32, 128, 512, 1024):
        devices.append((count, plan(options.program, (*bert(96, 1024), "--cluster", "mn1", "--devices",
                                                      count, "--batch", 4096))[0]))
    print("\nlayers on 32 devices: " + ", ".join(f"{x}: {y:.2f} s" for x, y in layers))
    print("devices for 96 layers: " + ", ".join(f"{x}: {y:.2f} s" for x, y in devices))
    plot({"layers (32 devices)": layers, "devices (96 layers)": devices}, options.plot,
         "processor seconds to plan (logarithmic)", "layers, or devices")
    print(f"plot: {options.plot}")


if __name__ == "__main__":
    main()
