#!/usr/bin/env python3
"""Ring allreduce over three emulated hosts with 1 Gbit/s links: bus bandwidth as a part of the link
rate, and what 16 bits on the wire gain. Needs root. usage: bench/network.py [RATE_MBIT]"""

import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests/network"))
from hosts import Hosts  # noqa: E402


def main():
    rate = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    with Hosts(3, f"{rate}mbit") as hosts:
        times = {}
        for wire in ("f32", "f16", "bf16"):
            done = hosts.mpirun(1, ROOT / "build/bin/renkei", "bench", "collectives", "--sizes",
                                "32MiB", "--repeat", 5, "--json", "--quiet", "--set",
                                "comm.algorithm=ring", "--set", f"comm.wire={wire}")
            if done.returncode != 0:
                sys.exit(done.stderr)
            row = next(row for row in json.loads(done.stdout)["rows"] if row["buffers"] == "private")
            times[wire] = row["time_us"]
            print(f"ring, {wire:4} on the wire, 32 MiB: {row['time_us'] / 1e3:8.1f} ms, "
                  f"bus bandwidth {row['busbw_gbs'] * 8000:6.0f} Mbit/s = "
                  f"{row['busbw_gbs'] * 8000 / rate:.2f} of the link, "
                  f"{times['f32'] / row['time_us']:.2f} times as fast as f32")


if __name__ == "__main__":
    main()
