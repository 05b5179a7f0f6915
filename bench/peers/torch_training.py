"""Trains a network in PyTorch, for bench/training.py: prints the median seconds of a step as JSON.

usage: torch_training.py MODE MODEL BATCH STEPS THREADS [RANK RANKS DIRECTORY]

MODE is eager (one process), ddp (DistributedDataParallel with Gloo) or ddp_fp16 (with the hook that
sends half precision). BATCH is per process. Ranks find each other through a file in DIRECTORY.
"""

import json
import statistics
import sys
import time

import torch
import torch.distributed
import torchvision


def make_model(name):
    if name == "mlp":  # of RaNNC's tutorial
        layers = []
        for _ in range(10):
            layers += [torch.nn.Linear(512, 512), torch.nn.ReLU()]
        return torch.nn.Sequential(*layers[:-1])
    if name == "inception_v3":
        return torchvision.models.inception_v3(weights=None, aux_logits=False, init_weights=False)
    return getattr(torchvision.models, name)(weights=None)


def make_batch(name, batch):
    if name == "mlp":
        return torch.randn(batch, 512), torch.randn(batch, 512)
    size = 299 if name == "inception_v3" else 224
    return torch.randn(batch, 3, size, size), torch.randint(0, 1000, (batch,))


def main():
    mode, name, batch, steps, threads = sys.argv[1], sys.argv[2], *map(int, sys.argv[3:6])
    torch.set_num_threads(threads)
    torch.manual_seed(1)
    model = make_model(name)
    loss_of = torch.nn.MSELoss() if name == "mlp" else torch.nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4, momentum=0.9)
    rank = 0
    if mode != "eager":
        rank, ranks, directory = int(sys.argv[6]), int(sys.argv[7]), sys.argv[8]
        torch.distributed.init_process_group("gloo", init_method=f"file://{directory}/meeting",
                                             rank=rank, world_size=ranks)
        model = torch.nn.parallel.DistributedDataParallel(model, gradient_as_bucket_view=True)
        if mode == "ddp_fp16":
            from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
            model.register_comm_hook(None, default_hooks.fp16_compress_hook)
    inputs, target = make_batch(name, batch)
    seconds = []
    for _ in range(steps):
        begin = time.monotonic()
        optimizer.zero_grad(set_to_none=mode == "eager")
        loss_of(model(inputs), target).backward()
        optimizer.step()
        seconds.append(time.monotonic() - begin)
    # The first steps allocate memory.
    kept = seconds[2:] if len(seconds) > 4 else seconds[1:]
    if rank == 0:
        print(json.dumps({"median": statistics.median(kept)}))


if __name__ == "__main__":
    main()
