"""The networks that are not torchvision's, and the losses, against modules of PyTorch: same operations as
torch.export gives, same numbers as eager."""

import unittest

import torch
from programs import drive, run, steps_of_module, steps_of_program
from torch import nn
from torch.nn import functional

HIDDEN, LAYERS, HEADS, SEQUENCE, VOCABULARY = 16, 2, 4, 6, 11
SMALL = [f"model.hidden={HIDDEN}", f"model.layers={LAYERS}", f"model.heads={HEADS}",
         f"model.sequence={SEQUENCE}", f"model.vocabulary={VOCABULARY}"]


class Block(nn.Module):
    def __init__(self, dropout, causal, pre_norm):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(HIDDEN), nn.LayerNorm(HIDDEN)
        self.qkv, self.out = nn.Linear(HIDDEN, 3 * HIDDEN), nn.Linear(HIDDEN, HIDDEN)
        self.up, self.down = nn.Linear(HIDDEN, 4 * HIDDEN), nn.Linear(4 * HIDDEN, HIDDEN)
        self.dropout, self.causal, self.pre_norm = dropout, causal, pre_norm

    def attention(self, x):
        query, key, value = (part.view(-1, SEQUENCE, HEADS, HIDDEN // HEADS).transpose(1, 2)
                             for part in self.qkv(x).split(HIDDEN, dim=2))
        x = functional.scaled_dot_product_attention(
            query, key, value, dropout_p=self.dropout if self.training else 0, is_causal=self.causal)
        x = self.out(x.transpose(1, 2).reshape(-1, SEQUENCE, HIDDEN))
        return functional.dropout(x, self.dropout, self.training)

    def perceptron(self, x):
        return functional.dropout(self.down(functional.gelu(self.up(x))), self.dropout, self.training)

    def forward(self, x):
        if self.pre_norm:
            x = x + self.attention(self.norm1(x))
            return x + self.perceptron(self.norm2(x))
        x = self.norm1(x + self.attention(x))
        return self.norm2(x + self.perceptron(x))


class Gpt(nn.Module):
    def __init__(self, dropout=0.1, tied=True):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(VOCABULARY, HIDDEN), nn.Embedding(SEQUENCE, HIDDEN)
        self.blocks = nn.ModuleList(Block(dropout, True, True) for _ in range(LAYERS))
        self.norm, self.head = nn.LayerNorm(HIDDEN), nn.Linear(HIDDEN, VOCABULARY, bias=False)
        if tied:
            self.head.weight = self.tokens.weight
        self.dropout = dropout

    def forward(self, input):
        x = self.tokens(input) + self.positions.weight
        x = functional.dropout(x, self.dropout, self.training)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x)).transpose(1, 2)


class Bert(nn.Module):
    def __init__(self, dropout=0.1, tied=True):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(VOCABULARY, HIDDEN), nn.Embedding(SEQUENCE, HIDDEN)
        self.norm, self.dense_norm = nn.LayerNorm(HIDDEN), nn.LayerNorm(HIDDEN)
        self.blocks = nn.ModuleList(Block(dropout, False, False) for _ in range(LAYERS))
        self.dense = nn.Linear(HIDDEN, HIDDEN)
        self.head_bias = nn.Parameter(torch.zeros(VOCABULARY))
        self.head_weight = self.tokens.weight if tied else nn.Parameter(torch.randn(VOCABULARY, HIDDEN))
        self.dropout = dropout

    def forward(self, input):
        x = self.norm(self.tokens(input) + self.positions.weight)
        x = functional.dropout(x, self.dropout, self.training)
        for block in self.blocks:
            x = block(x)
        x = self.dense_norm(functional.gelu(self.dense(x)))
        return functional.linear(x, self.head_weight, self.head_bias).transpose(1, 2)


class LeNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(3, 16, 5), nn.Conv2d(16, 32, 5)
        self.fc1, self.fc2, self.fc3 = nn.Linear(800, 120), nn.Linear(120, 84), nn.Linear(84, 10)

    def forward(self, input):
        x = functional.max_pool2d(functional.relu(self.conv1(input)), 2, 2)
        x = functional.max_pool2d(functional.relu(self.conv2(x)), 2, 2)
        x = functional.relu(self.fc1(x.flatten(1)))
        return self.fc3(functional.relu(self.fc2(x)))


class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer0, self.layer1 = nn.Linear(HIDDEN, HIDDEN), nn.Linear(HIDDEN, HIDDEN)

    def forward(self, input):
        return self.layer1(functional.relu(self.layer0(input)))


def ids(samples):
    return torch.randint(0, VOCABULARY, (samples, SEQUENCE))


def mean_over_positions(scores, labels, smoothing=0.0):
    """Per sample, by plain loops."""
    total = torch.zeros(())
    for sample_scores, sample_labels in zip(scores.flatten(2), labels.flatten(1), strict=True):
        kept = sample_labels != -100
        if kept.any():
            total = total + functional.cross_entropy(sample_scores.T[kept], sample_labels[kept],
                                                     label_smoothing=smoothing)
    return total


