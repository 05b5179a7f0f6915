"""Trains a small convolutional network on images that are drawn, with Horovod: --epochs N --batch-size N."""

import argparse

import torch
import torch.nn.functional as F
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

import renkei.horovod.torch as hvd


class Net(nn.Module):
    """Two convolutions and two dense layers."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, 10, kernel_size=5)
        self.conv2 = nn.Conv2d(10, 20, kernel_size=5)
        self.fc1 = nn.Linear(320, 50)
        self.fc2 = nn.Linear(50, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = F.relu(F.max_pool2d(self.conv1(x), 2))
        x = F.relu(F.max_pool2d(self.conv2(x), 2))
        x = F.relu(self.fc1(x.view(-1, 320)))
        return F.log_softmax(self.fc2(x), dim=1)


def draw_digits(count: int, seed: int) -> TensorDataset:
    """Images of ten patterns under noise."""
    random = torch.Generator().manual_seed(seed)
    patterns = torch.randn(10, 1, 28, 28, generator=torch.Generator().manual_seed(0))
    labels = torch.randint(10, (count,), generator=random)
    return TensorDataset(patterns[labels] + 0.5 * torch.randn(count, 1, 28, 28, generator=random), labels)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--lr", type=float, default=0.01)
    parser.add_argument("--fp16-allreduce", action="store_true")
    args = parser.parse_args()

    hvd.init()
    torch.manual_seed(42)
    train_data, test_data = draw_digits(1024, seed=1), draw_digits(256, seed=2)
    train_sampler = DistributedSampler(train_data, num_replicas=hvd.size(), rank=hvd.rank())
    test_sampler = DistributedSampler(test_data, num_replicas=hvd.size(), rank=hvd.rank())
    train_loader = DataLoader(train_data, batch_size=args.batch_size, sampler=train_sampler)
    test_loader = DataLoader(test_data, batch_size=128, sampler=test_sampler)

    model = Net()
    optimizer = optim.SGD(model.parameters(), lr=args.lr * hvd.size(), momentum=0.5)
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    hvd.broadcast_optimizer_state(optimizer, root_rank=0)
    compression = hvd.Compression.fp16 if args.fp16_allreduce else hvd.Compression.none
    optimizer = hvd.DistributedOptimizer(
        optimizer, named_parameters=model.named_parameters(), compression=compression, op=hvd.Average
    )

    for epoch in range(args.epochs):
        model.train()
        train_sampler.set_epoch(epoch)
        for data, target in train_loader:
            optimizer.zero_grad()
            loss = F.nll_loss(model(data), target)
            loss.backward()
            optimizer.step()

        model.eval()
        right = torch.zeros(1)
        with torch.no_grad():
            for data, target in test_loader:
                right += (model(data).argmax(1) == target).sum()
        accuracy = hvd.allreduce(right / len(test_sampler), name="accuracy")
        if hvd.rank() == 0:
            print(f"epoch {epoch}: accuracy {accuracy.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
