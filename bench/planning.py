#!/usr/bin/python3
"""How long does planning take, and how does that grow? A table on stdout and a plot (SVG).

Times are those of the processor: planning is one thread, and other work on the machine does not count."""

import argparse
import json
import math
import resource
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ADAM = ("--set", "plan.optimizer_state=2")


def bert(layers, hidden):
    return ("--model", "bert", "--dimension", f"layers={layers}", "--dimension", f"hidden={hidden}", *ADAM)


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
]


def plan(program, arguments):
    def used():
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        return usage.ru_utime + usage.ru_stime

    begin = used()
    done = subprocess.run([program, "plan", "--json", "--quiet", "--time-limit", "300", *map(str, arguments)],
                          capture_output=True, text=True, check=True)
    return used() - begin, json.loads(done.stdout)


def plot(series, path):
    """Lines on logarithmic axes: {name: [(x, seconds)]}."""
    width, height, left, bottom = 640, 400, 70, 50
    points = [point for line in series.values() for point in line]
    low_x, high_x = min(x for x, _ in points), max(x for x, _ in points)
    low_y = 10 ** math.floor(math.log10(min(y for _, y in points)))
    high_y = 10 ** math.ceil(math.log10(max(y for _, y in points)))

    def place(x, y):
        return (left + (width - left - 150) * math.log(x / low_x) / math.log(high_x / low_x),
                height - bottom - (height - bottom - 30) * math.log(y / low_y) / math.log(high_y / low_y))

    svg = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
           'font-family="sans-serif" font-size="12"><rect width="100%" height="100%" fill="white"/>',
           '<text x="70" y="18">processor seconds to plan (logarithmic)</text>']
    y = low_y
    while y <= high_y * 1.001:
        _, down = place(low_x, y)
        svg.append(f'<path d="M{left} {down:.1f} H{width - 150}" stroke="#ddd"/>'
                   f'<text x="{left - 8}" y="{down + 4:.1f}" text-anchor="end">{y:g}</text>')
        y *= 10
    for x in sorted({x for x, _ in points}):
        across, _ = place(x, low_y)
        svg.append(f'<text x="{across:.1f}" y="{height - bottom + 18}" text-anchor="middle">{x}</text>')
    svg.append(f'<text x="{(left + width - 150) / 2}" y="{height - 10}" text-anchor="middle">'
               'layers, or devices</text>')
    for colour, (name, line) in zip(("#1f77b4", "#d62728"), series.items()):
        path_text = " L".join("{:.1f} {:.1f}".format(*place(*point)) for point in line)
        across, down = place(*line[-1])
        svg.append(f'<path d="M{path_text}" fill="none" stroke="{colour}" stroke-width="2"/>'
                   f'<text x="{across + 6:.1f}" y="{down:.1f}" fill="{colour}">{name}</text>')
        svg += ['<circle cx="{:.1f}" cy="{:.1f}" r="3" fill="{}"/>'.format(*place(*point), colour)
                for point in line]
    Path(path).write_text("\n".join(svg + ["</svg>\n"]))


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
    plot({"layers (32 devices)": layers, "devices (96 layers)": devices}, options.plot)
    print(f"plot: {options.plot}")


if __name__ == "__main__":
    main()
