"""DDP, FSDP2, DTensor, distributed checkpoints and pipelining: on renkei as on Gloo, bit for bit or nearly so."""

import copy
import os
import sys
import tempfile

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.pipelining import PipelineStage, Schedule1F1B
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor
from torch.nn.parallel import DistributedDataParallel


def model() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 8))


def batch(step: int, rank: int) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(100 * step + rank)
    return torch.randn(16, 64, generator=generator), torch.randn(16, 8, generator=generator)


def train(network: nn.Module, parameters, steps: int = 4) -> None:
    # A large eps: without it the sign of a gradient that is nothing but rounding decides a whole step.
    optimizer = torch.optim.AdamW(parameters, lr=1e-2, eps=1e-2)
    for step in range(steps):
        x, y = batch(step, dist.get_rank())
        optimizer.zero_grad()
        nn.functional.mse_loss(network(x), y).backward()
        optimizer.step()


def ddp() -> list[torch.Tensor]:
    network = DistributedDataParallel(model(), bucket_cap_mb=1)
    train(network, network.parameters())
    return [parameter.detach() for parameter in network.parameters()]


def fsdp() -> list[torch.Tensor]:
    network = model()
    for layer in network:
        if isinstance(layer, nn.Linear):
            fully_shard(layer)
    fully_shard(network)
    train(network, network.parameters())
    with tempfile.TemporaryDirectory() as own:
        folders = [own]
        dist.broadcast_object_list(folders, 0)
        dcp.save({"model": network.state_dict()}, checkpoint_id=folders[0])
        wanted = [parameter.full_tensor().detach() for parameter in network.parameters()]
        with torch.no_grad():
            for parameter in network.parameters():
                parameter.zero_()
        state = {"model": network.state_dict()}
        dcp.load(state, checkpoint_id=folders[0])
        network.load_state_dict(state["model"])
        dist.barrier()
    loaded = [parameter.full_tensor().detach() for parameter in network.parameters()]
    assert all(map(torch.equal, wanted, loaded))
    return loaded


def dtensor() -> list[torch.Tensor]:
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    torch.manual_seed(1)
    a, b = torch.randn(30, 20), torch.randn(20, 41)
    left, right = distribute_tensor(a, mesh, [Shard(0)]), distribute_tensor(b, mesh, [Shard(1)])
    product: DTensor = left @ right
    return [product.redistribute(mesh, [Replicate()]).to_local(), product.full_tensor(), left.sum().full_tensor()]


def pipeline() -> list[torch.Tensor]:
    rank, size = dist.get_rank(), dist.get_world_size()
    whole = model()
    cuts = [0, 2, 5] if size == 2 else [0, 2, 4, 5]
    part = copy.deepcopy(whole[cuts[rank] : cuts[rank + 1]])
    stage = PipelineStage(part, rank, size, torch.device("cpu"))
    schedule = Schedule1F1B(stage, 4, nn.functional.mse_loss)
    x, y = batch(0, 0)
    if rank == 0:
        schedule.step(x)
    elif rank == size - 1:
        schedule.step(target=y)
    else:
        schedule.step()
    return [parameter.grad for parameter in part.parameters() if parameter.grad is not None]


results = {}
for backend in ("gloo", "renkei"):
    os.environ["MASTER_PORT"] = str(int(os.environ["MASTER_PORT"]) + 1)
    dist.init_process_group(backend)
    results[backend] = {work.__name__: work() for work in (ddp, fsdp, dtensor, pipeline) if work.__name__ in sys.argv[1:]}
    dist.barrier()
    dist.destroy_process_group()
for name, tensors in results["gloo"].items():
    assert len(tensors) > 0
    for gloo, renkei in zip(tensors, results["renkei"][name], strict=True):
        # Three ranks are summed in another order.
        torch.testing.assert_close(renkei, gloo, rtol=1e-5, atol=1e-6)
print("equal:", *results["gloo"])
