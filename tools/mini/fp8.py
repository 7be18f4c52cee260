"""e4m3 with one fp32 scale for each 128 x 128 block, as hub checkpoints store linears."""
import torch
import torch.nn.functional as F

SCALE_BLOCK = 128
E4M3_MAX = 448.0
FLOOR = 1e-10


def block_scales(w):
    """[..., ceil(M / 128), ceil(N / 128)] of w [..., M, N]: each block's largest value is 448."""
    rows, cols = w.shape[-2:]
    padded = F.pad(w.abs(), (0, -cols % SCALE_BLOCK, 0, -rows % SCALE_BLOCK))
    blocks = padded.unflatten(-1, (-1, SCALE_BLOCK)).unflatten(-3, (-1, SCALE_BLOCK))
    return blocks.amax((-3, -1)).float().clamp_min(FLOOR) / E4M3_MAX


def expand(scales, shape):
    rows, cols = shape[-2:]
    wide = scales.repeat_interleave(SCALE_BLOCK, -2).repeat_interleave(SCALE_BLOCK, -1)
    return wide[..., :rows, :cols]


def quantise(w):
    """(e4m3 values, scales) of a weight [M, N]."""
    scales = block_scales(w)
    codes = (w.float() / expand(scales, w.shape)).clamp(-E4M3_MAX, E4M3_MAX)
    return codes.to(torch.float8_e4m3fn), scales


def dequantise(codes, scales):
    return codes.float() * expand(scales, codes.shape)


def fake_quantise(w):
    """w [..., M, N] after quantise and dequantise, fp32. Blocks are square: w may be transposed."""
    return dequantise(*quantise(w))
