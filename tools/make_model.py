#!/usr/bin/env python3
"""A random checkpoint in the layout of GLM-5: weights, config, tokenizer and chat template.

    tools/make_model.py --output DIR                        a few MB, real kernel widths
    tools/make_model.py --output DIR --fp8                  the same with 128x128 block scales
    tools/make_model.py --output DIR --preset glm5-widths   GLM-5's own widths, 3 layers, 4.3 GB
    tools/make_model.py --output DIR --set hidden_size=512 --set num_hidden_layers=6

The same arguments give the same bytes. Needs Python 3.9 and nothing else. Values repeat: each
tensor is a rotation of one block of random numbers, so that gigabytes take seconds.
"""
import argparse
import array
import json
import math
import pathlib
import random
import shutil
import struct

import make_tokenizer

TOOLS = pathlib.Path(__file__).resolve().parent
CHAT_TEMPLATE = TOOLS / "glm5_chat_template.jinja"
TOKENIZER_SIZE = 512

SMALL = {
    "vocab_size": 512, "hidden_size": 256, "intermediate_size": 512, "moe_intermediate_size": 128,
    "num_hidden_layers": 4, "num_attention_heads": 8, "num_key_value_heads": 8,
    "q_lora_rank": 256, "kv_lora_rank": 512, "qk_nope_head_dim": 64, "qk_rope_head_dim": 64,
    "v_head_dim": 64, "first_k_dense_replace": 1, "n_routed_experts": 8, "n_shared_experts": 1,
    "num_experts_per_tok": 2, "index_n_heads": 8, "index_head_dim": 128, "index_topk": 64,
    "index_topk_freq": 2, "index_skip_topk_offset": 2, "num_nextn_predict_layers": 0,
    "max_position_embeddings": 8192,
}
GLM5_WIDTHS = {
    **SMALL, "vocab_size": 8192, "hidden_size": 6144, "intermediate_size": 12288,
    "moe_intermediate_size": 2048, "num_hidden_layers": 3, "num_attention_heads": 64,
    "num_key_value_heads": 64, "q_lora_rank": 2048, "qk_nope_head_dim": 192, "v_head_dim": 256,
    "n_routed_experts": 16, "num_experts_per_tok": 8, "index_n_heads": 32, "index_topk": 2048,
    "index_topk_freq": 1, "max_position_embeddings": 202752,
}
PRESETS = {"small": SMALL, "glm5-widths": GLM5_WIDTHS}

SCALE_BLOCK = 128
# Odd, so that no row width divides it and rows differ.
BLOCK_ELEMENTS = 262_147
ITEM_BYTES = {"F32": 4, "BF16": 2, "F8_E4M3": 1}
E4M3_STD = 149.0  # three of them are just below the largest value, 448


def is_full(config, layer):
    """The layer owns an indexer; the draft layers behind the last always do."""
    if layer >= config["num_hidden_layers"]:
        return True
    past = max(layer - config["index_skip_topk_offset"] + 1, 0)
    return past % config["index_topk_freq"] == 0


def attention_shapes(c):
    heads = c["num_attention_heads"]
    qk_head_dim = c["qk_nope_head_dim"] + c["qk_rope_head_dim"]
    return {
        "q_a_proj": (c["q_lora_rank"], c["hidden_size"]),
        "q_b_proj": (heads * qk_head_dim, c["q_lora_rank"]),
        "kv_a_proj_with_mqa": (c["kv_lora_rank"] + c["qk_rope_head_dim"], c["hidden_size"]),
        "kv_b_proj": (heads * (c["qk_nope_head_dim"] + c["v_head_dim"]), c["kv_lora_rank"]),
        "o_proj": (c["hidden_size"], heads * c["v_head_dim"]),
    }


