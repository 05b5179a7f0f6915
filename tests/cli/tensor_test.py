"""Layers that ranks compute together: the weights of VGG, whose large layers are what this is for, are those of one rank."""

import unittest

from safetensors.torch import load_file

from renkei import Case


class Tensor(Case):
    def train(self, parts: int) -> dict:
        self.run_json("train", "--model", "vgg11", "--set", "model.image_size=32", "--data", "random", "--batch", 8,
                      "--steps", 2, "-n", parts, "--set", f"plan.tensor={parts}", "--run-dir", f"run{parts}",
                      "--threads", 1)  # fmt: skip
        return load_file(self.path / f"run{parts}/model.safetensors")

    def test_two_and_four_ranks_train_vgg_as_one(self) -> None:
        alone = self.train(1)
        for parts in (2, 4):
            together = self.train(parts)
            self.assertEqual(together.keys(), alone.keys())
            for name, value in alone.items():
                difference = (together[name] - value).abs().max() / value.abs().max()
                self.assertLess(float(difference), 2e-5, f"{name} on {parts} ranks")

    def test_what_can_not_be_divided_is_refused(self) -> None:
        words = ("train", "--model", "mlp", "--data", "random", "--steps", 1, "-n", 2, "--quiet")
        self.assert_fails(2, "each layer is computed by one rank", "add --tensor T", *words, "--shard", "w:0=model")
        # Three ranks can't divide 64, nor 512.
        self.assert_fails(2, "no operation of the network can be divided", "another number for plan.tensor", *words[:-3],
                          "-n", 3, "--tensor", 3, "--set", "model.hidden=64", "--batch", 4, "--quiet")  # fmt: skip


if __name__ == "__main__":
    unittest.main()
