#!/usr/bin/env python3
"""Times of other implementations for the cases of winnow_gpu_check, where Python has them.

Reads case names from standard input, one a line, and writes a JSON line
{"case": ..., "rival": ..., "us": ...} for each that flash_mla, deep_gemm or torch can run here; the
same shapes and the same way of timing: median of 10 event-timed calls, the L2 overwritten before
each.
"""
import json
import re
import sys

try:
    import torch
except ImportError:
    sys.exit("no torch: no rivals")
try:
    import flash_mla
except ImportError:
    flash_mla = None
try:
    import deep_gemm
except ImportError:
    deep_gemm = None


def median_us(call, repeats=10):
    flush = torch.empty(256 << 20, dtype=torch.uint8, device="cuda")
    times = []
    for i in range(repeats + 2):
        flush.fill_(i)
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        call()
        end.record()
        end.synchronize()
        if i >= 2:
            times.append(begin.elapsed_time(end) * 1000)
    return sorted(times)[len(times) // 2]


def sparse_mla(layout, rows, heads, topk, tokens):
    """FlashMLA's sparse prefill: bf16 cache, heads padded to 64."""
    if flash_mla is None or rows < 1024:
        return None
    padded = -(-heads // 64) * 64
    q = torch.randn(rows, padded, 576, device="cuda", dtype=torch.bfloat16)
    kv = torch.randn(tokens, 1, 576, device="cuda", dtype=torch.bfloat16)
    indices = torch.randint(tokens, (rows, 1, topk), device="cuda", dtype=torch.int32)
    us = median_us(lambda: flash_mla.flash_mla_sparse_fwd(q, kv, indices, 1 / 24))
    return f"flash_mla sparse prefill, bf16, {padded} heads", us


def index_logits(rows, tokens, heads):
    """DeepGEMM's ragged index logits, rows at the end of the context."""
    if deep_gemm is None:
        return None
    q = torch.randn(rows, heads, 128, device="cuda").to(torch.float8_e4m3fn)
    k = torch.randn(tokens, 128, device="cuda").to(torch.float8_e4m3fn)
    scales = torch.rand(tokens, device="cuda")
    weights = torch.rand(rows, heads, device="cuda")
    begin = torch.zeros(rows, device="cuda", dtype=torch.int32)
    end = torch.arange(rows, device="cuda", dtype=torch.int32) + (tokens - rows + 1)
    us = median_us(lambda: deep_gemm.fp8_mqa_logits(q, (k, scales), weights, begin, end))
    return "deep_gemm fp8_mqa_logits", us


def topk(rows, tokens):
    logits = torch.randn(rows, tokens, device="cuda")
    return "torch.topk", median_us(lambda: torch.topk(logits, 2048, dim=1))


CASES = [
    (re.compile(r"sparse_mla (\w+) rows (\d+) heads (\d+) topk (\d+) tokens (\d+)$"), sparse_mla),
    (re.compile(r"index_logits_prefill_(\d+)x(\d+)_h(\d+)$"), index_logits),
    (re.compile(r"topk_(\d+)x(\d+)$"), topk),
]


def main():
    if not torch.cuda.is_available():
        sys.exit("no card: no rivals")
    timed = {}
    for name in sys.stdin.read().splitlines():
        for pattern, run in CASES:
            match = pattern.match(name)
            if not match:
                continue
            arguments = tuple(int(v) if v.isdigit() else v for v in match.groups())
            key = (run, arguments)
            if run is sparse_mla:  # a bf16 cache and padded heads, whatever our case reads
                key = (run, (arguments[1], -(-arguments[2] // 64), *arguments[3:]))
            if key not in timed:
                timed[key] = run(*arguments)
                torch.cuda.empty_cache()
            if timed[key] is not None:
                rival, us = timed[key]
                print(json.dumps({"case": name, "rival": rival, "us": round(us, 2)}), flush=True)


if __name__ == "__main__":
    main()
