#!/usr/bin/env python3
"""Compares this folder's arithmetic with Winnow's: exports a model in fp32 and scores the same ids.

    tools/mini/check_export.py --winnow build/cpu/winnow [--checkpoint DIR] [--length 700]

Without --checkpoint the weights are random, and large enough that every part matters. Ids are
random. Logits are compared in the rows that see no more than index_topk tokens; behind them the
indexers' choices are, because one token that falls the other way at the border moves every later
row of a random model.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

import torch
from safetensors.torch import load_file

from checkpoints import load_masters
from export import converted, write_shards
from model import Model, load_config
from packed_attention import Packed

SAME_SHARE = 0.98
ROOT = pathlib.Path(__file__).resolve().parents[2]


def random_weights(model, seed):
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, p in model.named_parameters():
            if p.ndim == 1:
                p.add_(torch.randn(p.shape, generator=generator) * 0.1)
            else:
                p.copy_(torch.randn(p.shape, generator=generator) * p.shape[-1] ** -0.5)
        for module in model.modules():
            if hasattr(module, "e_score_correction_bias"):
                module.e_score_correction_bias.copy_(
                    torch.randn(module.e_score_correction_bias.shape, generator=generator) * 0.1)


def torch_forward(model, ids):
    """Logits [T, vocab] and the choice of every full layer [T, T]."""
    ids = torch.tensor([ids])
    batch = Packed(ids, torch.zeros_like(ids), torch.zeros(ids.shape), None, sparse=True)
    chosen, select = [], model.select

    def recorded(*args):
        chosen.append(select(*args))
        return chosen[-1]
    model.select = recorded
    with torch.no_grad():
        logits = model.lm_head(model(batch)[0])[0]
    return logits, [mask[0] for mask in chosen]


def same_choices(mask, slots, first):
    """(tokens chosen by both, tokens chosen) in the rows from `first` on."""
    theirs = torch.zeros_like(mask)
    rows = torch.arange(len(mask))[:, None].expand_as(slots)
    theirs[rows[slots >= 0], slots[slots >= 0].long()] = True
    return (mask & theirs)[first:].sum().item(), theirs[first:].sum().item()


def winnow_forward(winnow, folder, ids):
    with tempfile.TemporaryDirectory() as tmp:
        pathlib.Path(f"{tmp}/in.jsonl").write_text(json.dumps({"input_ids": ids}) + "\n")
        subprocess.run([winnow, "score", "--model-path", folder, "--input", f"{tmp}/in.jsonl",
                        "--output", f"{tmp}/out.safetensors", "--precision", "reference",
                        "--dump", "topk"], check=True)
        return load_file(f"{tmp}/out.safetensors")


def main():
    ap = argparse.ArgumentParser(description=__doc__,
                                 formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--winnow", default=ROOT / "build" / "cpu" / "winnow")
    ap.add_argument("--config", default=ROOT / "models" / "winnow-mini" / "config.json")
    ap.add_argument("--checkpoint")
    ap.add_argument("--length", type=int, default=400)
    ap.add_argument("--tol", type=float, default=1e-3)
    args = ap.parse_args()
    config = load_config(args.config)
    model = Model(config).float()
    if args.checkpoint:
        load_masters(model, args.checkpoint)
    else:
        random_weights(model, 1)
    ids = torch.randint(config.vocab_size, (args.length,),
                        generator=torch.Generator().manual_seed(2)).tolist()
    with tempfile.TemporaryDirectory() as folder:
        write_shards(pathlib.Path(folder), converted(model, "fp32"))
        raw = json.loads(pathlib.Path(args.config).read_text())
        raw.pop("quantization_config", None)
        pathlib.Path(folder, "config.json").write_text(json.dumps(raw))
        for name in ("tokenizer.json", "chat_template.jinja"):
            source = pathlib.Path(args.config).parent / name
            if source.exists():
                pathlib.Path(folder, name).write_bytes(source.read_bytes())
        got = winnow_forward(args.winnow, folder, ids)
    logits, masks = torch_forward(model, ids)
    rows = min(config.index_topk, len(ids))
    worst = (logits - got["case0.logits"])[:rows].abs().max().item()
    print(f"largest difference of logits in {rows} rows: {worst:.1e}")
    full = [i for i, kind in enumerate(config.indexer_types) if kind == "full"]
    shares = []
    for layer, mask in zip(full, masks):
        both, chosen = same_choices(mask, got[f"case0.topk.layer{layer}"], rows)
        shares.append(both / max(chosen, 1))
        print(f"layer {layer}: {both} of {chosen} chosen tokens are the same")
    return int(worst > args.tol or min(shares) < SAME_SHARE)


if __name__ == "__main__":
    sys.exit(main())