class Plan:
    """Names, types and shapes of every tensor, and how its values are made."""

    def __init__(self, config, fp8):
        self.config = config
        self.fp8 = fp8
        self.tensors = []  # (name, dtype, shape, kind)

    def add(self, name, dtype, shape, kind):
        self.tensors.append((name, dtype, tuple(shape), kind))

    def linear(self, name, shape):
        if not self.fp8:
            self.add(name + ".weight", "BF16", shape, "weight")
            return
        self.add(name + ".weight", "F8_E4M3", shape, "weight")
        blocks = [math.ceil(extent / SCALE_BLOCK) for extent in shape]
        self.add(name + ".weight_scale_inv", "F32", blocks, f"scale {shape[1]}")

    def norm(self, name, size):
        self.add(name + ".weight", "BF16", (size,), "norm")

    def mlp(self, prefix, width):
        hidden = self.config["hidden_size"]
        self.linear(prefix + "gate_proj", (width, hidden))
        self.linear(prefix + "up_proj", (width, hidden))
        self.linear(prefix + "down_proj", (hidden, width))

    def indexer(self, prefix):
        c = self.config
        dim, heads = c["index_head_dim"], c["index_n_heads"]
        self.linear(prefix + "wq_b", (heads * dim, c["q_lora_rank"]))
        self.linear(prefix + "wk", (dim, c["hidden_size"]))
        self.add(prefix + "weights_proj.weight", "BF16", (heads, c["hidden_size"]), "weight")
        self.norm(prefix + "k_norm", dim)
        self.add(prefix + "k_norm.bias", "BF16", (dim,), "bias")

    def moe(self, prefix):
        c = self.config
        experts = c["n_routed_experts"]
        self.add(prefix + "gate.weight", "BF16", (experts, c["hidden_size"]), "weight")
        self.add(prefix + "gate.e_score_correction_bias", "F32", (experts,), "router bias")
        for expert in range(experts):
            self.mlp(f"{prefix}experts.{expert}.", c["moe_intermediate_size"])
        self.mlp(prefix + "shared_experts.", c["n_shared_experts"] * c["moe_intermediate_size"])

    def layer(self, i):
        c = self.config
        prefix = f"model.layers.{i}."
        self.norm(prefix + "input_layernorm", c["hidden_size"])
        self.norm(prefix + "post_attention_layernorm", c["hidden_size"])
        self.norm(prefix + "self_attn.q_a_layernorm", c["q_lora_rank"])
        self.norm(prefix + "self_attn.kv_a_layernorm", c["kv_lora_rank"])
        for name, shape in attention_shapes(c).items():
            self.linear(f"{prefix}self_attn.{name}", shape)
        if is_full(c, i):
            self.indexer(prefix + "self_attn.indexer.")
        if i < c["first_k_dense_replace"]:
            self.mlp(prefix + "mlp.", c["intermediate_size"])
        else:
            self.moe(prefix + "mlp.")

    def draft_layer(self, i):
        hidden = self.config["hidden_size"]
        prefix = f"model.layers.{i}."
        self.layer(i)
        self.add(prefix + "eh_proj.weight", "BF16", (hidden, 2 * hidden), "weight")
        for name in ("enorm", "hnorm", "shared_head.norm"):
            self.norm(prefix + name, hidden)

    def model(self):
        c = self.config
        table = (c["vocab_size"], c["hidden_size"])
        self.add("model.embed_tokens.weight", "BF16", table, "embedding")
        for i in range(c["num_hidden_layers"]):
            self.layer(i)
        for i in range(c["num_nextn_predict_layers"]):
            self.draft_layer(c["num_hidden_layers"] + i)
        self.norm("model.norm", c["hidden_size"])
        self.add("lm_head.weight", "BF16", table, "weight")
        # Wide elements first, so that every tensor is aligned.
        return sorted(self.tensors, key=lambda t: (-ITEM_BYTES[t[1]], t[0]))


def to_bf16(values):
    raw = array.array("f", values).tobytes()
    out = bytearray(2 * len(values))
    out[0::2] = raw[2::4]
    out[1::2] = raw[3::4]
    return bytes(out)


def to_e4m3(value):
    """Nearest code of a finite value within +-448 (ties away from zero)."""
    sign = 0x80 if value < 0 else 0
    magnitude = abs(value)
    exponent = max(math.frexp(magnitude)[1] - 1, -6) if magnitude > 0 else -6
    steps = math.floor(magnitude * 2.0 ** (3 - exponent) + 0.5)  # eighths of 2^exponent
    if steps == 16:
        exponent, steps = exponent + 1, 8
    return sign | (steps if steps < 8 else ((exponent + 7) << 3) + steps - 8)


class Values:
    """Bytes of each tensor from its name alone."""

    def __init__(self, seed):
        self.seed = seed
        self.blocks = {}
        rng = random.Random(f"{seed}/block")
        draws = array.array("H", rng.randbytes(6 * BLOCK_ELEMENTS))
        # A sum of three uniform numbers: near enough to a normal one, and no more than 3 of its
        # standard deviations from 0. Only sums and products: the same everywhere.
        self.normal = [(a + b + c) / 32768.0 - 3.0
                       for a, b, c in zip(draws[0::3], draws[1::3], draws[2::3])]

    def block(self, dtype, std):
        key = (dtype, std)
        if key not in self.blocks:
            if dtype == "BF16":
                data = to_bf16([std * v for v in self.normal])
            else:
                codes = {}
                data = bytes(codes.setdefault(v, to_e4m3(v * E4M3_STD)) for v in self.normal)
            self.blocks[key] = memoryview(data)
        return self.blocks[key]

    def small(self, rng, dtype, count, low, high):
        values = [low + (high - low) * rng.random() for _ in range(count)]
        return to_bf16(values) if dtype == "BF16" else array.array("f", values).tobytes()

    def pieces(self, name, dtype, shape, kind):
        """Yields the tensor's bytes."""
        rng = random.Random(f"{self.seed}/{name}")
        count = math.prod(shape)
        if kind == "norm":
            yield self.small(rng, dtype, count, 0.9, 1.1)
        elif kind == "bias":
            yield self.small(rng, dtype, count, -0.1, 0.1)
        elif kind == "router bias":
            yield self.small(rng, dtype, count, 6.82, 7.06)  # where GLM-5's lie
        elif kind.startswith("scale"):
            typical = int(kind.split()[1]) ** -0.5 / E4M3_STD
            yield self.small(rng, dtype, count, 0.75 * typical, 1.25 * typical)
        else:
            std = 1.0 if kind == "embedding" else shape[-1] ** -0.5
            block = self.block(dtype, std if dtype == "BF16" else 1.0)
            left = count * ITEM_BYTES[dtype]
            start = rng.randrange(BLOCK_ELEMENTS) * ITEM_BYTES[dtype]
            while left > 0:
                piece = block[start:start + left]
                yield piece
                left -= len(piece)
                start = 0


