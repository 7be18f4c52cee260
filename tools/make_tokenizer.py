#!/usr/bin/env python3
"""A small byte-level tokenizer in the layout of GLM-5: tokenizer.json and tokenizer_config.json.

256 byte tokens, merges learnt from a few sentences, then GLM's control tokens in GLM's order with
GLM's `special` flags: role tokens vanish from decoded text, think and tool tags stay.

    tools/make_tokenizer.py --output DIR [--size 512]
"""
import argparse
import collections
import json
import pathlib
import re

SPECIAL = ["<|endoftext|>", "[MASK]", "[gMASK]", "[sMASK]", "<sop>", "<eop>", "<|system|>",
           "<|user|>", "<|assistant|>", "<|observation|>", "<|begin_of_image|>",
           "<|end_of_image|>", "<|begin_of_video|>", "<|end_of_video|>", "<|begin_of_audio|>",
           "<|end_of_audio|>", "<|begin_of_transcription|>", "<|end_of_transcription|>",
           "<|code_prefix|>", "<|code_middle|>", "<|code_suffix|>"]
VISIBLE = ["<think>", "</think>", "<tool_call>", "</tool_call>", "<tool_response>",
           "</tool_response>", "<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>",
           "/nothink", "<|begin_of_box|>", "<|end_of_box|>", "<|image|>", "<|video|>"]
EOS = ["<|endoftext|>", "<|user|>", "<|observation|>"]

GLM_PATTERN = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
               r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")

TEXT = """
To winnow is to throw the grain into the wind and keep what is worth keeping. The wind takes the
chaff, the grain falls back, and the work is done again with what is left. There was a time when
every village had a floor for it, and people would wait there for a steady wind in the evening.
What is the answer to the question? It is not hard to say what we know and what we do not know,
but it is hard to say it in a few words. The first thing to do is to look at the numbers, then to
think about where they come from, and only after that should one try to change them. You can read
the code, you can run the tests, and you can ask for help when something does not work as it
should. This is how it goes with machines and with other things: they do what they are told, and
they are told more than anyone meant to tell them. One two three four five six seven eight nine
ten. She said that he would come before the morning, and that they were going to have some bread.
Please write a short story about the sea. Explain how a model reads its input from left to right.
"""


def byte_alphabet():
    """The printable stand-in of each byte, as every byte-level BPE uses it."""
    plain = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    letters = {b: chr(b) for b in plain}
    for byte in range(256):
        if byte not in letters:
            letters[byte] = chr(256 + len(letters) - len(plain))
    return letters


def learn_merges(count, letters):
    words = collections.Counter(re.findall(r"\s?\w+|[^\w\s]+|\s+", TEXT))
    split = {word: [letters[b] for b in word.encode()] for word in words}
    merges = []
    while len(merges) < count:
        pairs = collections.Counter()
        for word, pieces in split.items():
            for pair in zip(pieces, pieces[1:]):
                pairs[pair] += words[word]
        if not pairs:
            raise SystemExit(f"the text gives {len(merges)} merges, {count} asked")
        best = min(pairs, key=lambda pair: (-pairs[pair], pair))
        merges.append(best)
        for pieces in split.values():
            i = 0
            while i + 1 < len(pieces):
                if (pieces[i], pieces[i + 1]) == best:
                    pieces[i:i + 2] = ["".join(best)]
                i += 1
    return merges


def make_tokenizer(out, size):
    """Writes the two files; returns the ids of the end-of-sequence tokens."""
    letters = byte_alphabet()
    merges = learn_merges(size - 256 - len(SPECIAL) - len(VISIBLE), letters)
    vocab = {}
    for piece in [*sorted(letters.values()), *("".join(pair) for pair in merges)]:
        vocab.setdefault(piece, len(vocab))
    first_added = len(vocab)
    added = [{"id": first_added + i, "content": text, "single_word": False, "lstrip": False,
              "rstrip": False, "normalized": False, "special": i < len(SPECIAL)}
             for i, text in enumerate(SPECIAL + VISIBLE)]
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True,
                  "use_regex": False}
    tokenizer = {
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": added,
        "normalizer": None,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
            {"type": "Split", "pattern": {"Regex": GLM_PATTERN}, "behavior": "Isolated",
             "invert": False}, byte_level]},
        "post_processor": byte_level, "decoder": {**byte_level, "use_regex": True},
        "model": {"type": "BPE", "dropout": None, "unk_token": None,
                  "continuing_subword_prefix": None, "end_of_word_suffix": None,
                  "fuse_unk": False, "byte_fallback": False, "ignore_merges": False,
                  "vocab": vocab, "merges": [" ".join(pair) for pair in merges]}}
    config = {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "<|endoftext|>",
              "pad_token": "<|endoftext|>", "padding_side": "left", "clean_up_tokenization_spaces":
              False, "model_max_length": 4096}
    write_json(out / "tokenizer.json", tokenizer)
    write_json(out / "tokenizer_config.json", config)
    ids = {token["content"]: token["id"] for token in added}
    return [ids[token] for token in EOS]


def write_json(path, value):
    path.write_text(json.dumps(value, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=pathlib.Path, required=True, metavar="DIR")
    parser.add_argument("--size", type=int, default=512, help="tokens in all (default 512)")
    args = parser.parse_args()
    args.output.mkdir(parents=True, exist_ok=True)
    make_tokenizer(args.output, args.size)


if __name__ == "__main__":
    main()
