#!/usr/bin/env python3
"""How far each configuration's next-token distributions are from a reference's, on held-out texts.

    tools/accuracy/divergence.py                     all of configurations.py against cache-1152
    tools/accuracy/divergence.py --reference reference --only default,cache-1152

Logits come from `winnow score`, with the right text before every token. Printed for the tokens that
the model should say: mean KL divergence from the reference and mean rise of the negative
log-likelihood of the right token, each with its standard error over texts, how often both like the
same token best, and the largest KL. Needs NumPy.
"""
import argparse
import json
import math
import pathlib
import struct
import subprocess
import sys
import tempfile

import cases
from configurations import CONFIGURATIONS, SHOWN, model_of
from server import Server

try:
    import numpy as np
except ImportError:
    sys.exit("NumPy is needed")

ROOT = pathlib.Path(__file__).resolve().parents[2]


def held_out_texts(count):
    """Case -> [pieces]; count chats a case, and one dialogue about each long text."""
    out = {case: [cases.pieces(item) for item in cases.items_of(case, count)]
           for case in cases.CASES if case not in cases.NEEDLE_TOKENS}
    for case, tokens in cases.NEEDLE_TOKENS.items():
        out[case] = [cases.dialogue_pieces(tokens, idx) for idx in range(max(1, count // 24))]
    return out


def tokenized(program, model, texts):
    """[(case, ids, mask)]: the pieces' borders are borders of tokens."""
    rows = []
    with Server(program, model, []) as server:
        for case, several in texts.items():
            for pieces in several:
                answer = server.post("/tokenize", {"prompt": [text for text, _ in pieces]})
                ids = [i for part in answer["tokens"] for i in part]
                mask = [said for part, (_, said) in zip(answer["tokens"], pieces) for _ in part]
                rows.append((case, ids, mask))
    return rows


def read_tensors(path):
    """name -> array of a safetensors file of fp32, mapped."""
    with open(path, "rb") as file:
        size, = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(size))
    header.pop("__metadata__", None)
    data = np.memmap(path, dtype=np.uint8, mode="r", offset=8 + size)
    return {name: data[slice(*entry["data_offsets"])].view(np.float32).reshape(entry["shape"])
            for name, entry in header.items() if entry["dtype"] == "F32"}


def log_softmax(logits):
    shifted = logits.astype(np.float64) - logits.max(axis=-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))


def score(args, name, rows, folder):
    """[log-probs [tokens said, vocab]] a text: the rows before the tokens that are to be said."""
    source, target = folder / "texts.jsonl", folder / "logits.safetensors"
    source.write_text("".join(json.dumps({"input_ids": ids}) + "\n" for _, ids, _ in rows))
    with model_of(name, args.model) as model:
        subprocess.run([str(args.program), "score", "--model-path", str(model), "--input",
                        str(source), "--output", str(target), "--log-level", "warning",
                        *CONFIGURATIONS[name]], check=True)
    found = read_tensors(target)
    said = [np.flatnonzero(mask) - 1 for _, _, mask in rows]
    return [log_softmax(np.asarray(found[f"case{number}.logits"][where]))
            for number, where in enumerate(said)]


def compare(rows, reference, other):
    """One entry a text: case, mean KL, largest KL, mean rise of nll, share of equal favourites."""
    out = []
    for (case, ids, mask), p, q in zip(rows, reference, other):
        right = np.asarray(ids)[np.flatnonzero(mask)]
        kl = (np.exp(p) * (p - q)).sum(axis=-1)
        token = np.arange(len(right))
        out.append((case, kl.mean(), kl.max(), (p[token, right] - q[token, right]).mean(),
                    (p.argmax(axis=-1) == q.argmax(axis=-1)).mean()))
    return out


def mean_and_error(values):
    values = np.asarray(values)
    if len(values) == 1:
        return f"{values[0]:.5f}"
    return f"{values.mean():.5f} ± {values.std(ddof=1) / math.sqrt(len(values)):.5f}"


def print_line(label, entries):
    _, kl, largest, rise, same = zip(*entries)
    print(f"| {label} | {len(entries)} | {mean_and_error(kl)} | {mean_and_error(rise)} | "
          f"{100 * np.mean(same):.2f} % | {max(largest):.3f} |", flush=True)


def options():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default=ROOT / "build/cpu/winnow")
    parser.add_argument("--model", default=ROOT / "models/winnow-mini")
    parser.add_argument("--reference", choices=CONFIGURATIONS, default="cache-1152")
    parser.add_argument("--only", metavar="NAME,...", default=",".join(CONFIGURATIONS))
    parser.add_argument("--num", type=int, default=48, help="texts a case (default 48)")
    parser.add_argument("--by-case", action="store_true", help="also a line for each case")
    return parser.parse_args()


def main():
    args = options()
    rows = tokenized(args.program, args.model, held_out_texts(args.num))
    tokens, said = sum(len(ids) for _, ids, _ in rows), sum(sum(mask) for _, _, mask in rows)
    print(f"{len(rows)} texts, {tokens} tokens, {said} of them said by the model; against "
          f"{SHOWN[args.reference]}\n")
    print("| configuration | texts | mean KL, nats | rise of nll, nats | same favourite | "
          "largest KL |\n|---|---:|---:|---:|---:|---:|")
    with tempfile.TemporaryDirectory() as folder:
        reference = score(args, args.reference, rows, pathlib.Path(folder))
        for name in args.only.split(","):
            if name == args.reference:
                continue
            entries = compare(rows, reference, score(args, name, rows, pathlib.Path(folder)))
            print_line(SHOWN[name], entries)
            for case in cases.CASES if args.by_case else []:
                print_line(f"&nbsp; {case}", [entry for entry in entries if entry[0] == case])


if __name__ == "__main__":
    main()
