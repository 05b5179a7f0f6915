"""Networks away from the kinks of their activations, where two ways to compute can be compared."""

import torch


def tame(model: torch.nn.Module) -> torch.nn.Module:
    """Without chance, and without values next to the kinks of ReLU, ReLU6 or hard swish, where a last bit decides on
    which side a gradient goes: what normalisations give lies around 1 or -1, a tenth wide. With PyTorch's own
    initial values, PyTorch in single and in double precision differ by 1e-3 and more after five steps."""
    with torch.no_grad():
        for part in model.modules():
            for name, value in list(vars(part).items()):
                if isinstance(value, float) and (name == "p" or "drop" in name):
                    setattr(part, name, 0.0)
            if isinstance(part, torch.nn.BatchNorm2d):
                part.weight.uniform_(0.05, 0.15)
                part.bias.uniform_(0.8, 1.2)
                part.bias[torch.rand_like(part.bias) < 0.3] *= -1
    return model
