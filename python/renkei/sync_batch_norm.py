"""Batch normalisation by the samples of all ranks: forward and backward are those of one process with the joined batch.

Sums are exchanged in float64, so that the number of ranks changes no more than the order of a sum does.
"""

from typing import Any

import torch

from renkei import world

__all__ = ["SyncBatchNorm"]


class SyncBatchNorm(torch.nn.modules.batchnorm._BatchNorm):
    """In the place of BatchNorm1d, 2d and 3d; `convert(model)` replaces them all. While it is trained, all ranks must
    call it together.

    >>> layer = SyncBatchNorm(3)
    >>> layer(torch.randn(4, 3, 2, 2)).shape
    torch.Size([4, 3, 2, 2])
    """

    def _check_input_dim(self, input: torch.Tensor) -> None:
        if input.dim() < 2:
            raise ValueError(f"expected at least 2D input (got {input.dim()}D input)")

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """Normalised by all ranks' samples when it is trained, else as PyTorch does it, by each rank alone."""
        self._check_input_dim(input)
        if not self.training:
            return super().forward(input)
        if self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
        output, mean, variance, count = _Normalise.apply(input, self.weight, self.bias, self.eps)  # type: ignore[no-untyped-call]
        if self.running_mean is not None and self.running_var is not None:
            share = self.momentum if self.momentum is not None else 1.0 / float(self.num_batches_tracked or 1)
            with torch.no_grad():
                unbiased = variance * (count / (count - 1))
                self.running_mean.lerp_(mean.to(self.running_mean.dtype), share)
                self.running_var.lerp_(unbiased.to(self.running_var.dtype), share)
        return output  # type: ignore[no-any-return]

    @classmethod
    def convert(cls, module: torch.nn.Module) -> torch.nn.Module:
        """The module with every batch normalisation replaced by one over all ranks; parameters stay the same objects.

        >>> type(SyncBatchNorm.convert(torch.nn.Sequential(torch.nn.BatchNorm1d(2)))[0]).__name__
        'SyncBatchNorm'
        """
        kinds = (torch.nn.BatchNorm1d, torch.nn.BatchNorm2d, torch.nn.BatchNorm3d, torch.nn.SyncBatchNorm)
        if isinstance(module, kinds):
            made = cls(module.num_features, module.eps, module.momentum, module.affine, module.track_running_stats)
            made._parameters, made._buffers = module._parameters, module._buffers
            made.training = module.training
            return made
        for name, child in module.named_children():
            setattr(module, name, cls.convert(child))
        return module


class _Normalise(torch.autograd.Function):
    """y = (x - mean) / deviation · weight + bias, with mean and deviation of all ranks' samples."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, weight: torch.Tensor | None, bias: torch.Tensor | None, eps: float) -> Any:
        others = [d for d in range(x.dim()) if d != 1]
        wide = x.detach().double()
        mine = torch.cat([wide.sum(others), wide.new_tensor([x.numel() / max(x.size(1), 1)])])
        total = world.allreduce(mine, "sum")
        count = total[-1]
        if count < 2:
            raise ValueError(f"Expected more than 1 value per channel when training, got input size {list(x.shape)}")
        mean = total[:-1] / count
        shape = [1, -1, *[1] * (x.dim() - 2)]
        variance = world.allreduce((wide - mean.view(shape)).square_().sum(others), "sum") / count
        scale = torch.rsqrt(variance + eps)
        normalised = ((wide - mean.view(shape)) * scale.view(shape)).to(x.dtype)
        output = normalised
        if weight is not None:
            output = output * weight.to(x.dtype).view(shape)
        if bias is not None:
            output = output + bias.to(x.dtype).view(shape)
        ctx.save_for_backward(normalised, scale, count, weight, bias)
        ctx.mark_non_differentiable(mean, variance, count)
        return output, mean, variance, count

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor, *_: Any) -> Any:
        normalised, scale, count, weight, bias = ctx.saved_tensors
        others = [d for d in range(gradient.dim()) if d != 1]
        shape = [1, -1, *[1] * (gradient.dim() - 2)]
        wide = gradient.double()
        product = wide * normalised
        of_bias, of_weight = wide.sum(others), product.sum(others)
        total = world.allreduce(torch.stack([of_bias, of_weight]), "sum") / count
        factor = scale if weight is None else scale * weight.double()
        of_input = (wide - total[0].view(shape) - normalised * total[1].view(shape)) * factor.view(shape)
        return (
            of_input.to(gradient.dtype),
            None if weight is None else of_weight.to(weight.dtype),
            None if bias is None else of_bias.to(bias.dtype),
            None,
        )
