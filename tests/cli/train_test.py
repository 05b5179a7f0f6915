import json
import unittest

from renkei import Case

MLP = ("train", "--model", "mlp", "--set", "model.hidden=512", "--set", "model.layers=10",
       "--batch", 64, "--data", "random")


class Train(Case):
    def test_losses_are_the_same_for_1_2_and_4_ranks(self):
        losses = {}
        for ranks in (1, 2, 4):
            result = self.run_json(*MLP, "--steps", 20, "-n", ranks, "--run-dir", f"run{ranks}")
            self.assertEqual(result["parameters"], 2626560)
            self.assertEqual(result["ranks"], ranks)
            self.assertEqual(result["steps"], 20)
            for field in ("median", "p10", "p90"):
                self.assertGreater(result["step_seconds"][field], 0)
            self.assertGreater(result["samples_per_second"], 0)
            self.assertAlmostEqual(sum(result["time"].values()) /
                                   sum(m["seconds"] for m in self.metrics(f"{self.path}/run{ranks}")[2:]) * 18,
                                   1, places=3)
            losses[ranks] = [line["loss"] for line in self.metrics(result["run_dir"])]
            self.assertEqual(len(losses[ranks]), 20)
            self.assertEqual(losses[ranks][0], result["loss"]["first"])
            self.assertEqual(losses[ranks][-1], result["loss"]["last"])
        for ranks in (2, 4):
            for step, (one, many) in enumerate(zip(losses[1], losses[ranks])):
                self.assertLess(abs(many / one - 1), 1e-6, f"{ranks} ranks, step {step}")

    def test_the_same_seed_gives_the_same_bits_and_another_one_does_not(self):
        for ranks in (1, 2):
            checksums = [self.run_json(*MLP, "--steps", 10, "-n", ranks, "--seed", seed)
                         ["parameters_checksum"] for seed in (1, 1, 2)]
            self.assertEqual(checksums[0], checksums[1])
            self.assertNotEqual(checksums[0], checksums[2])

    def test_dropout_and_batch_norm_are_the_same_on_2_ranks_and_in_2_micro_batches(self):
        inception = ("train", "--model", "inception_v3", "--set", "model.image_size=96", "--set",
                     "model.classes=5", "--data", "random", "--batch", 4, "--steps", 2, "--threads", 1)
        one = self.run_json(*inception, "-n", 1, "--micro-batches", 2)
        two = self.run_json(*inception, "-n", 2)
        self.assertEqual(one["parameters_checksum"], two["parameters_checksum"])
        without = self.run_json(*inception, "-n", 2, "--set", "model.dropout=0")
        self.assertNotEqual(two["parameters_checksum"], without["parameters_checksum"])
        for run in (one, two):
            for memory in run["memory_bytes"]:
                parts = sum(memory[name] for name in ("parameters", "gradients", "optimizer",
                                                      "activations", "other"))
                self.assertLess(abs(parts / memory["peak"] - 1), 0.1, memory)

    def test_a_timeline_has_the_tasks_of_all_ranks(self):
        self.run_json(*MLP, "--steps", 3, "-n", 2, "--timeline", "tasks", "--run-dir", "here")
        trace = json.loads((self.path / "here/timeline.json").read_text())["traceEvents"]
        for rank in (0, 1):
            names = [event["name"] for event in trace if event["ph"] == "X" and event["pid"] == rank]
            for task in ("load", "forward", "backward", "reduce", "update"):
                self.assertEqual(names.count(task), 3)
            self.assertGreaterEqual(names.count("reduce and update"), 3)

    def test_a_run_directory_has_what_the_readme_says(self):
        self.run_json("train", "--model", "lenet", "--data", "synth", "--batch", 32, "--epochs", 2,
                      "--set", "data.samples=96", "--set", "data.test_samples=20", "-n", 2,
                      "--run-dir", "here")
        names = {entry.name for entry in (self.path / "here").iterdir()}
        self.assertLessEqual({"config.toml", "plan.json", "metrics.jsonl", "summary.json", "logs"}, names)
        self.assertTrue(any(name.startswith("events.out.tfevents.") for name in names))
        for rank in (0, 1):
            self.assertIn(f"rank {rank} info: done", (self.path / f"here/logs/rank-{rank}.log").read_text())
        evaluations = [m["evaluation"] for m in self.metrics(self.path / "here") if "evaluation" in m]
        self.assertEqual([e["samples"] for e in evaluations], [20, 20])

        # The stored settings repeat the run.
        again = self.run_json("train", "--config", "here/config.toml", "-n", 2, "--run-dir", "again")
        self.assertEqual(again["loss"]["last"], self.metrics(self.path / "here")[-2]["loss"])

    def test_drawn_images_are_learnt_from_files(self):
        made = self.run_json("data", "synth", "shapes", "--images", 1500, "--test-images", 200)
        self.assertEqual(made["samples"], 1700)
        result = self.run_json("train", "--data", "shapes", "--batch", 20, "--epochs", 5, "-n", 2,
                               "--set", "train.lr=0.03", "--set", "train.momentum=0.9")
        self.assertLess(result["loss"]["last"], result["loss"]["first"])
        self.assertGreater(result["accuracy"], 0.25, "chance is 0.1")

    def test_ranks_that_keep_samples_for_each_other_train_the_same(self):
        self.run_json("data", "synth", "shapes", "--shards", "--images", 300, "--test-images", 50)
        losses = [self.run_json("train", "--data", "shapes", "--set", "data.augment=crop", "--batch", 30,
                                "--epochs", 3, "-n", 3, "--set", f"data.share_cache={shared}")["loss"]
                  for shared in ("true", "false")]
        self.assertEqual(*losses)

    def test_people_get_a_banner_progress_and_a_table(self):
        done = self.run_renkei(*MLP, "--steps", 5, "--micro-batches", 2, "-n", 2)
        self.assertEqual(done.returncode, 0, done.stderr)
        for words in ("2 ranks", "thread", "PyTorch", "seed 1", "run directory",
                      "batch 64 = micro-batch 16 × 2 micro-batches × 2 ranks", "step 5/5"):
            self.assertIn(words, done.stderr)
        # Communication has no row where all of it was hidden behind computing.
        for words in ("2,626,560 parameters", "samples/s", "where a step's time goes", "compute"):
            self.assertIn(words, done.stdout)


if __name__ == "__main__":
    unittest.main()
