#!/usr/bin/env python3
"""Times of other implementations for the cases of winnow_gpu_check, where Python has them.

Reads case names from standard input, one a line, and writes a JSON line
{"case": ..., "rival": ..., "us": ...} for each that flash_mla, deep_gemm or torch can run here; the
same shapes and the same way of timing: median of 10 event-timed calls, the L2 overwritten before
each. Every rival runs in a process of its own: one that crashes costs no other its times.
"""
import importlib
import json
import re
import subprocess
import sys

# What a rival's process has imported: it imports no other rival.
torch = flash_mla = deep_gemm = None


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
    """FlashMLA, heads padded to 64: its prefill over a bf16 cache, its decode over the 656-byte one
    for few rows."""
    padded = -(-heads // 64) * 64
    if rows < 1024:
        return sparse_mla_decode(rows, padded, topk, tokens)
    q = torch.randn(rows, padded, 576, device="cuda", dtype=torch.bfloat16)
    kv = torch.randn(tokens, 1, 576, device="cuda", dtype=torch.bfloat16)
    indices = torch.randint(tokens, (rows, 1, topk), device="cuda", dtype=torch.int32)
    us = median_us(lambda: flash_mla.flash_mla_sparse_fwd(q, kv, indices, 1 / 24))
    return f"flash_mla sparse prefill, bf16, {padded} heads", us


def sparse_mla_decode(rows, heads, topk, tokens):
    q = torch.randn(rows, 1, heads, 576, device="cuda", dtype=torch.bfloat16)
    cache = torch.zeros(tokens, 656, device="cuda", dtype=torch.uint8)
    cache[:, :512] = torch.randn(tokens, 512, device="cuda").to(torch.float8_e4m3fn).view(torch.uint8)
    cache[:, 512:528] = torch.full((tokens, 4), 0.25, device="cuda").view(torch.uint8)
    cache[:, 528:] = torch.randn(tokens, 64, device="cuda", dtype=torch.bfloat16).view(torch.uint8)
    cache = cache.view(torch.float8_e4m3fn).view(tokens // 64, 64, 1, 656)
    indices = torch.randint(tokens, (rows, 1, topk), device="cuda", dtype=torch.int32)
    plan, _ = flash_mla.get_mla_metadata()
    us = median_us(lambda: flash_mla.flash_mla_with_kvcache(
        q, cache, None, None, 512, plan, softmax_scale=1 / 24, is_fp8_kvcache=True, indices=indices))
    return f"flash_mla sparse decode, 656 bytes, {heads} heads", us


def logits_call(rows, tokens, heads):
    """DeepGEMM's ragged index logits, rows at the end of the context: the call."""
    q = torch.randn(rows, heads, 128, device="cuda").to(torch.float8_e4m3fn)
    k = torch.randn(tokens, 128, device="cuda").to(torch.float8_e4m3fn)
    scales = torch.rand(tokens, device="cuda")
    weights = torch.rand(rows, heads, device="cuda")
    begin = torch.zeros(rows, device="cuda", dtype=torch.int32)
    end = torch.arange(rows, device="cuda", dtype=torch.int32) + (tokens - rows + 1)
    return lambda: deep_gemm.fp8_mqa_logits(q, (k, scales), weights, begin, end, clean_logits=False)


def index_logits(rows, tokens, heads):
    return "deep_gemm fp8_mqa_logits", median_us(logits_call(rows, tokens, heads))


def paged_logits_call(rows, tokens, heads):
    """DeepGEMM's paged index logits, a row a sequence, pages of 64 keys: the call."""
    pages = tokens // 64
    q = torch.randn(rows, 1, heads, 128, device="cuda").to(torch.float8_e4m3fn)
    cache = torch.zeros(rows * pages, 64 * 132, device="cuda", dtype=torch.uint8)
    cache[:, :64 * 128] = torch.randn(rows * pages, 64 * 128, device="cuda").to(
        torch.float8_e4m3fn).view(torch.uint8)
    cache[:, 64 * 128:] = torch.rand(rows * pages, 64, device="cuda").view(torch.uint8)
    cache = cache.view(rows * pages, 64, 1, 132)
    weights = torch.rand(rows, heads, device="cuda")
    lengths = torch.full((rows, 1), tokens, device="cuda", dtype=torch.int32)
    table = torch.randperm(rows * pages, device="cuda").to(torch.int32).view(rows, pages)
    plan = deep_gemm.get_paged_mqa_logits_metadata(lengths, 64, deep_gemm.get_num_sms())
    return lambda: deep_gemm.fp8_paged_mqa_logits(q, cache, weights, lengths, table, plan, tokens)


def paged_index_logits(rows, tokens, heads):
    return "deep_gemm fp8_paged_mqa_logits", median_us(paged_logits_call(rows, tokens, heads))


def topk(rows, tokens):
    logits = torch.randn(rows, tokens, device="cuda")
    return "torch.topk", median_us(lambda: torch.topk(logits, 2048, dim=1))


def select_tokens(rows, tokens, heads):
    """DeepGEMM's index logits and torch.topk behind them."""
    many = rows >= 1024
    logits = (logits_call if many else paged_logits_call)(rows, tokens, heads)
    us = median_us(lambda: torch.topk(logits(), 2048, dim=1))
    return f"deep_gemm fp8_{'' if many else 'paged_'}mqa_logits, torch.topk", us


RIVALS = {  # by package, each a process: what it runs for which cases
    "flash_mla": [
        (re.compile(r"sparse_mla (\w+) rows (\d+) heads (\d+) topk (\d+) tokens (\d+)"
                    r"(?: overlap \d+)?(?: e4m3 queries)?(?: invariant)?$"), sparse_mla),
    ],
    "deep_gemm": [
        (re.compile(r"index_logits_prefill_(\d+)x(\d+)_h(\d+)$"), index_logits),
        (re.compile(r"index_logits_decode_(\d+)x(\d+)_h(\d+)$"), paged_index_logits),
        (re.compile(r"select_tokens_(\d+)x(\d+)_h(\d+)_\d+MiB$"), select_tokens),
    ],
    "torch": [(re.compile(r"topk_(\d+)x(\d+)$"), topk)],
}


def time_cases(names, package):
    try:
        globals()["torch"] = importlib.import_module("torch")
        globals()[package] = importlib.import_module(package)
    except ImportError as error:
        print(f"rivals: {error}", file=sys.stderr)
        return
    if not torch.cuda.is_available():
        sys.exit("no card: no rivals")
    timed = {}
    for name in names:
        for pattern, run in RIVALS[package]:
            match = pattern.match(name)
            if not match:
                continue
            arguments = tuple(int(v) if v.isdigit() else v for v in match.groups())
            key = (run, arguments)
            if run is sparse_mla:  # one cache and padded heads, whatever our case reads
                key = (run, (arguments[1], -(-arguments[2] // 64), *arguments[3:]))
            if key not in timed:
                try:
                    timed[key] = run(*arguments)
                except Exception as error:  # what a rival cannot run costs only its own line
                    print(f"rivals: {name}: {error}", file=sys.stderr)
                    timed[key] = None
                torch.cuda.empty_cache()
            if timed[key] is not None:
                rival, us = timed[key]
                print(json.dumps({"case": name, "rival": rival, "us": round(us, 2)}), flush=True)


def main():
    names = sys.stdin.read().splitlines()
    if len(sys.argv) > 1:
        time_cases(names, sys.argv[1])
        return
    for package in RIVALS:
        ended = subprocess.run([sys.executable, __file__, package], input="\n".join(names),
                               text=True)
        if ended.returncode != 0:
            print(f"rivals: {package} ended with {ended.returncode}", file=sys.stderr)


if __name__ == "__main__":
    main()
