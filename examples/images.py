"""Image classification on a packed data set: DATA EPOCHS.

    renkei data synth shapes --images 512 --test-images 128 --shards
    renkei run -n 2 examples/images.py shapes 2

Batches are read and decoded ahead by the engine, each sample once in an epoch over all ranks.
"""

import sys

import torch
from torch import nn
from torch.nn import functional

import renkei

path, epochs = sys.argv[1], int(sys.argv[2])
train = renkei.data.open(path, batch_size=16, image_size=(32, 32), augment=False)
test = renkei.data.open(path, batch_size=16, image_size=(32, 32), held_out=True, drop_last=False)

torch.manual_seed(0)
model = nn.Sequential(
    nn.Conv2d(3, 16, 3, stride=2, padding=1), nn.BatchNorm2d(16), nn.ReLU(),
    nn.Conv2d(16, 32, 3, stride=2, padding=1), nn.BatchNorm2d(32), nn.ReLU(),
    nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(512, train.classes),
)  # fmt: skip
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs * len(train))
model = renkei.parallelize(model, optimizer)

for epoch in range(epochs):
    model.train()
    for batch in train:
        optimizer.zero_grad()
        loss = functional.cross_entropy(model(batch["input"]), batch["target"])
        loss.backward()
        optimizer.step()
        scheduler.step()
    model.eval()
    right = count = 0
    with torch.no_grad():
        for batch in test:
            if len(batch["target"]):
                right += int((model(batch["input"]).argmax(1) == batch["target"]).sum())
                count += len(batch["target"])
    right, count = (int(renkei.allreduce(torch.tensor(number), "sum")) for number in (right, count))
    if renkei.rank() == 0:
        print(f"epoch {epoch + 1}: loss {loss.item():.3f}, {right} of {count} right")
