"""Runs that are interrupted, and go on."""

import json
import os
import signal
import subprocess
import time
import unittest
from pathlib import Path

from renkei import PROGRAM, Case

STEPS = 24
TRAIN = ("train", "--model", "mlp", "--set", "model.hidden=32", "--set", "model.layers=4", "--data",
         "random", "--set", "data.samples=64", "--batch", "16", "--steps", str(STEPS), "--set",
         "optim.name=adamw", "--set", "train.lr=0.01", "--quiet")


class Resume(Case):
    def trained(self, *arguments, run="run", code=0):
        done = self.run_renkei(*TRAIN, *arguments, "--run-dir", run, "--json")
        self.assertEqual(done.returncode, code, done.stderr)
        return json.loads(done.stdout), done.stderr

    def assert_metrics_are_whole(self, run):
        """Every step once, in order: no gap, no repetition."""
        steps = [line["step"] for line in self.metrics(self.path / run) if "loss" in line]
        self.assertEqual(steps, list(range(STEPS)))

    def checkpoints(self, run="run"):
        return sorted(p.name for p in (self.path / run / "checkpoints").glob("step-*"))

    def test_every_run_ends_with_its_weights(self):
        result, _ = self.trained()
        weights = Path(result["weights"])
        self.assertEqual(weights, (self.path / "run/model.safetensors").resolve())
        self.assertTrue(weights.exists())
        without, _ = self.trained("--no-save", run="without")
        self.assertIsNone(without["weights"])
        self.assertFalse((self.path / "without/model.safetensors").exists())

    def test_a_kill_without_restarts_can_be_resumed(self):
        whole, _ = self.trained("-n", 2, run="whole")
        done = self.run_renkei(*TRAIN, "-n", 2, "--run-dir", "run", "--checkpoint-every", "5steps",
                               "--set", "fault.kill=rank=1,step=13")
        self.assertEqual(done.returncode, 4, done.stderr)
        self.assertTrue((self.path / "run/failure.json").exists())
        # As many ranks as before, unless others are asked for.
        result = self.run_json("train", "--resume", "run", "--set", "fault.kill=")
        self.assertEqual(result["ranks"], 2)
        self.assertEqual(result["parameters_checksum"], whole["parameters_checksum"])
        self.assert_metrics_are_whole("run")

    def test_a_run_goes_on_with_other_ranks(self):
        whole, _ = self.trained("-n", 2, run="whole")
        for ranks in (1, 3):
            run = f"run{ranks}"
            self.run_renkei(*TRAIN, "-n", 2, "--run-dir", run, "--checkpoint-every", "5steps",
                            "--set", "fault.kill=rank=1,step=13")
            self.run_json("train", "--resume", run, "-n", ranks, "--set", "fault.kill=")
            for mine, other in zip(self.metrics(self.path / run), self.metrics(self.path / "whole")):
                self.assertAlmostEqual(mine["loss"] / other["loss"], 1, delta=1e-6)
            self.assert_metrics_are_whole(run)

    def test_signals_save_and_end(self):
        whole, _ = self.trained("-n", 2, run="whole")
        for word in ("TERM", "USR1", "HUP"):
            run = self.path / f"run{word}"
            process = subprocess.Popen(
                [PROGRAM, *TRAIN, "-n", "2", "--run-dir", run, "--json", "--set",
                 "fault.slow=rank=1,step=2"],
                cwd=self.path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            self.addCleanup(process.kill)
            while not (run / "metrics.jsonl").exists() or not (run / "metrics.jsonl").read_text():
                self.assertIsNone(process.poll())
                time.sleep(0.05)
            os.kill(process.pid, getattr(signal, "SIG" + word))
            stdout, stderr = process.communicate(timeout=60)
            self.assertEqual(process.returncode, 0, stderr)
            stopped = json.loads(stdout)
            self.assertFalse(stopped["finished"])
            self.assertLess(stopped["steps"], STEPS)
            result = self.run_json("train", "--resume", run, "--set", "fault.slow=")
            self.assertTrue(result["finished"])
            self.assertEqual(result["parameters_checksum"], whole["parameters_checksum"])
            self.assert_metrics_are_whole(run.name)

    def test_a_damaged_checkpoint_is_passed_over(self):
        whole, _ = self.trained("-n", 2, run="whole")
        done = self.run_renkei(*TRAIN, "-n", 2, "--run-dir", "run", "--checkpoint-every", "4steps",
                               "--set", "fault.kill=rank=0,step=20")
        self.assertEqual(done.returncode, 4, done.stderr)
        whole_ones = sorted((self.path / "run/checkpoints").glob("*/manifest.json"))
        self.assertGreater(len(whole_ones), 1)
        newest = whole_ones[-1].parent
        for shard in newest.glob("*.safetensors"):
            content = bytearray(shard.read_bytes())
            content[len(content) // 2] ^= 1
            shard.write_bytes(content)
        done = self.run_renkei("train", "--resume", "run", "--set", "fault.kill=", "--json", "--quiet")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("is not used: ", done.stderr)
        self.assertIn("its checksum does not match", done.stderr)
        self.assertEqual(json.loads(done.stdout)["parameters_checksum"], whole["parameters_checksum"])

    def test_what_is_not_the_same_training_is_refused(self):
        self.trained("--checkpoint-every", "10steps")
        self.assert_fails(2, "for a batch of 16", "leave --batch out", "train", "--resume", "run",
                          "--batch", 8, "--quiet", "--steps", 99)
        self.assert_fails(2, "the seed 1, and this one has 2", "settings that it had", "train",
                          "--resume", "run", "--seed", 2, "--quiet", "--steps", 99)
        self.assert_fails(2, "is not the directory of a run", "config.toml", "train", "--resume",
                          "nowhere")
        self.assert_fails(2, "does not say when to save", "30min", "train", "--data", "random",
                          "--checkpoint-every", "sometimes")
        self.assert_fails(2, "is no fault", "rank=1,step=20", "train", "--data", "random", "--set",
                          "fault.kill=now")

    def test_a_finished_run_can_be_made_longer(self):
        longer = self.run_json(*TRAIN[:TRAIN.index("--steps")], "--set", "optim.name=adamw", "--set",
                               "train.lr=0.01", "--run-dir", "longer", "--steps", 30)
        self.trained("--checkpoint-every", "24steps")
        result = self.run_json("train", "--resume", "run", "--steps", 30)
        self.assertEqual(result["parameters_checksum"], longer["parameters_checksum"])
        self.assertEqual(result["steps"], 30)

    def test_a_loss_that_is_not_finite_stops_or_is_taken_back(self):
        words = ("-n", 2, "--checkpoint-every", "4steps", "--set", "fault.nan=rank=1,step=10")
        done = self.run_renkei(*TRAIN, *words, "--run-dir", "stop")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertRegex(done.stderr, r"the loss of step 10 is -?nan; the first gradient .* of '\S+' on rank \d")
        result, told = self.trained(*words, "--set", "train.not_finite=rollback", run="back")
        self.assertIn("back to step 8, and the update of step 10 is left out", told)
        self.assertEqual(result["steps"], STEPS)
        self.assert_metrics_are_whole("back")

    def test_a_full_disk_is_a_warning_and_the_last_checkpoint_stays(self):
        _, told = self.trained("-n", 2, "--checkpoint-every", "4steps", "--set", "fault.enospc=rank=1,step=10")
        self.assertIn("the checkpoint of step 12 could not be saved, training goes on: ", told)
        self.assertIn("No space left on device", told)
        self.assertEqual([name for name in self.checkpoints() if (self.path / "run/checkpoints" / name / "manifest.json")
                          .exists()], ["step-00000004", "step-00000008"])

    def test_nothing_is_left_behind(self):
        scratch = self.path / "tmp"
        scratch.mkdir()
        environment = {**os.environ, "TMPDIR": str(scratch)}
        before = set(os.listdir("/dev/shm"))
        done = subprocess.run([PROGRAM, *TRAIN, "-n", "2", "--run-dir", "run", "--restarts", "1",
                               "--checkpoint-every", "3steps", "--set", "fault.kill=rank=1,step=7"],
                              cwd=self.path, capture_output=True, text=True, timeout=120,
                              env=environment)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([p for p in scratch.rglob("*") if not p.is_dir()], [])
        mine = {name for name in set(os.listdir("/dev/shm")) - before if str(os.getuid()) in name}
        self.assertEqual({name for name in mine if "renkei" in name}, set())
        self.assertEqual(self.checkpoints(), ["step-00000021", "step-00000024"])


if __name__ == "__main__":
    unittest.main()
