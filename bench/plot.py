"""Lines in an SVG file, for the benchmarks."""

import math
from pathlib import Path

COLOURS = ("#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e")
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 640, 400, 70, 170, 30, 50


def ticks(low, high, logarithmic):
    if logarithmic:
        return [10.0 ** power for power in range(round(math.log10(low)), round(math.log10(high)) + 1)]
    step = 10 ** math.floor(math.log10(high or 1))
    step *= next(part for part in (0.1, 0.2, 0.5, 1, 2) if high / (step * part) <= 8)
    return [step * i for i in range(math.ceil(high / step - 1e-9) + 1)]


def plot(series, path, title, x_label, logarithmic=True):
    """{name: [(x, y)]}. x is on a logarithmic axis; so is y, or else it begins at 0."""
    points = [point for line in series.values() for point in line]
    low_x, high_x = min(x for x, _ in points), max(x for x, _ in points)
    low_y, high_y = min(y for _, y in points), max(y for _, y in points)
    if logarithmic:
        low_y, high_y = 10 ** math.floor(math.log10(low_y)), 10 ** math.ceil(math.log10(high_y))
    marks = ticks(low_y, high_y, logarithmic)
    high_y = max(high_y, marks[-1])

    def place(x, y):
        up = math.log(y / low_y) / math.log(high_y / low_y) if logarithmic else y / high_y
        return (LEFT + (WIDTH - LEFT - RIGHT) * math.log(x / low_x) / math.log(high_x / low_x),
                HEIGHT - BOTTOM - (HEIGHT - BOTTOM - TOP) * up)

    svg = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" '
           + 'font-size="12"><rect width="100%" height="100%" fill="white"/>',
           f'<text x="{LEFT}" y="18">{title}</text>']
    for mark in marks:
        _, down = place(low_x, mark)
        svg.append(f'<path d="M{LEFT} {down:.1f} H{WIDTH - RIGHT}" stroke="#ddd"/>'
                   f'<text x="{LEFT - 8}" y="{down + 4:.1f}" text-anchor="end">{mark:g}</text>')
    last = -math.inf
    for x in sorted({x for x, _ in points}):
        across, _ = place(x, high_y)
        if across < last + 30:  # the numbers would overlap
            continue
        last = across
        svg.append(f'<text x="{across:.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{round(x, 2):g}</text>')
    svg.append(f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 10}" text-anchor="middle">'
               f'{x_label}</text>')
    for colour, (name, line) in zip(COLOURS, series.items()):
        path_text = " L".join("{:.1f} {:.1f}".format(*place(*point)) for point in line)
        across, down = place(*line[-1])
        svg.append(f'<path d="M{path_text}" fill="none" stroke="{colour}" stroke-width="2"/>'
                   f'<text x="{across + 6:.1f}" y="{down + 4:.1f}" fill="{colour}">{name}</text>')
        svg += ['<circle cx="{:.1f}" cy="{:.1f}" r="3" fill="{}"/>'.format(*place(*point), colour)
                for point in line]
    Path(path).write_text("\n".join(svg + ["</svg>\n"]))
