"""Rank 1 has another model than rank 0, in a way that the argument names."""

import sys

from torch import nn

import renkei

model = nn.Sequential(nn.Linear(6, 4))
if renkei.rank() == 1:
    if sys.argv[1] == "shape":
        model = nn.Sequential(nn.Linear(7, 4))
    elif sys.argv[1] == "extra":
        model.append(nn.Linear(6, 1))
    else:
        model[0].bias.requires_grad_(False)
renkei.parallelize(model)
