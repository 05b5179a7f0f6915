"""torch.compile(model, backend="renkei"): equal to eager, forward and backward, buffers and random numbers."""

import copy
import pathlib
import sys
import warnings
from collections.abc import Callable

import pytest
import torch

import renkei
import renkei.dynamo

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "support"))
import torchvision_ops  # noqa: F401, I001  # before torchvision
from kinks import tame


def resnet() -> tuple[torch.nn.Module, tuple[torch.Tensor, ...]]:
    import torchvision

    return tame(torchvision.models.resnet18(num_classes=10)), (torch.randn(2, 3, 64, 64),)


def vit() -> tuple[torch.nn.Module, tuple[torch.Tensor, ...]]:
    import torchvision

    model = torchvision.models.VisionTransformer(32, 8, 2, 2, 32, 64, dropout=0.1, num_classes=10)
    torch.nn.init.normal_(model.heads.head.weight, std=0.1)
    return model, (torch.randn(2, 3, 32, 32),)


def gpt2() -> tuple[torch.nn.Module, tuple[torch.Tensor, ...]]:
    import transformers

    config = transformers.GPT2Config(n_layer=2, n_head=2, n_embd=32, vocab_size=97, n_positions=16, use_cache=False)
    return transformers.GPT2LMHeadModel(config), (torch.randint(97, (2, 16)),)


def bert() -> tuple[torch.nn.Module, tuple[torch.Tensor, ...]]:
    import transformers

    config = transformers.BertConfig(num_hidden_layers=2, hidden_size=32, num_attention_heads=2, intermediate_size=64,
                                     vocab_size=97, max_position_embeddings=16)
    return transformers.BertForSequenceClassification(config), (torch.randint(97, (2, 16)),)


def step(model: torch.nn.Module, inputs: tuple[torch.Tensor, ...]) -> list[torch.Tensor]:
    """Output, gradients and buffers after two steps with the same random numbers."""
    torch.manual_seed(11)
    model.train()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(2):
        optimizer.zero_grad()
        found = model(*inputs)
        output = found if isinstance(found, torch.Tensor) else found.logits
        output.square().mean().backward()
        optimizer.step()
    gradients = [p.grad for p in model.parameters() if p.grad is not None]
    return [output.detach(), *gradients, *model.buffers(), torch.get_rng_state()]


def compiled_step(model: torch.nn.Module, inputs: tuple[torch.Tensor, ...]) -> list[torch.Tensor]:
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message="renkei")  # every graph is taken
        return step(torch.compile(model, backend="renkei"), inputs)


@pytest.mark.parametrize("make", [vit, gpt2, bert])
def test_models_compute_and_learn_as_eager(make: Callable[[], tuple[torch.nn.Module, tuple[torch.Tensor, ...]]]) -> None:
    torch.manual_seed(1)
    model, inputs = make()
    wanted = step(copy.deepcopy(model), inputs)
    found = compiled_step(model, inputs)
    assert len(found) == len(wanted)
    for i, (a, b) in enumerate(zip(found, wanted, strict=True)):
        if not b.is_floating_point():
            assert torch.equal(a, b), i
            continue
        size = float(b.abs().max())
        assert torch.allclose(a, b, rtol=1e-3, atol=1e-4 * size + 1e-8), (i, (a - b).abs().max(), size)


def test_a_network_with_batch_norm_is_as_exact_as_eager() -> None:
    """Normalisation cancels most of a gradient, so that eager itself is some thousandths from the exact one."""
    torch.manual_seed(1)
    model, inputs = resnet()
    exact = step(copy.deepcopy(model).double(), tuple(t.double() for t in inputs))

    def error(found: list[torch.Tensor]) -> float:
        assert len(found) == len(exact)
        pairs = [(a, b) for a, b in zip(found, exact, strict=True) if b.dtype == torch.float64]
        return max(float((a - b).abs().max() / b.abs().max()) for a, b in pairs)

    eager = error(step(copy.deepcopy(model), inputs))
    assert error(compiled_step(model, inputs)) <= 4 * eager < 0.1


def test_the_kernels_are_used() -> None:
    taken = []
    made = renkei.dynamo._engine.CompiledGraph

    def remember(*arguments: object) -> object:
        taken.append(made(*arguments))
        return taken[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(renkei.dynamo._engine, "CompiledGraph", remember)
        model, inputs = resnet()
        torch.compiler.reset()  # nothing from other tests
        torch.compile(model, backend="renkei")(*inputs).sum().backward()
    operations = [name for graph in taken for name in graph.operations]
    assert len(taken) == 1 and operations.count("aten.conv2d.default") == 0, operations
    assert sum(name.startswith("renkei.conv") for name in operations) == 20


def test_evaluation_and_other_shapes_are_graphs_of_their_own() -> None:
    torch.manual_seed(2)
    model = torch.nn.Sequential(torch.nn.Conv2d(3, 16, 3), torch.nn.BatchNorm2d(16), torch.nn.ReLU(), torch.nn.Flatten())
    plain = copy.deepcopy(model)
    compiled = torch.compile(model, backend="renkei")
    for batch in (2, 3, 5, 4):
        x = torch.randn(batch, 3, 8, 8, requires_grad=True)
        y = x.detach().clone().requires_grad_()
        a, b = compiled(x), plain(y)
        a.sum().backward()
        b.sum().backward()
        assert torch.allclose(a, b, atol=1e-5) and torch.allclose(x.grad, y.grad, atol=1e-4), batch
    model.eval()
    plain.eval()
    with torch.no_grad():
        assert torch.allclose(compiled(x), plain(x), atol=1e-5)


def test_graph_breaks_stay_dynamos() -> None:
    class Branches(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(4, 4)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            x = self.layer(x)
            return self.layer(x) if float(x.sum()) > 0 else -x

    model = Branches()
    compiled = torch.compile(model, backend="renkei")
    for _ in range(4):
        x = torch.randn(2, 4)
        assert torch.allclose(compiled(x), model(x), atol=1e-6)


def test_a_graph_that_can_not_be_taken_runs_as_it_is_with_one_warning() -> None:
    class Changes(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            x.add_(1)
            return x * 2

    compiled = torch.compile(Changes(), backend="renkei")
    with pytest.warns(UserWarning, match="runs as it is.*changes its inputs"):
        x = torch.zeros(2)
        assert torch.equal(compiled(x), torch.full((2,), 2.0)) and torch.equal(x, torch.ones(2))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        compiled(torch.zeros(2))


def test_settings_reach_the_kernels() -> None:
    model = torch.nn.Conv2d(16, 16, 3)
    x = torch.randn(1, 16, 8, 8)
    compiled = torch.compile(model, backend="renkei", options={"compute.blocked_layout": False})
    assert torch.allclose(compiled(x), model(x), atol=1e-5)
