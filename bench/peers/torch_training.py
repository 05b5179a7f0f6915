"""Trains a network in PyTorch, for bench/training.py: prints the median seconds of a step as JSON.

Modes: eager, channels_last (images with the channels innermost in memory), compile (torch.compile),
compile+channels_last, and renkei (torch.compile with this backend).
With several ranks it is DistributedDataParallel over Gloo, whose ranks find each other
through a file in a directory that they share.
"""

import argparse
import contextlib
import json
import os
import statistics
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from networks import NETWORKS, input_specs, make_model, make_optimizer, require

torch = require("torch")

WARM_UP = 2
MOST_WARM_UP = 12


def make_step(name, options):
    """A function that does one step of training."""
    model = make_model(name)
    layout = torch.contiguous_format
    if "channels_last" in options.mode:
        layout = torch.channels_last
        model = model.to(memory_format=layout)
    optimizer = make_optimizer(name, model)
    if options.ranks > 1:
        torch.distributed.init_process_group("gloo", init_method=f"file://{options.meeting}/meeting",
                                             rank=options.rank, world_size=options.ranks)
        model = torch.nn.parallel.DistributedDataParallel(model, gradient_as_bucket_view=True)
    if "compile" in options.mode:
        model = torch.compile(model)
    if options.mode == "renkei":
        import renkei.dynamo  # noqa: F401  # registers it
        model = torch.compile(model, backend="renkei")
    network = NETWORKS[name]
    inputs = {spec.name: spec.sample(network.batch, torch.device("cpu")) for spec in input_specs(name)}
    forward = forward_of(network, model, inputs, layout)

    def precision():
        if options.precision == "bf16":
            return torch.autocast("cpu", dtype=torch.bfloat16)
        return contextlib.nullcontext()

    def step():
        # Bucket views stay: DDP would have to copy into them otherwise.
        optimizer.zero_grad(set_to_none=options.ranks == 1)
        with precision():
            loss = forward()
        loss.backward()
        optimizer.step()

    return step


def forward_of(network, model, inputs, layout):
    """A function that computes the loss of the one batch that is trained on."""
    if network.loss == "model":
        return lambda: model(**inputs).loss
    tensor = inputs[None]
    if network.loss == "mse":
        target, loss_of = torch.randn(tensor.shape), torch.nn.MSELoss()
    else:
        target, loss_of = torch.randint(0, network.classes, tensor.shape[:1]), torch.nn.CrossEntropyLoss()
        tensor = tensor.to(memory_format=layout)
    return lambda: loss_of(model(tensor), target)


def compiled_graphs():
    compiler = sys.modules.get("torch._dynamo.utils")
    return compiler.counters["stats"]["unique_graphs"] if compiler else 0


def warm_up(step, ranks):
    """The first steps allocate memory, and torch.compile may need some until it meets nothing new."""
    graphs = -1
    for number in range(MOST_WARM_UP):
        before, graphs = graphs, compiled_graphs()
        more = torch.tensor([int(number < WARM_UP or graphs != before)])
        if ranks > 1:
            torch.distributed.all_reduce(more, torch.distributed.ReduceOp.MAX)
        if not more.item():
            return
        step()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("network", choices=NETWORKS)
    parser.add_argument("--mode", default="eager")
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--precision", choices=["fp32", "bf16"], default="fp32")
    parser.add_argument("--rank", type=int, default=0)
    parser.add_argument("--ranks", type=int, default=1)
    parser.add_argument("--meeting", help="directory that the ranks share")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    step = make_step(options.network, options)
    warm_up(step, options.ranks)
    seconds = []
    for _ in range(options.steps):
        begin = time.monotonic()
        step()
        seconds.append(time.monotonic() - begin)
    if options.rank == 0:
        print(json.dumps({"median": statistics.median(seconds), "seconds": seconds}), flush=True)
    if options.ranks > 1:
        torch.distributed.barrier()
        # PyTorch's own end may wait for ever: Gloo's group is joined by who holds the interpreter, and its thread
        # wants it for the last operation.
        os._exit(0)


if __name__ == "__main__":
    main()
