#!/usr/bin/env python3
"""How fast torchvision's ImageFolder and DataLoader deliver random resized crops.

usage: torchvision_loader.py DIRECTORY WORKERS BATCH SECONDS
Prints samples per second; start-up and the first batch are not counted.
"""

import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from networks import require

torch = require("torch")
require("torchvision")
from torchvision import transforms  # noqa: E402
from torchvision.datasets import ImageFolder  # noqa: E402


def main():
    directory, workers, batch, seconds = sys.argv[1], *map(int, sys.argv[2:4]), float(sys.argv[4])
    torch.set_num_threads(1)
    dataset = ImageFolder(directory, transforms.Compose([
        transforms.RandomResizedCrop(224), transforms.RandomHorizontalFlip(), transforms.ToTensor(),
        transforms.Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))]))
    loader = torch.utils.data.DataLoader(dataset, batch_size=batch, shuffle=True,
                                         num_workers=workers, persistent_workers=workers > 0)
    samples, begin = 0, None
    while True:
        for inputs, _ in loader:
            if begin is None:
                begin = time.perf_counter()
                continue
            samples += len(inputs)
            elapsed = time.perf_counter() - begin
            if elapsed > seconds:
                print(samples / elapsed)
                return


if __name__ == "__main__":
    main()
