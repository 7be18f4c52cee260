#!/usr/bin/env python3
"""Writes a trained model in the hub layout of GLM-5-FP8.

    tools/mini/export.py CHECKPOINT --config models/winnow-mini/config.json --output DIR

CHECKPOINT is a folder of master-*.safetensors that train.py wrote (bf16). Linears become e4m3 with
128 x 128 block scales; embeddings, head, norms, router, weights_proj and eh_proj stay bf16, the
router's bias fp32. --bf16 keeps everything bf16, --fp32 everything fp32 (to compare arithmetic).
"""
import argparse
import json
import pathlib

import torch
from safetensors.torch import load_file, save_file

from checkpoints import load_masters
from fp8 import dequantise, quantise
from model import Model, load_config

SHARD_BYTES = 14_000_000
PLAIN_ENDINGS = ("layernorm.weight", "norm.weight", "norm.bias", "mlp.gate.weight",
                 "weights_proj.weight", "eh_proj.weight", "embed_tokens.weight", "lm_head.weight")


def hub_tensors(model):
    """(hub name, tensor) of everything; stacked experts taken apart."""
    for name, tensor in model.state_dict().items():
        prefix = "" if name.startswith("lm_head") else "model."
        if not name.endswith(("mlp.gate_proj", "mlp.up_proj", "mlp.down_proj")):
            name = name.replace("mlp.e_score", "mlp.gate.e_score")
            yield prefix + name, tensor
            continue
        head, part = name.rsplit(".", 1)
        for expert, weight in enumerate(tensor[:-1]):
            yield f"{prefix}{head}.experts.{expert}.{part}.weight", weight
        yield f"{prefix}{head}.shared_experts.{part}.weight", tensor[-1]


@torch.no_grad()
def load_export(model, folder):
    """Fills the model from an exported folder; FP8 weights come back as they were rounded."""
    stored = {}
    for path in sorted(pathlib.Path(folder).glob("model-*.safetensors")):
        stored.update(load_file(path))
    for name, tensor in hub_tensors(model):
        value, scales = stored[name], stored.get(name + "_scale_inv")
        tensor.copy_(value if scales is None else dequantise(value, scales))


def converted(model, precision):
    """Hub tensors in their stored types."""
    out = {}
    for name, tensor in hub_tensors(model):
        tensor = tensor.detach()
        if name.endswith("e_score_correction_bias"):
            out[name] = tensor.float()
        elif precision == "fp32":
            out[name] = tensor.float().contiguous()
        elif precision == "bf16" or name.endswith(PLAIN_ENDINGS):
            out[name] = tensor.bfloat16().contiguous()
        else:
            out[name], out[name + "_scale_inv"] = quantise(tensor)
    return out


def write_shards(out, tensors, shard_bytes=SHARD_BYTES):
    for old in [*out.glob("model*.safetensors"), *out.glob("model.safetensors.index.json")]:
        old.unlink()
    shards, size = [{}], 0
    for name, tensor in tensors.items():
        size_of = tensor.numel() * tensor.element_size()
        # A weight and its scales stay together.
        if size + size_of > shard_bytes and not name.endswith("_scale_inv"):
            shards.append({})
            size = 0
        shards[-1][name] = tensor
        size += size_of
    weight_map = {}
    for i, shard in enumerate(shards, 1):
        file = f"model-{i:05}-of-{len(shards):05}.safetensors"
        save_file(shard, out / file, metadata={"format": "pt"})
        weight_map.update(dict.fromkeys(shard, file))
    total = sum(t.numel() * t.element_size() for t in tensors.values())
    index = {"metadata": {"total_size": total}, "weight_map": dict(sorted(weight_map.items()))}
    (out / "model.safetensors.index.json").write_text(json.dumps(index, indent=1) + "\n")
    return total


def main():
    ap = argparse.ArgumentParser(description=__doc__,
                                 formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("checkpoint", help="folder of master-*.safetensors")
    ap.add_argument("--config", type=pathlib.Path, required=True)
    ap.add_argument("--output", type=pathlib.Path, required=True)
    precision = ap.add_mutually_exclusive_group()
    precision.add_argument("--bf16", action="store_true")
    precision.add_argument("--fp32", action="store_true")
    args = ap.parse_args()
    model = Model(load_config(args.config))
    load_masters(model, args.checkpoint)
    args.output.mkdir(parents=True, exist_ok=True)
    chosen = "fp32" if args.fp32 else "bf16" if args.bf16 else "fp8"
    total = write_shards(args.output, converted(model, chosen))
    target = args.output / "config.json"
    if target.resolve() != args.config.resolve():
        config = json.loads(args.config.read_text())
        if chosen != "fp8":
            config.pop("quantization_config", None)
        target.write_text(json.dumps(config, indent=2) + "\n")
    print(f"{args.output}: {total / 1e6:.2f} MB")


if __name__ == "__main__":
    main()
