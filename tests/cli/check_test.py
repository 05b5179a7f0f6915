"""The acceptance test on real ranks: healthy ones pass, one with half a core is named."""

import json
import os
import signal
import subprocess
import threading
import time
import unittest
from pathlib import Path

from renkei import PROGRAM, Case

REPETITIONS = int(os.environ.get("RENKEI_CHECK_REPETITIONS", "2"))


class Half:
    """Gives a rank of this test's job half of the time of a core, as a quota would."""

    def __init__(self, directory, rank):
        self.directory, self.rank = os.path.realpath(directory), rank
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self.run)

    def find(self):
        for entry in filter(str.isdigit, os.listdir("/proc")):
            try:
                if (os.readlink(f"/proc/{entry}/cwd") == self.directory
                        and os.readlink(f"/proc/{entry}/exe").endswith("renkei-blas")
                        and f"OMPI_COMM_WORLD_RANK={self.rank}\0".encode()
                        in Path(f"/proc/{entry}/environ").read_bytes()):
                    return int(entry)
            except OSError:
                continue
        return None

    def run(self):
        pid = None
        while not self.ended.is_set():
            if pid is None:
                pid = self.find()
            try:
                if pid is not None:
                    os.kill(pid, signal.SIGSTOP)
                time.sleep(0.03)
                if pid is not None:
                    os.kill(pid, signal.SIGCONT)
            except ProcessLookupError:
                return
            time.sleep(0.02)

    def __enter__(self):
        self.thread.start()

    def __exit__(self, *_):
        self.ended.set()
        self.thread.join()


class Check(Case):
    def check(self, *arguments):
        done = subprocess.run([PROGRAM, "check", *map(str, arguments), "--json", "--quiet"],
                              cwd=self.path, capture_output=True, text=True, timeout=120)
        self.assertIn(done.returncode, (0, 1), done.stderr)
        result = json.loads(done.stdout)
        self.assertEqual(done.returncode == 1, result["status"] == "fail", done.stderr)
        return result, [c for c in result["checks"] if c["status"] == "fail"]

    def test_level_1_tells_without_measuring(self):
        result, failed = self.check("--level", 1, "-n", 2)
        self.assertEqual(failed, [])
        names = {c["name"] for c in result["checks"]}
        self.assertLess({"open files", "stack", "locked memory", "binding", "versions", "clock",
                         "free space"}, names)
        self.assertNotIn("DGEMM", names)

    def test_a_rank_with_half_a_core_is_named_and_no_other(self):
        for _ in range(REPETITIONS):
            _, failed = self.check("-n", 4, "--threads", 1)
            self.assertEqual(failed, [])
            with Half(self.path, 2):
                _, failed = self.check("-n", 4, "--threads", 1)
            self.assertEqual({c["rank"] for c in failed}, {2}, failed)
            self.assertIn("DGEMM", {c["name"] for c in failed})

    def test_a_card_that_came_up_x8_fails(self):
        card = self.path / "sys/bus/pci/devices/0000:5e:00.0"
        card.mkdir(parents=True)
        for name, text in (("class", "0x030200"), ("current_link_width", "8"),
                           ("max_link_width", "16"), ("current_link_speed", "8.0 GT/s PCIe"),
                           ("max_link_speed", "8.0 GT/s PCIe")):
            (card / name).write_text(text + "\n")
        _, failed = self.check("--set", "check.sysfs=sys", "--threads", 1)
        self.assertEqual([c["name"] for c in failed], ["PCIe link"])
        self.assertIn("0000:5e:00.0 came up x8 instead of x16", failed[0]["reason"])

    def test_what_is_saved_plans_and_compares(self):
        self.check("-n", 2, "--threads", 1, "--save", "here.toml", "--page", "check.html")
        self.assertIn("<svg", (self.path / "check.html").read_text())
        plan = self.run_json("plan", "--model", "mlp", "--batch", 16, "--cluster", "here.toml",
                             "--devices", 2)
        self.assertGreater(plan["predicted"]["step_seconds"], 0)
        text = (self.path / "here.toml").read_text()
        self.assertIn("devices = 2", text)
        faster = [f"flops_per_second = {float(line.split('=')[1]) * 100:g}"
                  if line.startswith("flops_per_second") else line for line in text.splitlines()]
        (self.path / "faster.toml").write_text("\n".join(faster))
        _, failed = self.check("-n", 2, "--threads", 1, "--baseline", "faster.toml")
        self.assertIn("baseline: SGEMM", {c["name"] for c in failed})

    def test_level_3_watches_over_time(self):
        result, _ = self.check("--level", 3, "--set", "check.sustain=5s", "--threads", 1)
        self.assertIn("variation over time", {c["name"] for c in result["checks"]})

    def test_level_1_has_nothing_to_save(self):
        self.assert_fails(2, "level 1 measures nothing", "--level 2", "check", "--level", 1,
                          "--save", "x.toml")


if __name__ == "__main__":
    unittest.main()
