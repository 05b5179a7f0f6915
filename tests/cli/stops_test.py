"""A rank is stopped (kill -STOP) in each phase of a run: the job ends with exit code 4 within the deadline and ten
seconds, and the sentence names rank, host and what it did not arrive at."""

import os
import random
import signal
import socket
import subprocess
import sys
import time
import unittest

from renkei import PROGRAM, Case

DEADLINE = 4  # seconds
TRAIN = ("train", "--model", "mlp", "--set", "model.hidden=64", "--set", "model.layers=4", "--data", "random", "--set",
         "data.samples=480", "--batch", "48", "--threads", "1", "--quiet", "--set", f"comm.timeout={DEADLINE}s",
         "--run-dir", "run")  # fmt: skip
PIPELINE = ("--plan", "auto", "--stages", "2", "--micro-batches", "2")


class Stops(Case):
    every_phase = False

    def ranks_of(self, process, ready):
        """The ranks, as soon as `ready` says so."""
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and process.poll() is None:
            try:
                pids = self.rank_pids(2)
            except AssertionError:
                pids = None
            if pids and ready():
                return pids
            time.sleep(0.005)
        self.fail("the ranks did not get there")

    def stopped(self, ready, delay, *words, rank=1):
        """Stops a rank once it is `ready` and `delay` has passed; the words on stderr."""
        process = subprocess.Popen([PROGRAM, *TRAIN, "-n", "2", *words], cwd=self.path, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)  # fmt: skip
        self.addCleanup(process.kill)
        pid = self.ranks_of(process, ready)[rank]
        time.sleep(delay)
        os.kill(pid, signal.SIGSTOP)
        begin = time.monotonic()
        try:
            _, told = process.communicate(timeout=DEADLINE + 60)
        finally:
            if os.path.exists(f"/proc/{pid}"):
                os.kill(pid, signal.SIGKILL)
        took = time.monotonic() - begin
        self.assertEqual(process.returncode, 4, told)
        self.assertIn(f"rank {rank} (host {socket.gethostname()}", told)
        self.assertEqual(told.count("error: "), 1, told)
        return told, took

    def steps(self):
        file = self.path / "run/metrics.jsonl"
        return file.read_text().count("loss") if file.exists() else 0

    def check(self, phase, words, ready, delay, *arguments):
        with self.subTest(phase=phase):
            told, took = self.stopped(ready, delay, *arguments)
            self.assertRegex(told, words)
            print(f"{phase}: {took:.1f} s after the stop: {told.strip().splitlines()[0][:150]}", flush=True)
            subprocess.run(["rm", "-rf", str(self.path / "run")], check=True)

    def test_a_rank_that_is_stopped_is_named(self):
        endless = ("--steps", "1000000")
        self.check("start-up of MPI", "start-up of MPI|waited", lambda: True, 0.0, *endless)
        if not self.every_phase:
            return
        started = self.path / "run/config.toml"
        self.check("shared memory and setting up", "step|shared memory|waited", started.exists, 0.0, *endless)
        self.check("steps", "waited .* s for rank 1", lambda: self.steps() > 20, 0.0, *endless)
        self.check("steps of a pipeline", "waited .* s for rank 1", lambda: self.steps() > 20, 0.0, *endless, *PIPELINE)
        self.check("saving", "waited .* s for rank 1", lambda: self.steps() > 20, 0.0, *endless, "--checkpoint-every",
                   "1steps")  # fmt: skip
        for chance in range(4):  # forward, reduction, send, evaluation: whatever it is in
            self.check(f"a random moment, {chance}", "for rank 1|rank 1 .* has been in", lambda: self.steps() > 5,
                       random.Random(chance).uniform(0, 0.3), *endless, *(PIPELINE if chance % 2 else ()))  # fmt: skip
        weights = self.path / "run/model.safetensors"
        self.check("finalisation", "finalisation of MPI|shared memory|waited", weights.exists, 0.0, "--steps", "30")


if __name__ == "__main__":
    Stops.every_phase = "--all" in sys.argv
    if Stops.every_phase:
        sys.argv.remove("--all")
    unittest.main(verbosity=2)
