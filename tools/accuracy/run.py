#!/usr/bin/env python3
"""Accuracy of winnow-mini through `winnow serve`, for every cache layout, index-key dtype and
precision, held against scores.json. Needs only Python's own library.

    tools/accuracy/run.py                          the full matrix: what docs/accuracy.md reports
    tools/accuracy/run.py --suite quick            what ctest runs (labels: accuracy)
    tools/accuracy/run.py --only default,cache-644 some configurations
    tools/accuracy/run.py --record                 writes what is measured into scores.json

Ends with 1 where a score is more than the table's margin below the recorded one.
"""
import argparse
import json
import pathlib
import signal
import sys
import time

import table
from cases import CASES
from configurations import CONFIGURATIONS, model_of
from measure import measure
from server import Server
from suites import SUITES

ROOT = pathlib.Path(__file__).resolve().parents[2]


def options():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default=ROOT / "build/cpu/winnow")
    parser.add_argument("--model", default=ROOT / "models/winnow-mini")
    parser.add_argument("--suite", choices=SUITES, default="full")
    parser.add_argument("--only", metavar="NAME,...", help="configurations: " +
                        ", ".join(CONFIGURATIONS))
    parser.add_argument("--cases", metavar="NAME,...", help="cases: " + ", ".join(CASES))
    parser.add_argument("--threads", type=int, default=0, help="of the server; 0: all cores")
    parser.add_argument("--record", action="store_true", help="write scores.json, check nothing")
    parser.add_argument("--output", type=pathlib.Path, metavar="FOLDER",
                        help="keep every answer as FOLDER/CONFIGURATION.jsonl")
    parser.add_argument("--show", type=int, default=0, metavar="N", help="print N wrong answers")
    return parser.parse_args()


def counts_of(args, name):
    """case -> items."""
    wanted = args.cases.split(",") if args.cases else CASES
    return {case: count for case, count in SUITES[args.suite][name].items() if case in wanted}


def run_one(args, name):
    with model_of(name, args.model) as model:
        with Server(args.program, model, CONFIGURATIONS[name], args.threads) as server:
            rows = measure(server, counts_of(args, name))
    if args.output:
        args.output.mkdir(parents=True, exist_ok=True)
        with open(args.output / f"{name}.jsonl", "w", encoding="utf-8") as file:
            file.writelines(json.dumps(row) + "\n" for row in rows)
    for row in [row for row in rows if not (row["right"] and row["form"])][:args.show]:
        print(json.dumps(row))
    return rows


def agrees(args, name):
    """Whether each item is compared with the recorded one: where no rounding but fp32's is done."""
    return args.suite == "quick" and name == "reference"


def record(args, rows_of):
    scores = table.load()
    scores["weights"] = table.checksum(args.model)
    known = scores.setdefault(args.suite, {})
    known.update({name: table.summary(rows, singly=agrees(args, name))
                  for name, rows in rows_of.items()})
    if {"default", "reference"} <= set(rows_of):
        scores["deviation"] = table.deviations(rows_of["default"], rows_of["reference"])
    table.save(scores)
    print(f"written: {table.PATH}")


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # the server of a run ends with it
    args = options()
    names = args.only.split(",") if args.only else list(SUITES[args.suite])
    unknown = [name for name in names if name not in SUITES[args.suite]]
    if unknown:
        sys.exit(f"no configuration of this suite: {', '.join(unknown)}")
    scores = table.load()
    if not args.record and scores.get("weights") != table.checksum(args.model):
        print("scores.json was recorded with other weights: --record writes it anew")
    rows_of, failed = {}, 0
    for name in names:
        start = time.monotonic()
        rows_of[name] = run_one(args, name)
        measured = table.summary(rows_of[name], singly=agrees(args, name))
        print(f"{name}: {len(rows_of[name])} items in {time.monotonic() - start:.0f} s", flush=True)
        if args.record:
            for case, entry in measured.items():
                shown = {key: value for key, value in entry.items() if key != "nlls"}
                print(f"  {case:13} {shown}", flush=True)
            continue
        for line, fine in table.check(scores, args.suite, name, measured):
            failed += not fine
            print(f"  {'ok  ' if fine else 'FAIL'} {line}", flush=True)
    if args.record:
        record(args, rows_of)
    elif failed:
        sys.exit(f"{failed} figures are below what was recorded")


if __name__ == "__main__":
    main()
