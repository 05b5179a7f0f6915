"""scatter_dataset, evaluate_all and SyncBatchNorm on any number of ranks."""

import torch

import renkei

rank, size = renkei.rank(), renkei.size()
assert renkei.local_size() == size and renkei.local_rank() == rank

# Every sample has a rank, and shares are as long where asked.
for count in (size, 4 * size, 4 * size + 1):
    for shuffle in (False, True):
        for equal in (False, True):
            share = renkei.scatter_dataset(list(range(count)), shuffle=shuffle, seed=3, force_equal_length=equal)
            everyone = renkei.allgather_object([int(share[i]) for i in range(len(share))])
            dealt = sorted(i for mine in everyone for i in mine)
            assert set(dealt) == set(range(count)), dealt
            assert (len({len(mine) for mine in everyone}) == 1) if equal else (dealt == list(range(count)))
            if not shuffle and not equal:
                assert [i for mine in everyone for i in mine] == list(range(count))
one = [int(i) for i in renkei.scatter_dataset(list(range(50)), shuffle=True, seed=1)]
two = [int(i) for i in renkei.scatter_dataset(list(range(50)), shuffle=True, seed=2)]
assert one != two
sent = renkei.scatter_dataset([("sample", i) for i in range(2 * size)] if rank == 0 else None)
assert [sent[i] for i in range(len(sent))] == [("sample", 2 * rank), ("sample", 2 * rank + 1)]

# The mean over all samples, whoever evaluates how many.
values = torch.arange(float(size * (size + 1) // 2))
mine = values[rank * (rank + 1) // 2 :][: rank + 1]
found = renkei.evaluate_all(lambda part: {"mean": float(part.mean())}, mine, weight=len(mine))
assert abs(found["mean"] - float(values.mean())) < 1e-6
idle = rank > 0
assert renkei.evaluate_all(lambda: {"mean": float("nan") if idle else 2.0}, weight=float(not idle)) == {"mean": 2.0}

# Batch normalisation over all ranks is that of one process with the joined batch. In float64: the gradient of a batch
# of two is a difference of nearly equal numbers, of which float32 leaves nothing in PyTorch's own.
torch.manual_seed(0)
torch.set_default_dtype(torch.float64)
plain = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4), torch.nn.ReLU(), torch.nn.Flatten(),
                            torch.nn.Linear(4 * 16, 5), torch.nn.BatchNorm1d(5, momentum=None, affine=False))
ours = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4), torch.nn.ReLU(), torch.nn.Flatten(),
                           torch.nn.Linear(4 * 16, 5), torch.nn.BatchNorm1d(5, momentum=None, affine=False))
ours.load_state_dict(plain.state_dict())
parameters = list(ours.parameters())
ours = renkei.SyncBatchNorm.convert(ours)
assert all(a is b for a, b in zip(parameters, ours.parameters(), strict=True))
assert list(ours.state_dict()) == list(plain.state_dict())
for step in range(3):
    sizes = [2 + (r + step) % 2 for r in range(size)]  # ranks have batches of different sizes
    x = torch.randn(sum(sizes), 3, 6, 6)
    weights = torch.randn(sum(sizes), 5)
    begin = sum(sizes[:rank])
    joined = x.clone().requires_grad_()
    part = x[begin : begin + sizes[rank]].clone().requires_grad_()
    for model in (plain, ours):
        model.zero_grad()
    wanted, found = plain(joined), ours(part)
    (wanted * weights).sum().backward()
    (found * weights[begin : begin + sizes[rank]]).sum().backward()
    assert torch.allclose(found, wanted[begin : begin + sizes[rank]], rtol=1e-9, atol=1e-9)
    assert torch.allclose(part.grad, joined.grad[begin : begin + sizes[rank]], rtol=1e-9, atol=1e-9)
    for a, b in zip(ours.parameters(), plain.parameters(), strict=True):
        assert torch.allclose(renkei.allreduce(a.grad, "sum"), b.grad, rtol=1e-9, atol=1e-9)
for (name, a), b in zip(ours.named_buffers(), plain.buffers(), strict=True):
    assert torch.allclose(a, b, rtol=1e-9, atol=1e-9), name
x = torch.randn(2, 3, 6, 6)
assert torch.allclose(ours.eval()(x), plain.eval()(x), rtol=1e-9, atol=1e-9)
if rank == 0:  # evaluation is everybody's own affair
    own = renkei.SyncBatchNorm(3, track_running_stats=False).eval()
    assert torch.allclose(own(x), torch.nn.BatchNorm2d(3, track_running_stats=False)(x))
print("equal")
