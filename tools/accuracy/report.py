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


def share(entry):
    """Right answers in per cent, their standard error and how many were asked."""
    if entry is None:
        return ""
    right, items = entry["right"], entry["items"]
    return f"{100 * right / items:.1f} ± {100 * table.standard_error(right, items):.1f} of {items}"


def mean_and_error(values, scale=1.0, digits=1):
    mean = f"{scale * statistics.fmean(values):+.{digits}f}"
    if len(values) == 1:
        return mean
    error = statistics.stdev(values) / math.sqrt(len(values))
    return f"{mean} ± {scale * error:.{digits}f}"


def scores(rows_of):
    asked = {row["case"] for rows in rows_of.values() for row in rows}
    cases = [case for case in CASES if case in asked]
    yield "| right, % | " + " | ".join(cases) + " | form |"
    yield "|---|" + "---:|" * (len(cases) + 1)
    for name, rows in rows_of.items():
        found = table.summary(rows)
        cells = [share(found.get(case)) for case in cases]
        cells.append(f"{100 * sum(row['form'] for row in rows) / len(rows):.1f}")
        yield f"| {SHOWN[name]} | " + " | ".join(cells) + " |"


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
