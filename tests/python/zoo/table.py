"""Writes the table of docs/capture.md from what check.py found.

    table.py ROWS.json …        (files that check.py --out wrote; the table gets their rows)
"""

import json
import pathlib
import re
import sys

DOCS = pathlib.Path(__file__).parents[3] / "docs" / "capture.md"
LINE = re.compile(r" [(][a-z_0-9]+[.]py:[0-9]+[)]$")  # it moves
BEGIN = "<!-- table: written by tests/python/zoo/table.py -->\n"


def row(found):
    what = "; ".join(f"{part}: {LINE.sub('', why)}" for part, why in found.get("opaque", {}).items())
    if found.get("refused"):
        what = f"refused: {found['refused']}"
    assumed = "; ".join(found.get("assumptions", []))
    return f"| {found['name']} | {what or '–'} | {assumed or '–'} |".replace("\n", " ")


def main():
    rows = [found for file in sys.argv[1:] for found in json.loads(pathlib.Path(file).read_text())]
    said = [r for r in rows if r.get("opaque") or r.get("assumptions") or r.get("refused")]
    text, _, _ = DOCS.read_text().partition(BEGIN)
    lines = ["| model | opaque, and why | assumed, and checked in every step |", "|---|---|---|", *map(row, said)]
    families = " and ".join(f"`{name}`" for name in dict.fromkeys(r["name"].partition("/")[0] for r in rows))
    count = f"Of {len(rows)} models ({families}) {len(rows) - len(said)} are captured as a whole.\n\n"
    DOCS.write_text(text + BEGIN + count + "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
