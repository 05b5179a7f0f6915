#!/usr/bin/env python3
"""A step through Python, against DistributedDataParallel (Gloo) of the same torch: MODEL… (default: tutorial resnet50).

    renkei run -n 2 bench/python.py tutorial resnet50 gpt2 bert

Both train the same model on the same batches in one process a rank, step about, so that what else the machine does hits
both. The table has the median of the steps; `overhead` is what a call of a model of one number takes beyond the model.
On a machine that is not idle: chrt -f 50 renkei run …
"""

import os
import pathlib
import statistics
import sys
import time

import torch
import torch.distributed
from torch import nn

import renkei

sys.path.append(str(pathlib.Path(__file__).parents[1] / "tests/support"))
import torchvision_ops  # noqa: E402, F401  # where the wheel has none

STEPS, WARM_UP = int(os.environ.get("STEPS", "10")), 3


def tutorial():
    layers = [layer for _ in range(10) for layer in (nn.Linear(512, 512), nn.ReLU())]
    return nn.Sequential(*layers), lambda: (torch.randn(64, 512),), lambda out: out.square().mean()


def resnet50():
    import torchvision

    return torchvision.models.resnet50(), lambda: (torch.randn(8, 3, 224, 224),), lambda out: out.square().mean()


def gpt2():
    import transformers

    config = transformers.GPT2Config(use_cache=False, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0)
    return (transformers.GPT2LMHeadModel(config), lambda: (torch.randint(50257, (2, 128)),),
            lambda out: out.logits.square().mean())  # fmt: skip


def bert():
    import transformers

    config = transformers.BertConfig(hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    return (transformers.BertForMaskedLM(config), lambda: (torch.randint(30522, (4, 128)),),
            lambda out: out.logits.square().mean())  # fmt: skip


def step(model, optimizer, batch, loss):
    begin = time.perf_counter()
    optimizer.zero_grad()
    loss(model(*batch)).backward()
    optimizer.step()
    return time.perf_counter() - begin


def contest(name, options):
    torch.manual_seed(0)
    ours, make_batch, loss = globals()[name]()
    torch.manual_seed(0)
    theirs, _, _ = globals()[name]()
    optimizers = [torch.optim.SGD(m.parameters(), lr=1e-3) for m in (ours, theirs)]
    ours = renkei.parallelize(ours, optimizers[0], **options)
    theirs = nn.parallel.DistributedDataParallel(theirs, gradient_as_bucket_view=True)
    begin = time.perf_counter()
    seconds = ([], [])
    for number in range(STEPS + WARM_UP):
        batch = make_batch()
        for which, (model, optimizer) in enumerate(zip((ours, theirs), optimizers)):
            renkei.barrier()
            took = step(model, optimizer, batch, loss)
            if number == 0 and which == 0:
                first = time.perf_counter() - begin
            if number >= WARM_UP:
                seconds[which].append(took)
    mine, peer = (statistics.median(s) for s in seconds)
    if renkei.rank() == 0:
        print(f"{name:10} {1e3 * mine:10.2f} ms {1e3 * peer:10.2f} ms {peer / mine:8.2f}x {first:8.1f} s")
    ours.close()


def overhead():
    """Seconds of a call with its backward, beyond the same of the plain model."""
    plain, wrapped = nn.Linear(1, 1), nn.Linear(1, 1)
    wrapped = renkei.parallelize(wrapped)
    x = torch.ones(1, 1)

    def timed(model):
        begin = time.perf_counter()
        model(x).sum().backward()
        return time.perf_counter() - begin

    times = [(timed(plain), timed(wrapped)) for _ in range(2000)][100:]
    return statistics.median(b for _, b in times) - statistics.median(a for a, _ in times)


if __name__ == "__main__":
    renkei.init()
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo")
    captured = {"settings": {"plan.stages": "1"}} if os.environ.get("CAPTURED") else {}
    if renkei.rank() == 0:
        print(f"{'':10} {'renkei':>13} {'DDP':>13} {'faster':>9} {'first':>10}")
    for name in sys.argv[1:] or ("tutorial", "resnet50"):
        contest(name, captured)
    extra = overhead()
    if renkei.rank() == 0:
        print(f"overhead   {1e6 * extra:10.1f} us")
    torch.distributed.destroy_process_group()
