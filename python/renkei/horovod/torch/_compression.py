"""What gradients become on their way."""

from typing import Any

import torch

__all__ = ["Compression", "Compressor"]


class Compressor:
    """Tensors travel as they are."""

    @staticmethod
    def compress(tensor: torch.Tensor) -> tuple[torch.Tensor, Any]:
        """The tensor that travels, and what decompress() needs."""
        return tensor, None

    @staticmethod
    def decompress(tensor: torch.Tensor, ctx: Any) -> torch.Tensor:
        """The tensor as it was."""
        return tensor


class _Half(Compressor):
    @staticmethod
    def compress(tensor: torch.Tensor) -> tuple[torch.Tensor, Any]:
        return (tensor.half(), tensor.dtype) if tensor.is_floating_point() else (tensor, tensor.dtype)

    @staticmethod
    def decompress(tensor: torch.Tensor, ctx: Any) -> torch.Tensor:
        return tensor.to(ctx)


class Compression:
    """The compressors that there are.

    >>> Compression.fp16.compress(torch.ones(1))[0].dtype
    torch.float16
    """

    none = Compressor
    fp16 = _Half
