#!/usr/bin/env python3
"""The operators of winnow_kernels against plain PyTorch, on a Hopper card.

    PYTHONPATH=python python/check_winnow_kernels.py [libwinnow_kernels.so]

Exits with 77 (skipped) where torch or a card is missing.
"""
import sys

try:
    import torch
except ImportError:
    sys.exit(77)
if not torch.cuda.is_available() or torch.cuda.get_device_capability() != (9, 0):
    sys.exit(77)

import winnow_kernels


def check(name, ok):
    print(f"{name}: {'ok' if ok else 'WRONG'}")
    return ok


def check_sparse_mla():
    torch.manual_seed(1)
    rows, heads, topk, pages = 1100, 8, 256, 64
    cache = torch.randn(pages * 64, 576, device="cuda").bfloat16()
    q_latent = torch.randn(rows, heads, 512, device="cuda").bfloat16()
    q_rope = torch.randn(rows, heads, 64, device="cuda").bfloat16()
    chosen = torch.rand(rows, pages * 64, device="cuda").argsort(1)[:, :topk]
    chosen[1::2] = chosen[0::2]  # neighbours share
    slots = chosen.sort(1).values.int().contiguous()
    lens = torch.full((rows,), topk, dtype=torch.int32, device="cuda")
    lens[5] = 0
    out, lse = torch.ops.winnow.sparse_mla(q_latent, q_rope,
                                           cache.view(torch.uint8).view(pages, 64 * 1152), slots,
                                           lens, 0.05, "latent_bf16_1152")
    q = torch.cat([q_latent, q_rope], 2).double()
    tokens = cache.double()[slots.long()]
    logits = torch.einsum("thc,tjc->thj", q, tokens) * 0.05
    want = torch.einsum("thj,tjc->thc", logits.softmax(-1), tokens[..., :512])
    want[5] = 0
    error = (out.double() - want).norm() / want.norm()
    rest = torch.arange(rows, device="cuda") != 5
    ok = error < 5e-3 and torch.allclose(lse.double()[rest], logits.logsumexp(-1)[rest], atol=2e-3)
    return check(f"sparse_mla, relative error {error:.1e}",
                 bool(ok) and bool((lse[5] == -float("inf")).all()))


def check_select_tokens():
    torch.manual_seed(2)
    rows, heads, topk, pages = 70, 32, 512, 40
    keys = torch.randn(pages * 64, 128, device="cuda").to(torch.float8_e4m3fn)
    scales = torch.rand(pages * 64, device="cuda") + 0.5
    pool = torch.cat([keys.view(torch.uint8).view(pages, -1),
                      scales.view(torch.uint8).view(pages, 256)], 1).contiguous()
    q = torch.randn(rows, heads, 128, device="cuda").to(torch.float8_e4m3fn)
    weights = torch.rand(rows, heads, device="cuda")
    positions = torch.arange(rows, dtype=torch.int32, device="cuda") + pages * 64 - rows
    table = torch.arange(pages, dtype=torch.int32, device="cuda").view(1, pages)
    slots, lens = torch.ops.winnow.select_tokens(q, weights, pool, positions,
                                                 torch.zeros_like(positions), table, pages * 64,
                                                 topk)
    scores = torch.einsum("thd,sd->ths", q.double(), keys.double()).relu()
    scores = (scores * weights.double()[..., None]).sum(1) * scales.double()
    seen = torch.arange(pages * 64, device="cuda")[None] <= positions[:, None]
    scores = scores.masked_fill(~seen, -float("inf"))
    least = scores.topk(topk, 1).values[:, -1:]
    picked = scores.gather(1, slots.long())
    ok = bool((picked >= least * (1 - 2e-3)).all()) and bool((slots[:, 1:] > slots[:, :-1]).all())
    return check("select_tokens", ok and bool((lens == topk).all()))


if __name__ == "__main__":
    winnow_kernels.load(sys.argv[1] if len(sys.argv) > 1 else None)
    results = [check_sparse_mla(), check_select_tokens()]
    sys.exit(0 if all(results) else 1)
