import unittest

from renkei import Case


class BenchCompute(Case):
    def test_every_layer_has_a_time_and_products_have_a_rate(self):
        row, = self.run_json("bench", "compute", "--model", "lenet", "--batch", 8, "--steps", 3,
                             "--set", "run.threads=1")["rows"]
        self.assertEqual((row["model"], row["batch"], row["threads"]), ("lenet", 8, 1))
        self.assertAlmostEqual(row["samples_per_second"] * row["step_seconds"], 8)
        self.assertAlmostEqual(row["gflops"] / row["peak_gflops"], row["peak_fraction"])
        # Two convolutions and three products of matrices, and no other op, have products to count.
        counted = [layer["kind"] for layer in row["layers"] if layer["gflops"] > 0]
        self.assertEqual(counted, ["conv"] * 2 + ["linear"] * 3)
        for layer in row["layers"]:
            self.assertGreaterEqual(layer["forward_seconds"], 0)
        # Forward, and backward to parameters and, but for the first layer, to inputs.
        conv1, conv2, dense = 28 * 28 * 16 * 75, 10 * 10 * 32 * 400, 800 * 120 + 120 * 84 + 84 * 10
        work = 2 * 8 * (2 * conv1 + 3 * conv2 + 3 * dense)
        self.assertAlmostEqual(row["gflops"] * 1e9 * row["step_seconds"] / work, 1, places=3)

    def test_the_table_names_the_slowest_layers(self):
        done = self.run_renkei("bench", "compute", "--model", "lenet", "--batch", 8, "--top", 2, "--quiet")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("of a matrix product of 1024 x 1024", done.stdout)
        self.assertRegex(done.stdout, "conv2 +conv ")

    def test_what_makes_no_sense_is_refused(self):
        self.assert_fails(2, "bench compute measures one rank", "run.threads", "bench", "compute", "-n", 2)
        self.assert_fails(2, "'resnet5' is not a valid value", "did you mean resnet50", "bench",
                          "compute", "--model", "resnet5")


if __name__ == "__main__":
    unittest.main()
