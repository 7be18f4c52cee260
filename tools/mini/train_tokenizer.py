#!/usr/bin/env python3
"""Trains winnow-mini's tokenizer on generated text: byte-level BPE in the layout of GLM-5.

    tools/mini/train_tokenizer.py --output models/winnow-mini [--size 2048]

GLM's pre-tokenizer pattern, 256 byte tokens, merges, then GLM's control tokens in GLM's order with
GLM's `special` flags. Digits are never merged, so that each is one token and sums can be learnt.
Needs the `tokenizers` package. The same seed and size give the same file.
"""
import argparse
import json
import pathlib
import random
import re
import sys

import tokenizers
from tokenizers import decoders, models, pre_tokenizers, processors, trainers

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "tools/mini")]
from data import sample  # noqa: E402
from data.render import rendered_text  # noqa: E402
from make_tokenizer import GLM_PATTERN, SPECIAL, VISIBLE  # noqa: E402

# Characters of text by skill: each has the words it needs, none drowns the others.
AMOUNTS = {"problem": 2_000_000, "problem_chat": 500_000, "needle": 1_500_000, "tools": 1_500_000,
           "choices": 1_500_000, "talk": 600_000}
CONTROL = re.compile("|".join(map(re.escape, SPECIAL + VISIBLE)))


def training_texts(seed):
    rng = random.Random(seed)
    for skill, amount in AMOUNTS.items():
        while amount > 0:
            text = rendered_text(sample(skill, rng, "train"))
            amount -= len(text)
            # A lone digit cannot merge: its neighbours are in other words.
            yield from (re.sub(r"\d+", "0", part) for part in CONTROL.split(text))


def byte_level(**changes):
    return {"add_prefix_space": False, "trim_offsets": True, "use_regex": False, **changes}


def train(size, seed):
    tokenizer = tokenizers.Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(tokenizers.Regex(GLM_PATTERN), "isolated"),
        pre_tokenizers.ByteLevel(**byte_level())])
    tokenizer.post_processor = processors.ByteLevel(**byte_level())
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=size - len(SPECIAL) - len(VISIBLE), show_progress=False, min_frequency=2,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    tokenizer.train_from_iterator(training_texts(seed), trainer)
    tokenizer.add_special_tokens(SPECIAL)
    tokenizer.add_tokens([tokenizers.AddedToken(text, normalized=False) for text in VISIBLE])
    return tokenizer


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=pathlib.Path, required=True, metavar="DIR")
    parser.add_argument("--size", type=int, default=2048, help="tokens in all (default 2048)")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    tokenizer = train(args.size, args.seed)
    if tokenizer.get_vocab_size() != args.size:
        raise SystemExit(f"the text gives {tokenizer.get_vocab_size()} tokens, {args.size} asked")
    args.output.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(args.output / "tokenizer.json"))
    config = {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "<|endoftext|>",
              "pad_token": "<|endoftext|>", "padding_side": "left",
              "clean_up_tokenization_spaces": False, "model_max_length": 16384}
    text = json.dumps(config, indent=1) + "\n"
    (args.output / "tokenizer_config.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
