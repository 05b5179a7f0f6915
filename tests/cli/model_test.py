"""Networks by name: what is shown of them, training on random data, weights in and out."""

import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "src/capture"))

import torchvision_ops  # noqa: F401, I001  (before torchvision)
import torch
import torchvision
from export_model import export_model, parse_input
from safetensors.torch import load_file

import renkei


class Models(renkei.Case):
    def test_all_networks_are_listed(self):
        names = [row["model"] for row in self.run_json("model", "list")["rows"]]
        for name in ("mlp", "alexnet", "vgg16_bn", "resnet152", "inception_v3", "gpt", "bert"):
            self.assertIn(name, names)

    def test_a_network_is_shown_layer_by_layer(self):
        shown = self.run_json("model", "show", "alexnet")
        self.assertEqual(shown["parameters"], 61_100_840)
        self.assertEqual(sum(row["parameters"] for row in shown["rows"]), 61_100_840)
        first = shown["rows"][0]
        self.assertEqual((first["name"], first["output_shape"]), ("features.0", [64, 55, 55]))
        self.assertEqual(first["flops"], 2 * 64 * 55 * 55 * 3 * 11 * 11)
        self.assertAlmostEqual(shown["flops"] / 2 / 0.714e9, 1, delta=0.01)

    def test_a_file_is_shown_too(self):
        export_model(torch.nn.Linear(7, 4), [parse_input("7")], self.path / "small.pt2")
        done = self.run_renkei("model", "show", "small.pt2")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("small, input 7: 32 parameters", done.stdout)

    def test_an_unknown_network_gets_the_nearest_name(self):
        self.assert_fails(2, "'resnet51' is not a valid value", "did you mean resnet50?", "model",
                          "show", "resnet51")

    def test_language_models_learn_from_random_tokens(self):
        for name in ("gpt", "bert"):
            for tied in ("true", "false"):
                with self.subTest(name, tied=tied):
                    settings = [word for setting in (
                        "model.hidden=32", "model.heads=4", "model.layers=2", "model.sequence=12",
                        "model.vocabulary=23", f"model.tied={tied}", "model.dropout=0",
                        "data.samples=8", "train.lr=0.5") for word in ("--set", setting)]
                    result = self.run_json("train", "--model", name, "--data", "random", "--batch",
                                           8, "--epochs", 60, "--threads", 1, *settings)
                    self.assertAlmostEqual(result["loss"]["first"], 3.1, delta=0.4)  # log 23
                    self.assertLess(result["loss"]["last"], 2.9)

    def test_two_ranks_train_a_tied_model_as_one_does(self):
        settings = [word for setting in (
            "model.hidden=32", "model.heads=4", "model.layers=1", "model.sequence=12",
            "model.vocabulary=23", "model.dropout=0", "data.samples=16", "train.lr=0.5")
            for word in ("--set", setting)]
        losses = [self.run_json("train", "--model", "gpt", "--data", "random", "--batch", 8,
                                "--epochs", 3, "--threads", 1, "-n", ranks, *settings)["loss"]["last"]
                  for ranks in (1, 2)]
        self.assertAlmostEqual(losses[0] / losses[1], 1, delta=1e-5)

    def test_weights_go_to_python_and_come_back(self):
        train = ("train", "--model", "resnet18", "--data", "random", "--batch", 2, "--steps", 1,
                 "--set", "model.image_size=32", "--set", "model.classes=5", "--set",
                 "data.samples=2")
        first = self.run_json(*train, "--set", "train.save=true")
        weights = load_file(f"{first['run_dir']}/model.safetensors")
        model = torchvision.models.resnet18(num_classes=5)
        model.load_state_dict(weights)
        torch.save(dict(model.state_dict()), self.path / "again.pt")
        second = self.run_json(*train, "--set", "model.weights=again.pt", "--set", "train.lr=0")
        self.assertEqual(first["parameters_checksum"], second["parameters_checksum"])

    def test_weights_of_another_network_are_refused(self):
        torch.save(dict(torchvision.models.resnet18(num_classes=4).state_dict()),
                   self.path / "four.pt")
        self.assert_fails(3, "fc.weight is 4 × 512 in the file and 5 × 512 in the network", "model.classes",
                          "train", "--model", "resnet18", "--data", "random", "--batch", 2,
                          "--steps", 1, "--set", "model.classes=5", "--set",
                          "model.weights=four.pt")


if __name__ == "__main__":
    unittest.main()
