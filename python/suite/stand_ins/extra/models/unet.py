"""The class that tinygrad 0.12.0's `test_jit.py` imports from `extra/models/unet.py`, which its source distribution leaves out."""

from tinygrad import Tensor
from tinygrad.nn import Conv2d, Linear


class ResBlock:
    """A residual block of two convolutions with an embedding added between them. The test needs something that takes long to compile."""

    def __init__(self, channels: int, emb_channels: int, out_channels: int):
        self.first, self.second = Conv2d(channels, out_channels, 3, padding=1), Conv2d(out_channels, out_channels, 3, padding=1)
        self.embed = Linear(emb_channels, out_channels)

    def __call__(self, x: Tensor, emb: Tensor) -> Tensor:
        shift = self.embed(emb.silu())
        hidden = self.first(x.silu()) + shift.reshape(*shift.shape, 1, 1)
        return x + self.second(hidden.silu())