class Networks(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(1)

    def values(self, module, **inputs):
        return module.state_dict(keep_vars=True) | inputs

    def assert_same_steps(self, module, given, *settings):
        program = drive("network", *settings)
        aliases = {alias: state["name"] for state in program["state"] for alias in state.get("aliases", [])}
        theirs = steps_of_module(module, given, aliases=aliases)
        for our_step, their_step in zip(steps_of_program(program), theirs, strict=True):
            self.assertEqual(our_step, their_step)
        self.assertEqual({state["name"] for state in program["state"]} | set(aliases), set(module.state_dict()))

    def test_operations_of_mlp_and_lenet_are_those_of_torch_export(self):
        self.assert_same_steps(Mlp(), torch.zeros(2, HIDDEN), "model.name=mlp", f"model.hidden={HIDDEN}",
                               "model.layers=2")
        self.assert_same_steps(LeNet(), torch.zeros(2, 3, 32, 32), "model.name=lenet")

    def test_operations_of_transformers_are_those_of_torch_export(self):
        for name, kind in (("gpt", Gpt), ("bert", Bert)):
            for tied in (True, False):
                with self.subTest(name, tied=tied):
                    self.assert_same_steps(kind(tied=tied), ids(2), f"model.name={name}",
                                           f"model.tied={str(tied).lower()}", *SMALL)

    def test_transformers_compute_and_learn_as_eager(self):
        for name, kind in (("gpt", Gpt), ("bert", Bert)):
            module, given = kind(dropout=0), ids(3)
            labels = torch.randint(0, VOCABULARY, (3, SEQUENCE))
            labels[0, 2], labels[2] = -100, -100
            program = drive("training", "cross_entropy", str(SEQUENCE), f"model.name={name}",
                            "model.dropout=0", *SMALL)
            ours = run(program, self.values(module, input=given, target=labels))["loss"]
            theirs = mean_over_positions(module(given), labels)
            torch.testing.assert_close(ours, theirs)
            gradients = [torch.autograd.grad(loss, list(module.parameters())) for loss in (ours, theirs)]
            torch.testing.assert_close(*gradients)

    def test_gpt_sees_only_what_came_before(self):
        module = Gpt(dropout=0)
        program = drive("network", "model.name=gpt", "model.dropout=0", *SMALL)
        first = ids(1)
        second = first.clone()
        second[0, 5] = (second[0, 5] + 1) % VOCABULARY
        before, after = (run(program, self.values(module, input=given))["output"] for given in (first, second))
        self.assertTrue(torch.equal(before[..., :5], after[..., :5]))
        self.assertFalse(torch.allclose(before[..., 5], after[..., 5]))


class Losses(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(1)
        self.module = LeNet()
        self.given = torch.randn(5, 3, 32, 32)

    def loss(self, kind, objective, target, values, *settings):
        word = "label" if values.dtype == torch.int64 else str(target)
        program = drive(kind, objective, word, *settings)
        return run(program, self.module.state_dict() | {"input": self.given, "target": values})

    def test_classification_is_the_sum_of_cross_entropies(self):
        labels = torch.tensor([1, 9, -100, 3, 3])
        for objective, smoothing in (("cross_entropy", 0.0), ("label_smoothing", 0.1)):
            ours = self.loss("training", objective, 1, labels, "model.name=lenet")["loss"]
            theirs = functional.cross_entropy(self.module(self.given), labels, reduction="sum",
                                              label_smoothing=smoothing)
            torch.testing.assert_close(ours, theirs)

    def test_evaluation_counts_what_is_right(self):
        labels = self.module(self.given).argmax(1)
        labels[3] = (labels[3] + 1) % 10
        ours = self.loss("evaluation", "cross_entropy", 1, labels, "model.name=lenet")
        self.assertEqual(ours["correct"].item(), 4)
        theirs = functional.cross_entropy(self.module(self.given), labels, reduction="sum")
        torch.testing.assert_close(ours["loss"], theirs)

    def test_regression_is_the_sum_of_mean_squares(self):
        target = torch.randn(5, 10)
        ours = self.loss("training", "mse", 10, target, "model.name=lenet")["loss"]
        torch.testing.assert_close(ours, (self.module(self.given) - target).square().mean(1).sum())
        self.assertEqual(list(self.loss("evaluation", "mse", 10, target, "model.name=lenet")), ["loss"])

    def test_labels_of_positions_may_be_smoothed(self):
        module, given = Gpt(dropout=0), ids(2)
        labels = torch.randint(0, VOCABULARY, (2, SEQUENCE))
        labels[1, 4:] = -100
        program = drive("training", "label_smoothing", str(SEQUENCE), "model.name=gpt", "model.dropout=0", *SMALL)
        ours = run(program, module.state_dict() | {"input": given, "target": labels})["loss"]
        torch.testing.assert_close(ours, mean_over_positions(module(given), labels, smoothing=0.1))


if __name__ == "__main__":
    unittest.main(verbosity=2)