def tensor_bytes(tensor):
    return math.prod(tensor[2]) * ITEM_BYTES[tensor[1]]


def write_shard(path, tensors, values):
    header, offset = {"__metadata__": {"format": "pt"}}, 0
    for tensor in tensors:
        end = offset + tensor_bytes(tensor)
        header[tensor[0]] = {"dtype": tensor[1], "shape": tensor[2], "data_offsets": [offset, end]}
        offset = end
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for tensor in tensors:
            for piece in values.pieces(*tensor):
                file.write(piece)


def write_weights(out, tensors, values, num_shards):
    for old in [*out.glob("model*.safetensors"), *out.glob("model.safetensors.index.json")]:
        old.unlink()
    if num_shards == 1:
        write_shard(out / "model.safetensors", tensors, values)
        return
    total = sum(map(tensor_bytes, tensors))
    weight_map, shards, done = {}, [[] for _ in range(num_shards)], 0
    for tensor in tensors:
        shards[min(done * num_shards // total, num_shards - 1)].append(tensor)
        done += tensor_bytes(tensor)
    for i, shard in enumerate(shards, 1):
        name = f"model-{i:05}-of-{num_shards:05}.safetensors"
        write_shard(out / name, shard, values)
        weight_map.update((tensor[0], name) for tensor in shard)
    make_tokenizer.write_json(out / "model.safetensors.index.json",
                              {"metadata": {"total_size": total}, "weight_map": weight_map})


def write_configs(out, config, fp8, eos):
    layers = range(config["num_hidden_layers"])
    full = {
        "architectures": ["GlmMoeDsaForCausalLM"], "model_type": "glm_moe_dsa",
        "dtype": "bfloat16", **config,
        "indexer_types": ["full" if is_full(config, i) else "shared" for i in layers],
        "indexer_rope_interleave": True, "rope_interleave": True, "moe_layer_freq": 1,
        "n_group": 1, "topk_group": 1, "norm_topk_prob": True, "routed_scaling_factor": 2.5,
        "scoring_func": "sigmoid", "topk_method": "noaux_tc", "hidden_act": "silu",
        "attention_bias": False, "rms_norm_eps": 1e-5, "tie_word_embeddings": False,
        "rope_parameters": {"rope_theta": 1000000, "rope_type": "default"},
        "eos_token_id": eos, "pad_token_id": eos[0]}
    if fp8:
        full["quantization_config"] = {
            "activation_scheme": "dynamic", "fmt": "e4m3", "quant_method": "fp8",
            "weight_block_size": [SCALE_BLOCK, SCALE_BLOCK]}
    make_tokenizer.write_json(out / "config.json", full)
    make_tokenizer.write_json(out / "generation_config.json",
                              {"do_sample": True, "temperature": 1.0, "top_p": 0.95,
                               "eos_token_id": eos, "pad_token_id": eos[0]})


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=pathlib.Path, required=True, metavar="DIR")
    parser.add_argument("--preset", choices=PRESETS, default="small")
    parser.add_argument("--fp8", action="store_true", help="e4m3 linears with 128x128 scales")
    parser.add_argument("--shards", type=int, default=1, help="weight files (default 1)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--set", action="append", default=[], metavar="KEY=NUMBER",
                        help="overrides a size of config.json")
    args = parser.parse_args()
    config = dict(PRESETS[args.preset])
    for assignment in args.set:
        key, _, number = assignment.partition("=")
        if key not in config or not number.isdigit():
            parser.error(f"--set {assignment}: KEY is one of {', '.join(config)}")
        config[key] = int(number)
    if config["vocab_size"] < TOKENIZER_SIZE:
        parser.error(f"vocab_size is at least {TOKENIZER_SIZE}")
    return args, config


def main():
    args, config = parse_arguments()
    args.output.mkdir(parents=True, exist_ok=True)
    eos = make_tokenizer.make_tokenizer(args.output, TOKENIZER_SIZE)
    write_configs(args.output, config, args.fp8, eos)
    shutil.copyfile(CHAT_TEMPLATE, args.output / "chat_template.jinja")
    tensors = Plan(config, args.fp8).model()
    write_weights(args.output, tensors, Values(args.seed), args.shards)
    total = sum(map(tensor_bytes, tensors))
    print(f"{args.output}: {len(tensors)} tensors, {total / 1e6:,.1f} MB")


if __name__ == "__main__":
    main()
