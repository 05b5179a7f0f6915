"""Every collective against what it must give, on any number of ranks."""

import os

import torch

import renkei

rank, size = renkei.rank(), renkei.size()
assert os.environ["RANK"] == str(rank) and os.environ["WORLD_SIZE"] == str(size)
assert os.environ["LOCAL_RANK"] == str(renkei.local_rank()) == str(rank)
renkei.barrier()

for kind in (torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.uint8):
    for shape in ((), (0,), (3,), (5, 7)):
        mine = torch.full(shape, rank + 1, dtype=kind)
        total = torch.full(shape, size * (size + 1) // 2, dtype=kind)
        assert torch.equal(renkei.allreduce(mine, "sum"), total), kind
        assert torch.equal(renkei.allreduce(mine, "max"), torch.full(shape, size, dtype=kind))
        assert torch.equal(mine, torch.full(shape, rank + 1, dtype=kind)), "the argument stays as it is"
        assert torch.equal(renkei.broadcast(mine, size - 1), torch.full(shape, size, dtype=kind))
assert torch.equal(renkei.allreduce(torch.tensor([float(rank)])), torch.tensor([(size - 1) / 2]))
assert torch.equal(renkei.allreduce(torch.tensor([True, rank == 0]), "min"), torch.tensor([True, size == 1]))
complex_sum = renkei.allreduce(torch.tensor([complex(rank, 1)]), "sum")
assert torch.equal(complex_sum, torch.tensor([complex(size * (size - 1) // 2, size)]))
strided = torch.arange(12.0).view(3, 4).t()
assert torch.equal(renkei.allreduce(strided, "sum"), strided * size)
assert renkei.allgather_object({"rank": rank, "text": "x" * rank}) == [{"rank": r, "text": "x" * r} for r in range(size)]

for wrong, words in ((lambda: renkei.allreduce(torch.tensor([1]), "mean"), "rounded"),
                     (lambda: renkei.allreduce(torch.tensor([1.0]), "median"), "median"),
                     (lambda: renkei.allreduce(torch.empty(1, device="meta")), "meta")):
    try:
        wrong()
    except renkei.RenkeiError as error:
        assert words in error.message and error.hint, error
    else:
        raise AssertionError(words)
