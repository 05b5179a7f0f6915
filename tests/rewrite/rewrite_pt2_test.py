"""Networks of torchvision, exported for training, are rewritten to the fused form of the built-in ones: in blocked
layout from end to end, with conversions where the layout really ends only."""

import json
import os
import subprocess
import sys
import tempfile
import unittest
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

import torchvision_ops  # noqa: F401, I001  (before torchvision)
import torch
import torchvision

DRIVER = os.environ["RENKEI_REWRITE_DRIVER"]


class Flat(torch.nn.Module):
    """The outputs as a plain tuple: a file cannot name Inception's own kind."""

    def __init__(self, model: torch.nn.Module):
        super().__init__()
        self.model = model

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        outputs = self.model(x)
        return (outputs,) if isinstance(outputs, torch.Tensor) else tuple(outputs)


def rewritten(name: str, *options: str) -> dict:
    """What the driver says about the network: `targets` counts operations, `applied` lists rewrites."""
    pixels = 299 if name == "inception_v3" else 224
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with torch.device("meta"):  # values do not matter here
            model = Flat(getattr(torchvision.models, name)())
            picture = torch.empty(4, 3, pixels, pixels)
        batch = {0: torch.export.Dim.AUTO}
        exported = torch.export.export(model.train(), (picture,), dynamic_shapes=(batch,), strict=False)
        path = str(Path(folder) / f"{name}.pt2")
        torch.export.save(exported, path)
        answer = subprocess.run([DRIVER, *options, path], check=True, capture_output=True, text=True)
    return json.loads(answer.stdout)


def refused(result: dict) -> list[str]:
    return [f"{a['rewrite']} {a['where']}: {a['why_not']}" for a in result["applied"] if a["why_not"]]


class RewritePt2Test(unittest.TestCase):
    def test_resnet50_is_what_the_built_in_one_is(self):
        result = rewritten("resnet50")
        self.assertEqual(
            result["targets"],
            {
                "renkei.conv.default": 53,
                "renkei.batch_norm.default": 53,
                "renkei.pool.default": 1,
                "aten.mean.dim": 1,
                "aten.flatten.using_ints": 1,
                "renkei.linear.default": 1,
            },
        )
        self.assertEqual(refused(result), [])

    def test_vgg16_leaves_the_blocked_layout_once(self):
        self.assertEqual(
            rewritten("vgg16")["targets"],
            {
                "renkei.conv.default": 13,
                "renkei.pool.default": 5,
                "renkei.to_plain.default": 1,
                "aten.flatten.using_ints": 1,
                "renkei.linear.default": 3,
                "aten.dropout.default": 2,
            },
        )

    def test_inception_v3_stays_blocked_through_its_branches(self):
        result = rewritten("inception_v3")
        self.assertEqual(
            result["targets"],
            {
                "renkei.conv.default": 96,
                "renkei.batch_norm.default": 96,
                "renkei.pool.default": 14,
                "aten.cat.default": 15,
                "aten.mean.dim": 1,
                "aten.dropout.default": 1,
                "aten.flatten.using_ints": 2,
                "renkei.linear.default": 2,
            },
        )
        self.assertEqual(refused(result), [])

    def test_densenet121_puts_channels_together_in_blocks(self):
        self.assertEqual(
            rewritten("densenet121")["targets"],
            {
                "renkei.conv.default": 120,
                "renkei.batch_norm.default": 121,
                "renkei.pool.default": 4,
                "aten.cat.default": 58,
                "aten.mean.dim": 1,
                "aten.flatten.using_ints": 1,
                "renkei.linear.default": 1,
            },
        )

    def test_mobilenet_v2_is_blocked_too(self):
        result = rewritten("mobilenet_v2")
        self.assertEqual(
            result["targets"],
            {
                "renkei.conv.default": 35,
                "renkei.conv.general": 17,
                "renkei.batch_norm.default": 52,
                "aten.hardtanh.default": 35,
                "aten.mean.dim": 1,
                "aten.flatten.using_ints": 1,
                "aten.dropout.default": 1,
                "renkei.linear.default": 1,
            },
        )
        self.assertEqual(refused(result), [])

    def test_efficientnet_b0_is_blocked_too(self):
        targets = rewritten("efficientnet_b0")["targets"]
        for target, number in {
            "renkei.conv.default": 43,
            "renkei.conv.general": 16,
            "renkei.batch_norm.default": 49,
            "aten.conv2d.default": 22,  # squeeze and excitation, by channels that fill no blocks
            "renkei.to_plain.default": 0,
            "renkei.to_blocked.default": 0,
        }.items():
            self.assertEqual(targets.get(target, 0), number, target)

    def test_without_general_convolutions_depthwise_convolutions_are_torchs(self):
        result = rewritten("mobilenet_v2", "--simple")
        self.assertEqual(result["targets"]["aten.conv2d.default"], 17)
        self.assertTrue(all("groups" in why for why in refused(result) if "convolution" in why))


if __name__ == "__main__":
    unittest.main()
