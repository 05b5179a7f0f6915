"""Ranks are killed at random moments, also while they start and while checkpoints are written: each time the job
starts again by itself, and ends with the parameters of a run that nobody disturbed.

A few kills by itself; `--kills N` for more, over all layouts.
"""

import json
import os
import random
import re
import signal
import subprocess
import sys
import time
import unittest
from pathlib import Path

from renkei import PROGRAM, Case

STEPS = 300
TRAIN = ("train", "--model", "mlp", "--set", "model.hidden=48", "--set", "model.layers=4", "--data", "random", "--set",
         "data.samples=96", "--batch", "48", "--steps", STEPS, "--set", "optim.name=adamw", "--set", "train.lr=0.01",
         "--set", "comm.timeout=30s", "--threads", 1, "--quiet", "--json")  # fmt: skip
PIPELINE = ("--plan", "auto", "--micro-batches", 2, "--stages", 2)
LAYOUTS = {  # ranks, how they are planned
    "data": (2, ()),
    "pipeline": (2, PIPELINE),
    "data of three": (3, ()),
    "hybrid": (4, PIPELINE),
    "data of four": (4, ()),
}
IN_TEST = {"data": 3, "pipeline": 2}


class Kills(Case):
    kills = 0  # in all; 0: a few

    def start(self, run, ranks, *words):
        scratch = self.path / "tmp"
        scratch.mkdir(exist_ok=True)
        command = [PROGRAM, *TRAIN, "-n", ranks, "--run-dir", run, *words]
        return subprocess.Popen([str(word) for word in command], cwd=self.path, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True, env={**os.environ, "TMPDIR": str(scratch)})

    def finished(self, process):
        stdout, stderr = process.communicate(timeout=300)
        self.assertEqual(process.returncode, 0, stderr)
        return json.loads(stdout)["parameters_checksum"], stderr

    def ranks_of(self, process, known):
        """The ranks of the start that is under way, as soon as all are there."""
        while process.poll() is None:
            try:
                found = self.rank_pids(self.ranks)
            except AssertionError:
                found = {}
            if found and not set(found.values()) & known:
                return found
            time.sleep(0.01)
        return {}

    def kill_some(self, process, count, chance):
        """Kills random ranks at random moments; how many there were."""
        known, done = set(), 0
        while done < count and (ranks := self.ranks_of(process, known)):
            known |= set(ranks.values())
            time.sleep(chance.uniform(0, self.longest_wait))
            try:
                os.kill(ranks[chance.randrange(len(ranks))], signal.SIGKILL)
            except ProcessLookupError:
                break  # it was done already
            done += 1
        return done

    def check_layout(self, name, count, chance):
        self.ranks, planning = LAYOUTS[name]
        folder = name.replace(" ", "-")
        begin = time.monotonic()
        whole, _ = self.finished(self.start(f"whole-{folder}", self.ranks, *planning))
        self.longest_wait = time.monotonic() - begin  # from the start of the ranks to the kill: anywhere in a run
        plan = ("--plan", self.path / f"whole-{folder}/plan.json") if planning else ()
        before, done, attempt = set(os.listdir("/dev/shm")), 0, 0
        while done < count:
            attempt += 1
            run = f"{folder}-{attempt}"
            process = self.start(run, self.ranks, *plan, "--restarts", count, "--checkpoint-every", "2steps")
            self.addCleanup(process.kill)
            kills = self.kill_some(process, count - done, chance)
            checksum, words = self.finished(process)
            self.assertEqual(checksum, whole, words)
            # One that struck at the very end may have come too late to matter.
            self.assertGreaterEqual(words.count("restart "), kills - 1, words)
            steps = [line["step"] for line in self.metrics(self.path / run) if "loss" in line]
            self.assertEqual(steps, list(range(STEPS)))
            done += kills
        self.assertEqual([p for p in (self.path / "tmp").rglob("*") if not p.is_dir()], [])
        mine = re.compile(rf"renkei|\.{os.getuid()}\.")
        left = [name for name in set(os.listdir("/dev/shm")) - before if mine.search(name) and self.is_old(name)]
        self.assertEqual(left, [])
        return done

    def is_old(self, name):
        """Nobody has it mapped: others on this machine may be at work."""
        for entry in os.listdir("/proc"):
            try:
                if entry.isdigit() and name in Path(f"/proc/{entry}/maps").read_text():
                    return False
            except OSError:
                continue
        return os.path.exists(f"/dev/shm/{name}")

    def test_killed_runs_end_as_if_nothing_had_happened(self):
        chance = random.Random(18)
        shares = IN_TEST if not self.kills else {name: self.kills // len(LAYOUTS) for name in LAYOUTS}
        for name, count in shares.items():
            with self.subTest(layout=name):
                begin = time.monotonic()
                done = self.check_layout(name, count, chance)
                print(f"{name}: {done} kills survived in {time.monotonic() - begin:.0f} s", flush=True)


if __name__ == "__main__":
    if "--kills" in sys.argv:
        at = sys.argv.index("--kills")
        Kills.kills = int(sys.argv[at + 1])
        del sys.argv[at : at + 2]
    unittest.main(verbosity=2)
