"""The indexer's choice for every query row of a packed batch, without gradients.

Winnow's rule: the index_topk visible tokens with the largest scores; rows that see no more than
that many take all. Scores equal to the last chosen one are all taken here, which real scores meet
too rarely to matter.
"""
import torch

try:
    import triton
    import triton.language as tl
except ImportError:  # the CPU path needs no Triton
    triton = None


def scores_torch(q, weights, k):
    """[B, T, T] fp32. q [B, T, heads, dim], weights [B, T, heads], k [B, T, dim]."""
    dots = torch.einsum("bthd,bsd->bths", q.float(), k.float())
    return (dots.relu() * weights[..., None]).sum(2)


def select_torch(q, weights, k, start, topk):
    length = k.shape[1]
    positions = torch.arange(length, device=k.device)
    seen = (positions <= positions[:, None]) & (positions >= start[..., None])
    scores = scores_torch(q, weights, k).masked_fill(~seen, float("-inf"))
    if length <= topk:
        return seen
    last = scores.topk(topk, -1).values[..., -1:]
    return seen & (scores >= last)


if triton is not None:

    @triton.jit
    def index_logits_kernel(q, weights, k, start, out, length, HEADS: tl.constexpr,
                            DIM: tl.constexpr, ROWS: tl.constexpr, COLS: tl.constexpr):
        b = tl.program_id(2).to(tl.int64)
        row = tl.program_id(1) * ROWS + tl.arange(0, ROWS)
        col = tl.program_id(0) * COLS + tl.arange(0, COLS)
        first = tl.load(start + b * length + tl.program_id(1) * ROWS)
        past_diagonal = tl.program_id(0) * COLS > tl.program_id(1) * ROWS + ROWS - 1
        if past_diagonal or (tl.program_id(0) * COLS + COLS <= first):
            return
        dim = tl.arange(0, DIM)
        keys = tl.load(k + (b * length + col[None, :]) * DIM + dim[:, None])
        total = tl.zeros((ROWS, COLS), dtype=tl.float32)
        for head in range(HEADS):
            at = (b * length + row) * HEADS + head
            query = tl.load(q + at[:, None] * DIM + dim[None, :])
            weight = tl.load(weights + at)
            total += tl.maximum(tl.dot(query, keys), 0.0) * weight[:, None]
        tl.store(out + (b * length + row[:, None]) * length + col[None, :], total)

    @triton.jit
    def choose_kernel(scores, start, chosen, length, TOPK: tl.constexpr, WIDTH: tl.constexpr):
        row = tl.program_id(0)
        at = (tl.program_id(1).to(tl.int64) * length + row)
        first = tl.load(start + at).to(tl.int32)
        col = tl.arange(0, WIDTH)
        seen = (col >= first) & (col <= row)
        bits = tl.load(scores + at * length + col, mask=seen, other=float("-inf"))
        bits = bits.to(tl.int32, bitcast=True)
        keys = tl.where(bits < 0, bits ^ 0x7FFFFFFF, bits)  # integers in the order of the floats
        if row - first + 1 > TOPK:
            # The TOPK-th largest key by bisection: TOPK keys are >= low, fewer are > high.
            high = tl.max(keys, 0)
            low = tl.min(tl.where(seen, keys, 0x7FFFFFFF), 0)
            for _ in range(32):
                middle = (low >> 1) + (high >> 1) + ((low | high) & 1)
                enough = tl.sum((seen & (keys >= middle)).to(tl.int32), 0) >= TOPK
                low = tl.where(enough, middle, low)
                high = tl.where(enough, high, tl.maximum(middle - 1, low))
            tl.store(chosen + at * length + col, keys >= low, mask=seen)
        else:
            tl.store(chosen + at * length + col, seen, mask=seen)


def select(q, weights, k, start, topk):
    """chosen [B, T, T] bool; on a GPU it holds rubbish where a token is not visible."""
    if not q.is_cuda:
        return select_torch(q, weights, k, start, topk)
    batch, length, heads, dim = q.shape
    scores = torch.empty(batch, length, length, dtype=torch.float32, device=q.device)
    chosen = torch.empty(batch, length, length, dtype=torch.bool, device=q.device)
    tile = 64
    grid = (length // tile, length // tile, batch)
    index_logits_kernel[grid](q.contiguous(), weights.contiguous(), k.contiguous(), start, scores,
                              length, HEADS=heads, DIM=dim, ROWS=tile, COLS=tile)
    choose_kernel[(length, batch)](scores, start, chosen, length, TOPK=topk,
                                   WIDTH=triton.next_power_of_2(length),
                                   num_warps=8 if length > 4096 else 4)
    return chosen
