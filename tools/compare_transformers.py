#!/usr/bin/env python3
"""Prefill and decode of one bf16 checkpoint, Winnow beside Hugging Face transformers.

    tools/make_model.py --output DIR --preset glm5-widths
    tools/compare_transformers.py --model-path DIR [--threads 2] [--winnow build/cpu/winnow]

Both run alone, one after the other, on the same cores: a prefill of --prefill-rows tokens, then
single tokens behind it. Needs torch and transformers (5.0 or newer, which knows GlmMoeDsa).
"""

import argparse
import json
import statistics
import subprocess
import time


def measure_winnow(args):
    command = [args.winnow, "bench", "offline", "--model-path", args.model_path, "--json",
               "--prefill-rows", str(args.prefill_rows), "--contexts", str(args.prefill_rows)]
    if args.threads:
        command += ["--threads", str(args.threads)]
    report = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return {row["step"]: row["milliseconds"] for row in report["results"]}


def measure_transformers(args):
    import torch
    from transformers import AutoModelForCausalLM

    if args.threads:
        torch.set_num_threads(args.threads)
    model = AutoModelForCausalLM.from_pretrained(args.model_path, dtype=torch.bfloat16).eval()
    ids = torch.randint(0, model.config.vocab_size, (1, args.prefill_rows),
                        generator=torch.Generator().manual_seed(1))
    times = {"prefill": [], "decode": []}
    with torch.inference_mode():
        for _ in range(args.repeats):
            begin = time.perf_counter()
            out = model(ids, use_cache=True, logits_to_keep=1)
            times["prefill"].append(time.perf_counter() - begin)
        for _ in range(args.decode_steps + 1):
            begin = time.perf_counter()
            out = model(ids[:, :1], past_key_values=out.past_key_values, use_cache=True)
            times["decode"].append(time.perf_counter() - begin)
    times["decode"].pop(0)
    return {step: 1e3 * statistics.median(seconds) for step, seconds in times.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--model-path", required=True, help="bf16 checkpoint folder")
    parser.add_argument("--winnow", default="build/cpu/winnow", help="the program")
    parser.add_argument("--threads", type=int, default=0, help="0 = one for each core")
    parser.add_argument("--prefill-rows", type=int, default=512)
    parser.add_argument("--decode-steps", type=int, default=8)
    parser.add_argument("--repeats", type=int, default=2, help="prefills of transformers")
    parser.add_argument("--json", action="store_true", help="for scripts")
    args = parser.parse_args()

    winnow = measure_winnow(args)
    transformers = measure_transformers(args)
    if args.json:
        print(json.dumps({"winnow_ms": winnow, "transformers_ms": transformers}))
        return
    print(f"{'step':8} {'winnow ms':>12} {'transformers ms':>16} {'ratio':>7}")
    for step in ("prefill", "decode"):
        ratio = transformers[step] / winnow[step]
        print(f"{step:8} {winnow[step]:12.1f} {transformers[step]:16.1f} {ratio:6.1f}x")


if __name__ == "__main__":
    main()
