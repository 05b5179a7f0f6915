"""A model that was trained comes out: predictions, and files for other programs, beside PyTorch."""

import json
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "src/capture"))

import numpy as np
import torch
from export_model import export_model, parse_input
from safetensors.torch import load_file, save_file
from torch import nn

from renkei import Case

SAMPLES, WORDS, TOKENS = 131, 20, 6


class Tied(nn.Module):
    """Tied weights, and running statistics: evaluation is another computation than training."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(WORDS, 8)
        self.norm = nn.BatchNorm1d(8)
        self.out = nn.Linear(8, WORDS, bias=False)
        self.out.weight = self.embed.weight

    def forward(self, ids: torch.Tensor) -> dict[str, torch.Tensor]:
        hidden = self.norm(self.embed(ids).mean(1))
        return {"out": self.out(hidden), "hidden": hidden}


class SavedModel(Case):
    """One training, which all tests use."""

    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        case = Case("run_renkei")
        case.setUp()
        cls.addClassCleanup(case.doCleanups)
        cls.case = case
        torch.manual_seed(3)
        export_model(Tied(), [parse_input(f"{TOKENS}<{WORDS}")], case.path / "net.pt2")
        numbers = np.random.default_rng(2)
        cls.ids = numbers.integers(0, WORDS, (SAMPLES, TOKENS))
        np.savez(case.path / "set.npz", x=cls.ids, y=numbers.integers(0, WORDS, SAMPLES))
        np.savez(case.path / "unlabelled.npz", x=cls.ids)
        case.run_json("train", "--model", "net.pt2", "--data", "set.npz", "--batch", 16, "--steps", 8, "-n", 2,
                      "--run-dir", "run", "--checkpoint-every", "3steps")  # fmt: skip
        cls.weights = load_file(case.path / "run/model.safetensors")
        cls.model = Tied()
        cls.model.load_state_dict(cls.weights, strict=True)
        cls.model.eval()
        with torch.no_grad():
            cls.expected = {name: value.numpy() for name, value in cls.model(torch.from_numpy(cls.ids)).items()}

    def setUp(self) -> None:
        self.path = self.case.path

    def assert_lines_are_right(self, text: str) -> None:
        rows = [json.loads(line) for line in text.splitlines()]
        self.assertEqual([row["sample"] for row in rows], list(range(SAMPLES)))
        for name, expected in self.expected.items():
            np.testing.assert_allclose([row[name] for row in rows], expected, rtol=1e-5, atol=1e-6)

    def test_predictions_come_in_the_order_of_the_samples_on_any_ranks(self) -> None:
        for ranks in (1, 3):
            done = self.run_renkei("predict", "run", "--data", "unlabelled.npz", "-n", ranks)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assert_lines_are_right(done.stdout)
        told = self.run_json("predict", "run", "-n", 2, "-o", "out.npy")
        self.assertEqual(told["samples"], SAMPLES)
        rows = np.load(self.path / "out.npy")
        np.testing.assert_allclose(rows, self.expected["out"], rtol=1e-5, atol=1e-6)
        self.run_json("predict", "run", "--top", 3, "-o", "top.jsonl")
        best = [json.loads(line)["classes"] for line in (self.path / "top.jsonl").read_text().splitlines()]
        np.testing.assert_array_equal(best, np.argsort(-rows, axis=1, kind="stable")[:, :3])

    def test_a_single_sample_on_a_rank_is_no_batch_to_normalise_by(self) -> None:
        # 131 samples leave 3 for the last step, 2 and 1 on two ranks: as PyTorch, but before the first step.
        self.assert_fails(2, "more than one value of a channel", "choose a batch", "train", "--model", "net.pt2", "--data",
                          "set.npz", "--batch", 16, "--epochs", 1, "-n", 2, "--run-dir", "single", "--quiet")  # fmt: skip

    def test_predictions_that_can_not_be_made_are_refused(self) -> None:
        for code, message, hint, *words in (
            (2, "--top 21", "smaller number", "run", "--top", 21),
            (2, "out.txt does not say what to write", ".npy", "run", "-o", "out.txt"),
            (2, "--json needs a file", "-o FILE.jsonl", "run", "--json"),
            (2, "no held-out part", "--part", "run", "--part", "held-out"),
            (2, "there are no weights", "model.weights", "--model", "mlp"),
        ):
            with self.subTest(words=words):
                done = self.run_renkei("predict", *words)
                self.assertEqual(done.returncode, code, done.stderr)
                self.assertIn(message, done.stderr + done.stdout)
                self.assertIn(hint, done.stderr + done.stdout)

    def test_a_run_that_did_not_end_predicts_from_its_newest_checkpoint(self) -> None:
        words = ("--model", "net.pt2", "--data", "set.npz", "--batch", 16, "--steps", 7, "-n", 2, "--quiet")
        done = self.run_renkei("train", *words, "--run-dir", "killed", "--checkpoint-every", "3steps", "--set",
                               "fault.kill=rank=0,step=6")  # fmt: skip
        self.assertEqual(done.returncode, 4, done.stderr)
        self.run_json("train", *words[:-5], "--steps", 3, "-n", 2, "--run-dir", "short")
        # Batch norm's statistics differ between the replicas, and become their mean.
        for name in ("killed", "short"):
            self.run_json("predict", name, "-o", f"{name}.npy")
        np.testing.assert_allclose(np.load(self.path / "killed.npy"), np.load(self.path / "short.npy"), rtol=1e-5,
                                   atol=1e-6)  # fmt: skip
        done = self.run_renkei("model", "export", "killed", "-o", "killed.safetensors")
        self.assertEqual(done.returncode, 0, done.stderr)
        torch.testing.assert_close(load_file(self.path / "killed.safetensors"),
                                   load_file(self.path / "short/model.safetensors"))  # fmt: skip

    def test_exported_files_are_read_by_pytorch(self) -> None:
        for name in ("out.pt", "out.safetensors", "out.pt2"):
            done = self.run_renkei("model", "export", "run", "-o", name)
            self.assertEqual(done.returncode, 0, done.stderr)
        for state in (torch.load(self.path / "out.pt", weights_only=True),
                      torch.load(self.path / "out.pt", weights_only=True, mmap=True),
                      load_file(self.path / "out.safetensors")):  # fmt: skip
            self.assertEqual(sorted(state), sorted(self.model.state_dict()))
            Tied().load_state_dict(state, strict=True)
            torch.testing.assert_close(dict(state), self.weights, rtol=0, atol=0)
        program = torch.export.load(self.path / "out.pt2")
        for name, value in program.state_dict.items():
            torch.testing.assert_close(value.detach(), self.weights[name], rtol=0, atol=0)
        done = self.run_renkei("predict", "--model", "out.pt2", "--data", "unlabelled.npz")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assert_lines_are_right(done.stdout)

    def test_imported_files_are_those_of_pytorch(self) -> None:
        torch.save(self.model.state_dict(), self.path / "in.pth")
        # safetensors has each memory once: a tied weight comes under one name.
        save_file({name: value for name, value in self.weights.items() if name != "out.weight"},
                  self.path / "in.safetensors")  # fmt: skip
        for name in ("in.pth", "in.safetensors"):
            told = self.run_json("model", "import", name, "--model", "net.pt2", "-o", "imported.safetensors")
            self.assertEqual(told["tensors"], len(self.weights))
            torch.testing.assert_close(load_file(self.path / "imported.safetensors"), self.weights, rtol=0, atol=0)
        done = self.run_renkei("predict", "--model", "net.pt2", "--data", "set.npz", "--set",
                               "model.weights=imported.safetensors")  # fmt: skip
        self.assert_lines_are_right(done.stdout)

    def test_weights_of_another_network_are_neither_imported_nor_exported(self) -> None:
        torch.save(nn.Linear(3, 4).state_dict(), self.path / "other.pt")
        self.assert_fails(3, "does not fit the network: it has no embed.weight", "model.name", "model", "import",
                          "other.pt", "--model", "net.pt2", "-o", "no.safetensors")  # fmt: skip
        self.assert_fails(3, "does not fit the network", "model.name", "model", "export", "other.pt", "-o", "no.pt2",
                          "--network", "net.pt2")  # fmt: skip
        self.assert_fails(2, "only weights", "--network", "model", "export", "other.pt", "-o", "no.pt2")
        self.assert_fails(2, "does not say what to write", ".safetensors", "model", "export", "other.pt", "-o", "no.h5")
        self.assert_fails(3, "which is code", "state_dict", *self.pickled())
        self.assertFalse(list(self.path.glob("no.*")))

    def pickled(self) -> tuple[str, ...]:
        torch.save(nn.Linear(1, 1), self.path / "code.pt")
        return "model", "import", "code.pt", "-o", "no.safetensors"


if __name__ == "__main__":
    unittest.main(verbosity=2)
