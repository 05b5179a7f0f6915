import json
import unittest

from plan_test import chain

from renkei import Case

MACHINE = """
version = 1
name = "ours"
[device.card]
flops_per_second = 1e13
memory = "16GiB"
memory_bytes_per_second = 5e11
[[nodes]]
count = 8
devices = 4
device = "card"
memory = "64GiB"
link = { latency_seconds = 5e-6, bytes_per_second = 1e10 }
[interconnect]
latency_seconds = 1e-5
bytes_per_second = 1e9
[storage]
read_bytes_per_second = 1e9
[run]
model = "resnet50"
devices = "1:32:*2"
batch_per_device = 16
device_samples_per_second = 200
samples = 1e6
epochs = 2
sample_bytes = "100kB"
"""


class Simulate(Case):
    def setUp(self):
        super().setUp()
        (self.path / "graph.json").write_text(json.dumps(chain(parameter_bytes=10_000_000)))
        (self.path / "ours.toml").write_text(MACHINE)

    def simulate(self, *arguments):
        return self.run_json("simulate", "--graph", "graph.json", "--cluster", "mn1", *arguments)

    def test_the_json_has_the_fields_that_scripts_read(self):
        result = self.simulate("--devices", "8:64:*2", "--detail", "flows")
        self.assertEqual(result["command"], "simulate")
        self.assertTrue(result["predicted"])
        self.assertGreater(result["simulation_seconds"], 0)
        self.assertEqual([row["devices"] for row in result["rows"]], [8, 16, 32, 64])
        for row in result["rows"]:
            self.assertAlmostEqual(sum(row["time"].values()), row["step_seconds"])
            self.assertEqual(row["communication_seconds"], row["time"]["communication"])
            self.assertAlmostEqual(row["samples_per_second"], row["batch"] / row["step_seconds"])
            self.assertTrue(0 < row["efficiency"] <= 1)

    def test_the_same_question_has_the_same_answer(self):
        for detail in ("closed", "rounds", "flows"):
            first, again = (self.simulate("--devices", 64, "--detail", detail, "--jitter", 0.02)
                            for _ in range(2))
            self.assertEqual(first["rows"], again["rows"])

    def test_faster_links_make_the_step_shorter(self):
        slow = self.simulate("--devices", 64)["rows"][0]
        fast = self.simulate("--devices", 64, "--set",
                             "cluster.interconnect.bandwidth=4x")["rows"][0]
        self.assertLess(fast["communication_seconds"], slow["communication_seconds"])
        self.assert_fails(2, "has no 'interconect.bandwidth'",
                          "did you mean cluster.interconnect.bandwidth?", "simulate", "--graph",
                          "graph.json", "--cluster", "mn1", "--set",
                          "cluster.interconect.bandwidth=2x")

    def test_one_file_describes_a_machine_and_a_run(self):
        result = self.run_json("simulate", "--cluster", "ours.toml", "--sensitivity")
        self.assertEqual(result["model"], "resnet50")
        rows = result["rows"]
        self.assertEqual(len(rows), 6)
        self.assertAlmostEqual(rows[0]["samples_per_second"], 200, places=3)
        self.assertAlmostEqual(rows[0]["training"]["seconds"], 1e4, delta=1)
        self.assertEqual(result["sensitivity"][0]["setting"],
                         "cluster.interconnect.bandwidth")

    def test_a_run_directory_has_a_timeline(self):
        self.simulate("--devices", 4, "--run-dir", "predicted")
        trace = json.loads((self.path / "predicted" / "timeline.json").read_text())
        names = {event["name"] for event in trace["traceEvents"]}
        self.assertTrue({"forward", "backward", "reduce", "update"} <= names)
        result = json.loads((self.path / "predicted" / "result.json").read_text())
        self.assertTrue(result["predicted"])


if __name__ == "__main__":
    unittest.main()
