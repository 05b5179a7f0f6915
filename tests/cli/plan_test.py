import json
import unittest
import xml.etree.ElementTree as xml

from renkei import Case


def chain(ops=8, forward=0.01, value_bytes=4096, parameter_bytes=1 << 20, saved_bytes=1 << 20):
    """A graph file with the required fields only."""
    return {
        "version": 1, "batch": 8,
        "ops": [{"id": i, "name": f"layer{i}", "kind": "linear", "inputs": [i], "outputs": [i + 1],
                 "forward_seconds": forward, "backward_seconds": 2 * forward,
                 "saved_bytes": saved_bytes, "workspace_bytes": 0, "parameters": [i]}
                for i in range(ops)],
        "values": [{"id": i, "bytes": value_bytes, "batch": True, "gradient": i > 0}
                   for i in range(ops + 1)],
        "parameters": [{"id": i, "name": f"w{i}", "bytes": parameter_bytes} for i in range(ops)],
        "inputs": [0], "outputs": [ops]}


class Plan(Case):
    def setUp(self):
        super().setUp()
        self.write(chain())

    def write(self, graph):
        (self.path / "graph.json").write_text(json.dumps(graph))

    def plan(self, *arguments):
        return self.run_json("plan", "--graph", "graph.json", "--cluster", "mn1", *arguments)

    def test_the_json_has_the_fields_that_scripts_read(self):
        plan = self.plan("--devices", 4, "--batch", 32)
        self.assertEqual(plan["command"], "plan")
        self.assertEqual(plan["batch"], 32)
        self.assertEqual(len(plan["predicted"]["memory_bytes"]), plan["ranks"])
        self.assertAlmostEqual(plan["predicted"]["samples_per_second"],
                               32 / plan["predicted"]["step_seconds"])
        self.assertLessEqual(plan["lower_bound_seconds"], plan["predicted"]["step_seconds"])
        self.assertGreaterEqual(plan["search_seconds"], 0)
        for alternative in plan["rejected"]:
            self.assertTrue(alternative["plan"] and alternative["reason"])

    def test_what_is_forced_is_taken(self):
        plan = self.plan("--devices", 4, "--batch", 32, "--stages", 4, "--schedule", "1f1b",
                         "--micro-batches", 8, "-o", "plan.json", "--draw", "drawn")
        self.assertEqual((plan["kind"], plan["stages"], plan["schedule"], plan["micro_batches"]),
                         ("pipeline", 4, "1f1b", 8))
        written = json.loads((self.path / "plan.json").read_text())
        self.assertEqual(written["version"], 1)
        self.assertEqual([op for stage in written["stage_list"] for op in stage["ops"]],
                         list(range(8)))
        # Equal layers on equal devices: two for each, and the bubble of theory.
        self.assertEqual([len(stage["ops"]) for stage in written["stage_list"]], [2, 2, 2, 2])
        self.assertAlmostEqual(plan["predicted"]["bubble"], 3 / 11, places=2)
        for name in ("drawn.graph.svg", "drawn.schedule.svg"):
            self.assertTrue(xml.parse(self.path / name).getroot().tag.endswith("svg"))

    def test_a_model_that_fits_no_device_is_split(self):
        self.write(chain(parameter_bytes=100 << 20))
        plan = self.plan("--devices", 4, "--batch", 32, "--memory", "1GiB")
        self.assertGreater(plan["stages"], 1)
        self.assertLess(max(plan["predicted"]["memory_bytes"]), 1 << 30)
        self.assertTrue(any("memory" in other["reason"] for other in plan["rejected"]))

    def test_when_nothing_fits_the_error_says_what_would(self):
        self.write(chain(parameter_bytes=100 << 20))
        done = self.assert_fails(5, "no plan fits 2 devices with 512 MiB", "would fit: --memory",
                                 "plan", "--graph", "graph.json", "--cluster", "mn1", "--quiet",
                                 "--devices", 2, "--batch", 32, "--memory", "512MiB")
        remedy = done.stderr.split("--memory ")[1].split(",")[0].strip()
        self.assertEqual(self.plan("--devices", 2, "--batch", 32, "--memory", remedy)["devices"], 2)

    def test_the_table_names_stages_and_what_lost(self):
        done = self.run_renkei("plan", "--graph", "graph.json", "--cluster", "flow-type2",
                               "--devices", 2, "--quiet")
        self.assertEqual(done.returncode, 0, done.stderr)
        for part in ("layer0", "layer7", "samples/s", "considered and not taken"):
            self.assertIn(part, done.stdout)

    def test_a_graph_that_costs_nothing_is_planned(self):
        self.write(chain(forward=0, parameter_bytes=0, saved_bytes=0, value_bytes=0))
        self.assertEqual(self.plan("--devices", 2)["predicted"]["step_seconds"], 0)

    def test_estimates_are_called_estimates(self):
        plan = self.run_json("plan", "--model", "bert", "--set", "model.layers=4",
                             "--set", "model.hidden=256", "--cluster", "mn1", "--devices", 2,
                             "--save-graph", "bert.json")
        self.assertEqual(plan["costs"], "estimated")
        again = self.run_json("plan", "--graph", "bert.json", "--cluster", "mn1", "--devices", 2,
                              "--batch", plan["batch"])
        self.assertEqual(again["predicted"], plan["predicted"])

    def test_every_network_is_planned_by_its_name(self):
        for row in self.run_json("model", "list")["rows"]:
            plan = self.run_json("plan", "--model", row["model"], "--cluster", "mn1", "--devices", 2,
                                 "--stages", 2, "--save-graph", "network.json", "--time-limit", "5s")
            self.assertEqual(plan["stages"], 2, row)
            graph = json.loads((self.path / "network.json").read_text())
            shown = self.run_json("model", "show", row["model"])
            parameters = sum(p["bytes"] // 4 for p in graph["parameters"] if p.get("trainable", True))
            self.assertEqual(parameters, shown["parameters"], row)
            self.assertGreaterEqual(sum(op["flops"] for op in graph["ops"]), shown["flops"], row)

    def test_a_network_of_175_billion_parameters_is_planned(self):
        plan = self.run_json("plan", "--model", "gpt", "--set", "model.layers=96", "--set", "model.hidden=12288",
                             "--set", "model.heads=96", "--set", "model.sequence=2048",
                             "--set", "plan.optimizer_state=2", "--cluster", "flow-type2", "--devices", 512,
                             "--batch", 512, "--save-graph", "gpt3.json", timeout=600)
        self.assertGreater(plan["stages"], 1)
        graph = json.loads((self.path / "gpt3.json").read_text())
        self.assertAlmostEqual(sum(p["bytes"] for p in graph["parameters"]) / 4 / 175e9, 1, delta=0.01)

    def test_this_machine_is_measured(self):
        self.assertEqual(self.run_json("plan", "--graph", "graph.json", "-n", 3)["devices"], 3)

    def test_bad_input_gets_a_sentence(self):
        flags = ("plan", "--graph", "graph.json", "--cluster", "mn1", "--quiet")
        self.assert_fails(2, "there is no cluster 'mn2'", "local, flow-type2, mn1, tsubame3",
                          "plan", "--graph", "graph.json", "--cluster", "mn2")
        self.assert_fails(2, "mn1 has 1024 devices, not 2000", "--devices", *flags, "--devices", 2000)
        self.assert_fails(2, "can't be divided into 3 micro-batches", "divides the batch", *flags,
                          "--devices", 2, "--batch", 8, "--micro-batches", 3)
        self.assert_fails(2, "there is no layout with these stages", "leave --stages", *flags,
                          "--devices", 2, "--batch", 8, "--stages", 2, "--schedule", "accumulate")
        self.assert_fails(2, "give either --graph FILE.json or --model NAME|FILE.pt2", "bert", "plan")
        self.assert_fails(2, "'brt' is not a valid value of model.name", "did you mean bert?", "plan", "--model", "brt")
        self.assert_fails(2, "renkei plan has no --dimension any more", "--set model.layers=96",
                          "plan", "--model", "bert", "--dimension", "layers=4")
        self.assert_fails(2, "renkei plan has no --capture any more", "leave it out",
                          "plan", "--model", "bert", "--capture")
        for words in (("--tensor", 4), ("--shard", "w:0=model")):
            self.assert_fails(2, "layers can't be divided where nothing is known of them", "name the model",
                              *flags, *words, "--devices", 4, "--batch", 8)
        self.assert_fails(2, "each layer is computed by one rank", "add --tensor T", "plan", "--model", "mlp",
                          "--cluster", "mn1", "--devices", 4, "--tensor", 1, "--shard", "w:0=model", "--quiet")
        graph = chain()
        graph["ops"][2]["inputs"] = [8]
        self.write(graph)
        self.assert_fails(3, "cycle", "its own outputs", *flags)
        (self.path / "graph.json").write_text('{"version": 1, "ops": [')
        self.assert_fails(3, "graph.json line 1: this is not valid JSON", "cut off", *flags)


if __name__ == "__main__":
    unittest.main()
