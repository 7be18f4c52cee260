"""Attention inside packed documents, dense or over chosen tokens, with FlexAttention."""
import dataclasses
import functools

import torch
from torch.nn.attention.flex_attention import BlockMask, flex_attention

BLOCK = 128  # FlexAttention's


def gather_rows(x, rows):
    """x [B, T, ...] at rows [B, R] -> [B, R, ...]"""
    index = rows.reshape(*rows.shape, *[1] * (x.ndim - 2)).expand(-1, -1, *x.shape[2:])
    return x.gather(1, index)


def visible(start, rows):
    """[B, R, T] bool: what each row may attend to, its own document up to itself."""
    positions = torch.arange(start.shape[1], device=start.device)
    first = start.gather(1, rows)
    return (positions <= rows[..., None]) & (positions >= first[..., None])


def attention_distribution(q, k, rows, seen, scale):
    """Mean over heads of the attention of the sampled rows [B, R, T], fp32. q, k [B, H, T, D]."""
    picked = q.gather(2, rows[:, None, :, None].expand(-1, q.shape[1], -1, q.shape[3]))
    scores = (picked @ k.transpose(2, 3)).float() * scale
    return scores.masked_fill(~seen[:, None], float("-inf")).softmax(-1).mean(1)


def attend(q, k, v, mask, scale):
    """[B, H, T, V]. mask is a BlockMask, or a bool [B, T, T] on devices without FlexAttention."""
    if isinstance(mask, BlockMask):
        return flex_attention(q, k, v, block_mask=mask, scale=scale)
    scores = (q @ k.transpose(2, 3)) * scale
    return scores.masked_fill(~mask[:, None], float("-inf")).softmax(-1) @ v


def block_mask(start, chosen):
    """Only blocks that hold a visible pair are visited. start [B, T] does not decrease in a row."""
    blocks = start.shape[1] // BLOCK
    first, last = start[:, ::BLOCK], start[:, BLOCK - 1::BLOCK]
    column = torch.arange(blocks, device=start.device)
    row = column[:, None]
    touched = (column <= row) & ((column + 1) * BLOCK > first[..., None])
    # Whole blocks need no mask: below the diagonal, in the document of the block's last row.
    whole = (column < row) & (column * BLOCK >= last[..., None])
    if chosen is not None:
        whole = torch.zeros_like(whole)

    def pairs(b, h, q, kv):
        inside = (kv <= q) & (kv >= start[b, q])
        return inside if chosen is None else inside & chosen[b, q, kv]

    def listed(wanted):
        counts = wanted.sum(-1, dtype=torch.int32)[:, None]
        order = wanted.int().argsort(dim=-1, descending=True, stable=True).int()[:, None]
        return counts, order.contiguous()

    return BlockMask.from_kv_blocks(*listed(touched & ~whole), *listed(whole),
                                    BLOCK_SIZE=BLOCK, mask_mod=pairs)


@dataclasses.dataclass
class Packed:
    """A batch on the device. weights[b, t] is the loss weight of predicting ids[b, t]."""
    ids: torch.Tensor        # [B, T] int64
    start: torch.Tensor      # [B, T] int64
    weights: torch.Tensor    # [B, T] fp32
    rows: torch.Tensor       # [B, R] int64, query rows on which indexers learn, or None
    sparse: bool = False     # attention over the indexer's choice

    @property
    def positions(self):
        return torch.arange(self.ids.shape[1], device=self.ids.device) - self.start

    def mask_of(self, chosen):
        if self.ids.is_cuda:
            return block_mask(self.start, chosen)
        rows = torch.arange(self.ids.shape[1]).expand_as(self.start)
        seen = visible(self.start, rows)
        return seen if chosen is None else seen & chosen

    @functools.cached_property
    def dense_mask(self):
        return self.mask_of(None)
