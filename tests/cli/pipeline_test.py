import json
import os
import signal
import socket
import subprocess
import time
import unittest
from pathlib import Path

from renkei import PROGRAM, Case

GPT = ("train", "--model", "gpt", "--set", "model.hidden=64", "--set", "model.layers=4",
       "--set", "model.sequence=16", "--set", "model.vocabulary=64", "--set", "model.dropout=0.1",
       "--data", "random", "--batch", "16", "--steps", "6")


class Pipeline(Case):
    def plan(self, result):
        return json.loads((Path(result["run_dir"]) / "plan.json").read_text())

    def losses(self, result):
        return [line["loss"] for line in self.metrics(result["run_dir"]) if "loss" in line]

    def test_a_planned_pipeline_equals_one_process_and_its_plan_can_be_used_again(self):
        planned = self.run_json(*GPT, "-n", "3", "--plan", "auto", "--stages", "3",
                                "--micro-batches", "4", "--set", "train.save=true")
        self.assertEqual(planned["plan"]["stages"], 3)
        self.assertEqual(planned["plan"]["kind"], "pipeline")
        alone = self.run_json(*GPT, "--micro-batches", "4")
        for a, b in zip(self.losses(planned), self.losses(alone)):
            self.assertAlmostEqual(a / b, 1, delta=1e-6)
        self.assertGreater(planned["predicted"]["step_seconds"], 0)
        self.assertEqual(len(planned["predicted"]["memory_bytes"]), 3)
        self.assertGreater(planned["time"]["bubble"], 0)

        file = Path(planned["run_dir"]) / "plan.json"
        again = self.run_json(*GPT, "-n", "3", "--plan", file)
        self.assertEqual(again["parameters_checksum"], planned["parameters_checksum"])
        # Its weights are whole: one process goes on with them.
        self.run_json("train", "--model", "gpt", *GPT[3:-1], "1", "--set",
                      f"model.weights={planned['run_dir']}/model.safetensors")

        # People may change a plan, within limits.
        plan = json.loads(file.read_text())
        plan["stage_list"][0]["recompute"] = True
        self.path.joinpath("changed.json").write_text(json.dumps(plan))
        changed = self.run_json(*GPT, "-n", "3", "--plan", "changed.json")
        self.assertEqual(changed["parameters_checksum"], planned["parameters_checksum"])
        plan["stage_list"][0]["ops"].pop()
        self.path.joinpath("broken.json").write_text(json.dumps(plan))
        self.assert_fails(3, "is in no stage", "another model", *GPT, "-n", "3", "--plan",
                          "broken.json", "--quiet")
        self.assert_fails(2, "the plan needs 3 ranks, and there are 2", "-n 3", *GPT, "-n", "2",
                          "--plan", file, "--quiet")

    def test_a_plan_of_a_recorded_network_is_trained(self):
        plan = self.run_json("plan", "--model", "lenet", "--measure", "--devices", "2", "--stages",
                             "2", "--batch", "16", "--micro-batches", "4", "-o", "plan.json",
                             "--save-graph", "graph.json")
        self.assertEqual(plan["costs"], "measured")
        graph = json.loads(self.path.joinpath("graph.json").read_text())
        self.assertEqual({p["name"] for p in graph["parameters"]} & {"conv1.weight", "fc3.bias"},
                         {"conv1.weight", "fc3.bias"})
        trained = self.run_json("train", "--model", "lenet", "--data", "random", "--steps", "2",
                                "-n", "2", "--plan", "plan.json")
        self.assertEqual(trained["plan"]["stages"], 2)
        self.assertEqual(trained["batch"], 16)
        # The same for a cluster that is not here: its work is counted, not measured.
        elsewhere = self.run_json("plan", "--model", "lenet", "--cluster", "mn1",
                                  "--devices", "4", "--batch", "64")
        self.assertGreater(elsewhere["predicted"]["step_seconds"], 0)
        self.assert_fails(2, "--measure measures this machine", "--cluster", "plan", "--model",
                          "lenet", "--measure", "--cluster", "mn1")

    def test_replicas_of_a_stage_can_divide_the_state_of_the_optimizer(self):
        self.run_json("plan", "--model", "lenet", "--measure", "--devices", "4", "--stages", "2",
                      "--batch", "16", "--micro-batches", "2", "--set", "plan.sharded_optimizer=no",
                      "-o", "whole.json")
        plan = json.loads(self.path.joinpath("whole.json").read_text())
        replicas = {rank: len(stage["ranks"]) for stage in plan["stage_list"] for rank in stage["ranks"]}
        plan["sharded_optimizer"] = True
        self.path.joinpath("divided.json").write_text(json.dumps(plan))
        # Ranks that share memory divide it in any case.
        whole, divided, shared = (
            self.run_json("train", "--model", "lenet", "--data", "random", "--steps", "3", "-n", "4",
                          "--set", "optim.name=adamw", "--plan", f"{name}.json",
                          "--set", f"comm.shared_memory={memory}")
            for name, memory in (("whole", "false"), ("divided", "false"), ("whole", "true")))
        self.assertEqual([rank["optimizer"] for rank in shared["memory_bytes"]],
                         [rank["optimizer"] for rank in divided["memory_bytes"]])
        # Messages add up in another order.
        for a, b in zip(self.losses(divided), self.losses(whole)):
            self.assertAlmostEqual(a / b, 1, delta=1e-6)
        for rank, (a, b) in enumerate(zip(divided["memory_bytes"], whole["memory_bytes"])):
            self.assertAlmostEqual(a["optimizer"] * replicas[rank] / b["optimizer"], 1, delta=0.01)

    def test_auto_is_data_parallel_where_that_is_fastest(self):
        result = self.run_json("train", "--model", "lenet", "--data", "random", "--batch", "64",
                               "--steps", "3", "-n", "2", "--plan", "auto")
        self.assertEqual(result["plan"]["kind"], "data")

    def test_a_network_that_fits_no_device_is_trained_in_stages(self):
        job = ("train", "--model", "mlp", "--set", "model.hidden=512", "--set", "model.layers=16",
               "--data", "random", "--batch", "16", "--steps", "5")
        limit = 20 << 20  # parameters and gradients take 33.6 MB
        self.assert_fails(5, "where its device has 20 MiB", "--plan auto", *job, "-n", "2",
                          "--device-memory", "20MiB", "--quiet")
        result = self.run_json(*job, "-n", "4", "--plan", "auto", "--device-memory", "20MiB")
        self.assertGreater(result["plan"]["stages"], 1)
        self.assertEqual(len(result["memory_bytes"]), 4)
        for rank in result["memory_bytes"]:
            self.assertLessEqual(rank["device"], limit)
        alone = self.run_json(*job, "--micro-batches", result["plan"]["micro_batches"])
        for a, b in zip(self.losses(result), self.losses(alone)):
            self.assertAlmostEqual(a / b, 1, delta=1e-6)
        self.assert_fails(5, "no plan fits 2 devices", "--device-memory", *job, "-n", "2", "--plan", "auto",
                          "--device-memory", "5MiB", "--quiet")

    def assert_fits(self, result, limit):
        """Within the limit, as predicted to a tenth."""
        for rank, predicted in zip(result["memory_bytes"], result["predicted"]["memory_bytes"], strict=True):
            self.assertLessEqual(rank["device"], limit)
            self.assertAlmostEqual(predicted / rank["device"], 1, delta=0.1)

    def test_one_stage_that_fits_only_when_it_recomputes_is_recomputed_in_segments(self):
        job = ("train", "--model", "gpt", "--set", "model.hidden=64", "--set", "model.layers=8", "--set",
               "model.sequence=64", "--set", "model.vocabulary=100", "--data", "random", "--batch", 16, "--steps", 3,
               "-n", 2, "--plan", "auto", "--stages", 1, "--micro-batches", 1)  # fmt: skip
        roomy = self.run_json(*job)
        self.assertFalse(self.plan(roomy)["stage_list"][0]["recompute"])
        limit = int(max(rank["device"] for rank in roomy["memory_bytes"]) * 0.5)
        tight = self.run_json(*job, "--device-memory", limit)
        stage = self.plan(tight)["stage_list"][0]
        self.assertTrue(stage["recompute"])
        self.assertGreater(len(stage["segments"]), 1)
        self.assertEqual(tight["parameters_checksum"], roomy["parameters_checksum"])
        self.assert_fits(tight, limit)

    def test_one_stage_that_fits_only_with_a_divided_optimizer_gets_one(self):
        job = ("train", "--model", "mlp", "--set", "model.hidden=256", "--set", "model.layers=8", "--data", "random",
               "--batch", 16, "--steps", 3, "-n", 2, "--plan", "auto", "--stages", 1, "--set", "optim.name=adamw",
               "--set", "comm.shared_memory=false")  # fmt: skip
        roomy = self.run_json(*job, "--set", "plan.sharded_optimizer=no")
        limit = int(max(rank["device"] for rank in roomy["memory_bytes"]) * 0.9)
        tight = self.run_json(*job, "--device-memory", limit)
        self.assertTrue(self.plan(tight)["sharded_optimizer"])
        self.assert_fits(tight, limit)
        for a, b in zip(self.losses(tight), self.losses(roomy), strict=True):
            self.assertAlmostEqual(a / b, 1, delta=1e-6)

    def test_a_rank_killed_in_mid_pipeline_ends_the_job_and_is_named(self):
        process = subprocess.Popen(
            [PROGRAM, *GPT[:-1], "1000000", "-n", "3", "--plan", "auto", "--stages", "3",
             "--micro-batches", "4", "--run-dir", "run", "--quiet"],
            cwd=self.path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.kill)
        metrics = self.path / "run/metrics.jsonl"
        deadline = time.monotonic() + 120
        while not metrics.exists() or metrics.stat().st_size < 500:
            self.assertLess(time.monotonic(), deadline, "the training did not start")
            self.assertIsNone(process.poll())
            time.sleep(0.05)
        pids = self.rank_pids(3)
        os.kill(pids[1], signal.SIGKILL)
        _, stderr = process.communicate(timeout=15)
        self.assertEqual(process.returncode, 4, stderr)
        self.assertIn(f"rank 1 (host {socket.gethostname()}, process {pids[1]}) was ended by "
                      "signal 9", stderr)
        for pid in pids.values():
            stat = Path(f"/proc/{pid}/stat")
            self.assertTrue(not stat.exists() or stat.read_text().rsplit(")", 1)[1].split()[0] == "Z")

    def test_the_bench_has_a_row_for_each_schedule(self):
        result = self.run_json("bench", "pipeline", "-n", "2", "--task", "2ms", "--steps", "3",
                               "--micro-batches", "4")
        rows = {row["schedule"]: row for row in result["rows"]}
        self.assertEqual(set(rows), {"gpipe", "1f1b", "interleaved", "zero_bubble"})
        for row in rows.values():
            self.assertGreater(row["step_seconds"], 0.9 * row["ideal_seconds"])
        self.assertLess(rows["1f1b"]["micro_batches_in_flight"],
                        rows["gpipe"]["micro_batches_in_flight"])
        self.assertLess(rows["zero_bubble"]["ideal_seconds"], rows["1f1b"]["ideal_seconds"])


if __name__ == "__main__":
    unittest.main()
