"""Workers of a data loader, forked while tensors are shared, see what was there when they were forked."""

import torch
import torch.distributed as dist
from torch.utils.data import DataLoader, Dataset

dist.init_process_group("renkei")
data = torch.arange(400_000, dtype=torch.float32).reshape(40, 10_000) if dist.get_rank() == 0 else torch.empty(40, 10_000)
dist.broadcast(data, 0)  # now its pages are shared


class Rows(Dataset):
    def __len__(self) -> int:
        return len(data)

    def __getitem__(self, index: int) -> torch.Tensor:
        scratch = torch.ones(100_000)  # large tensors of a worker are its own
        return data[index] + scratch[0]


for _ in range(2):
    loader = iter(DataLoader(Rows(), batch_size=4, num_workers=2, multiprocessing_context="fork", prefetch_factor=1))
    first = next(loader)
    expected = torch.arange(400_000, dtype=torch.float32).reshape(40, 10_000) + 1
    data.zero_()  # the parent goes on writing
    dist.all_reduce(data)
    rows = torch.cat([first, *loader])
    assert torch.equal(rows, expected), (rows - expected).abs().max()
    data.copy_(expected - 1)
value = torch.ones(100_000)
dist.all_reduce(value)
assert value[-1] == dist.get_world_size()
dist.destroy_process_group()
print("workers saw their own")
