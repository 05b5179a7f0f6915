import json
import os
import signal
import socket
import subprocess
import time
import unittest
from pathlib import Path

from renkei import PROGRAM, Case

ENDLESS = ("train", "--model", "mlp", "--set", "model.hidden=64", "--data", "random", "--batch",
           "48", "--steps", "1000000", "--quiet")



class Failures(Case):
    def start(self, *command):
        process = subprocess.Popen([*command], cwd=self.path, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.kill)
        deadline = time.monotonic() + 60
        metrics = self.path / "run/metrics.jsonl"
        while not metrics.exists() or metrics.stat().st_size < 2000:  # training is under way
            self.assertLess(time.monotonic(), deadline, "the training did not start")
            self.assertIsNone(process.poll())
            time.sleep(0.05)
        return process

    def assert_all_gone(self, pids):
        """No rank is left behind; what only waits to be reaped is gone too."""
        def runs(pid):
            try:
                return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
            except OSError:
                return False
        deadline = time.monotonic() + 5
        while any(map(runs, pids.values())):
            self.assertLess(time.monotonic(), deadline, "a rank is left behind")
            time.sleep(0.05)

    def test_a_killed_rank_ends_the_job_and_is_named(self):
        process = self.start(PROGRAM, *ENDLESS, "-n", "3", "--run-dir", "run", "--json")
        pids = self.rank_pids(3)
        os.kill(pids[1], signal.SIGKILL)
        begin = time.monotonic()
        stdout, stderr = process.communicate(timeout=15)
        self.assertLess(time.monotonic() - begin, 15)
        self.assertEqual(process.returncode, 4, stderr)
        sentence = f"rank 1 (host {socket.gethostname()}, process {pids[1]}) was ended by signal 9"
        self.assertIn(sentence, stderr)
        self.assertEqual(stderr.count("error: "), 1, stderr)
        for told in (json.loads(stdout), json.loads((self.path / "run/failure.json").read_text())):
            self.assertEqual(told["error"]["rank"], 1)
            self.assertEqual(told["error"]["host"], socket.gethostname())
            self.assertEqual(told["error"]["code"], "communication")
        self.assert_all_gone(pids)
        # What was written until then stays readable.
        lines = (self.path / "run/metrics.jsonl").read_text().splitlines()
        self.assertEqual(json.loads(lines[0])["step"], 0)

    def test_a_stopped_rank_runs_into_the_deadline_and_is_named(self):
        process = self.start(PROGRAM, *ENDLESS, "-n", "2", "--run-dir", "run", "--set",
                             "comm.timeout=2s")
        pids = self.rank_pids(2)
        os.kill(pids[1], signal.SIGSTOP)
        try:
            _, stderr = process.communicate(timeout=20)
        finally:
            if os.path.exists(f"/proc/{pids[1]}"):
                os.kill(pids[1], signal.SIGCONT)
        self.assertEqual(process.returncode, 4, stderr)
        self.assertRegex(stderr, rf"waited [2-9]\.\d s for rank 1 \(host {socket.gethostname()}\)")
        self.assertIn("step ", stderr)
        # What the waiting rank did last is in its log.
        self.assertIn("still inside", (self.path / "run/logs/rank-0.log").read_text())

    def test_an_interrupt_ends_all_ranks(self):
        process = self.start(PROGRAM, *ENDLESS, "-n", "2", "--run-dir", "run")
        pids = self.rank_pids(2)
        process.send_signal(signal.SIGINT)
        _, stderr = process.communicate(timeout=15)
        self.assertEqual(process.returncode, 128 + signal.SIGINT, stderr)
        self.assertIn("the job was interrupted (signal 2)", stderr)
        self.assert_all_gone(pids)


if __name__ == "__main__":
    unittest.main()
