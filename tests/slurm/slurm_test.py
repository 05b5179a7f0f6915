"""Training through a real queue: a node dies, the job resumes and ends with the parameters of an undisturbed run."""

import json
import os
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

from slurm import Slurm

PROGRAM = os.environ["RENKEI"]
TRAIN = ("train", "--model", "mlp", "--data", "random", "--batch", "16", "--steps", "400",
         "--threads", "1", "--checkpoint-every", "20steps", "--quiet")


class Queue(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        slurm = Slurm(4)
        cls.slurm = slurm.__enter__()
        cls.addClassCleanup(slurm.__exit__)

    def setUp(self):
        directory = tempfile.TemporaryDirectory(prefix="renkei-queue-")
        self.addCleanup(directory.cleanup)
        self.path = Path(directory.name)

    def submit(self, *words):
        output = self.slurm.run(PROGRAM, "submit", "--json", *words, cwd=self.path)
        return json.loads(output)["job_id"]

    def wait_until(self, job, *states, seconds=240):
        self.slurm.wait_for(lambda: self.slurm.state(job) in states, f"{states} of job {job}",
                            seconds)

    def words_of(self, job):
        return "".join(file.read_text() for file in self.path.glob(f"*{job}*.out"))

    def summary(self, run):
        return json.loads((self.path / "runs" / run / "summary.json").read_text())

    def test_a_job_whose_node_dies_ends_as_if_it_had_not(self):
        calm = subprocess.run([PROGRAM, *TRAIN, "-n", "2", "--json"], cwd=self.path,
                              capture_output=True, text=True, check=True)
        job = self.submit("--nodes", "2", *TRAIN)
        run = self.path / "runs" / f"slurm-{job}"
        self.slurm.wait_for(lambda: any(run.glob("checkpoints/*")), "checkpoint", 120)
        time.sleep(1)
        listed = self.slurm.run(PROGRAM, "jobs", cwd=self.path)
        self.assertIn(f"slurm-{job}", listed)
        self.slurm.kill_node("n2")
        self.addCleanup(self.slurm.start_node, "n2")
        self.wait_until(job, "COMPLETED", "FAILED")
        self.assertEqual(self.slurm.state(job), "COMPLETED", self.words_of(job))
        result = self.summary(f"slurm-{job}")
        self.assertEqual(result["parameters_checksum"],
                         json.loads(calm.stdout)["parameters_checksum"])

    def test_a_sweep_is_an_array(self):
        job = self.submit("--sweep", "train.lr=0.1,0.01", "train", "--model", "mlp", "--data",
                          "random", "--batch", "8", "--steps", "3", "--threads", "1", "--quiet")
        for i in range(2):
            self.wait_until(f"{job}_{i}", "COMPLETED", "FAILED")
        first, second = (self.summary(f"slurm-{job}_{i}") for i in range(2))
        self.assertNotEqual(first["parameters_checksum"], second["parameters_checksum"])

    def test_data_is_staged_before_the_command_and_removed_behind_it(self):
        self.slurm.run(PROGRAM, "data", "synth", "set", "--images", 20, "--test-images", 4, "--quiet",
                       cwd=self.path)
        target = self.path / "staged"
        job = self.submit("--nodes", "2", "--stage", f"{self.path / 'set'}=>{target}", "data", "info",
                          str(target), "--json")
        self.wait_until(job, "COMPLETED", "FAILED")
        words = self.words_of(job)
        self.assertEqual(self.slurm.state(job), "COMPLETED", words)
        self.assertEqual(words.count('"samples": 24'), 2, words)
        self.assertFalse(target.exists())


if __name__ == "__main__":
    unittest.main()
