#!/usr/bin/env python3
"""Runs winnow score on a fixture folder and compares with its expected.safetensors.

    tools/check_fixture.py WINNOW FOLDER... [--tol 2e-4] [--score-args "..."]

Needs NumPy. The C++ test model/fixtures does the same inside the suite; this is for a look by
hand, and for other precisions and layouts (--score-args "--precision default").
"""
import argparse
import json
import pathlib
import shlex
import subprocess
import sys
import tempfile

import numpy as np

DTYPES = {"F32": "<f4", "I32": "<i4"}


def read_safetensors(path):
    raw = pathlib.Path(path).read_bytes()
    size = int.from_bytes(raw[:8], "little")
    header = json.loads(raw[8:8 + size])
    data = memoryview(raw)[8 + size:]
    return {name: np.frombuffer(data[slice(*t["data_offsets"])], DTYPES[t["dtype"]]).reshape(t["shape"])
            for name, t in header.items() if name != "__metadata__"}


def check(winnow, folder, score_args):
    want = read_safetensors(f"{folder}/expected.safetensors")
    cases = sorted({k.split(".")[0] for k in want if k.startswith("case")}, key=lambda c: int(c[4:]))
    with tempfile.TemporaryDirectory() as tmp:
        lines = [json.dumps({"input_ids": want[f"{c}.input_ids"].tolist()}) for c in cases]
        pathlib.Path(f"{tmp}/in.jsonl").write_text("\n".join(lines) + "\n")
        subprocess.run([winnow, "score", "--model-path", folder, "--input", f"{tmp}/in.jsonl",
                        "--output", f"{tmp}/out.safetensors", "--dump", "hidden,topk", *score_args],
                       check=True)
        got = read_safetensors(f"{tmp}/out.safetensors")
    worst = {"logits": 0.0, "hidden": 0.0}
    rows = equal = 0
    for name, value in want.items():
        kind = name.split(".")[1] if name.startswith("case") else ""
        if kind in worst:
            worst[kind] = max(worst[kind], float(np.abs(got[name] - value).max()))
        elif kind == "topk":
            same = (got[name] == value).all(axis=1)
            rows, equal = rows + len(same), equal + int(same.sum())
    return worst, rows, equal


def main():
    ap = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    ap.add_argument("winnow")
    ap.add_argument("folders", nargs="+")
    ap.add_argument("--tol", type=float, default=2e-4)
    ap.add_argument("--score-args", default="--precision reference")
    args = ap.parse_args()
    failed = 0
    print(f"{'fixture':24} {'logits':>9} {'hidden':>9} {'top-k rows':>12}")
    for folder in args.folders:
        worst, rows, equal = check(args.winnow, folder, shlex.split(args.score_args))
        bad = max(worst.values()) > args.tol or rows != equal
        failed += bad
        print(f"{pathlib.Path(folder).name:24} {worst['logits']:9.1e} {worst['hidden']:9.1e} "
              f"{equal:>5}/{rows:<6} {'DIFFERS' if bad else 'ok'}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
