#!/usr/bin/env python3
"""The tables of docs/accuracy.md from the answers that run.py kept.

    tools/accuracy/run.py --output FOLDER --record
    tools/accuracy/report.py FOLDER [--reference cache-1152]

Scores with their standard error, then each configuration's difference from the reference, question
by question. Without --reference that is the first of cache-1152 and default that has rows.
"""
import argparse
import json
import math
import pathlib
import statistics
import sys

import table
from cases import CASES
from configurations import CONFIGURATIONS, SHOWN

REFERENCES = ("cache-1152", "default")

def read(folder):
    """configuration -> rows."""
    return {name: [json.loads(line) for line in open(folder / f"{name}.jsonl", encoding="utf-8")]
            for name in CONFIGURATIONS if (folder / f"{name}.jsonl").exists()}


def share(entry, usual):
    """Right answers in per cent, their standard error, and how many were asked if not as usual."""
    if entry is None:
        return "not asked"
    right, items = entry["right"], entry["items"]
    asked = "" if items == usual else f" of {items}"
    return f"{100 * right / items:.1f} ± {100 * table.standard_error(right, items):.1f}{asked}"


def mean_and_error(values, scale=1.0, digits=1):
    mean = f"{scale * statistics.fmean(values):+.{digits}f}"
    if len(values) == 1:
        return mean
    error = statistics.stdev(values) / math.sqrt(len(values))
    return f"{mean} ± {scale * error:.{digits}f}"


def scores(rows_of):
    summaries = {name: table.summary(rows) for name, rows in rows_of.items()}
    usual = {case: max(found[case]["items"] for found in summaries.values() if case in found)
             for case in CASES if any(case in found for found in summaries.values())}
    yield "| right, % | " + " | ".join(case.replace("_", " ") for case in usual) + " | form |"
    yield "|---|" + "---:|" * (len(usual) + 1)
    for name, rows in rows_of.items():
        cells = [share(summaries[name].get(case), items) for case, items in usual.items()]
        cells.append(f"{100 * sum(row['form'] for row in rows) / len(rows):.1f}")
        yield f"| {SHOWN[name]} | " + " | ".join(cells) + " |"
    yield "| questions | " + " | ".join(map(str, usual.values())) + " | |"


def differences(rows_of, reference):
    yield ("| against " + SHOWN[reference] + " | questions | right, points | only here right | "
           "only there right | nll, nats |")
    yield "|---|---:|---:|---:|---:|---:|"
    for name, rows in rows_of.items():
        if name == reference:
            continue
        right, nll = ([value for found in table.paired(rows, rows_of[reference], what).values()
                       for value in found] for what in ("right", "nll"))
        if not right:
            yield f"| {SHOWN[name]} | 0 | | | | |"
            continue
        yield (f"| {SHOWN[name]} | {len(right)} | {mean_and_error(right, 100)} | "
               f"{sum(value > 0 for value in right)} | {sum(value < 0 for value in right)} | "
               f"{mean_and_error(nll, 1, 4)} |")


def reference_of(rows_of, asked):
    """The configuration to compare with, or None where none that is usual has rows."""
    if asked and asked not in rows_of:
        sys.exit(f"{asked} has no rows there; these have: {', '.join(rows_of)}")
    return asked or next((name for name in REFERENCES if name in rows_of), None)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--reference", choices=CONFIGURATIONS)
    args = parser.parse_args()
    rows_of = read(args.folder)
    if not rows_of:
        sys.exit(f"{args.folder} has no rows of a configuration: run.py --output writes them")
    reference = reference_of(rows_of, args.reference)
    print("\n".join(scores(rows_of)))
    if reference and len(rows_of) > 1:
        print("\n" + "\n".join(differences(rows_of, reference)))


if __name__ == "__main__":
    main()
