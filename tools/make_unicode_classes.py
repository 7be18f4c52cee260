#!/usr/bin/env python3
"""Writes src/text/unicode_class_runs.cpp: the character classes that tokenizer patterns name.

The tables must be those of the regex engine behind Hugging Face `tokenizers` (checked with 0.23.3:
Unicode 16.0), or newer characters are cut differently. The PyPI package regex 2024.11.6 carries
exactly these; `--compare` asks an installed `tokenizers` about every code point.

    pip install regex==2024.11.6 tokenizers
    tools/make_unicode_classes.py [--compare]
"""
import argparse
import importlib.metadata
import pathlib
import sys

import regex

PINNED = "2024.11.6"
# General categories; a code point's is an index into this list, as in src/text/unicode_classes.h.
CATEGORIES = ("Cn Cc Cf Co Cs Ll Lm Lo Lt Lu Mc Me Mn Nd Nl No Pc Pd Pe Pf Pi Po Ps Sc Sk Sm So "
              "Zl Zp Zs").split()
# The bits above the category, in their order there.
CATEGORY_BITS = 5
CLASSES = [("kSpace", r"\s"), ("kHan", r"\p{Han}"), ("kAlphabetic", r"\p{Alphabetic}")]
OUTPUT = pathlib.Path(__file__).resolve().parent.parent / "src/text/unicode_class_runs.cpp"


def code_points():
    return (c for c in range(0x110000) if not 0xD800 <= c <= 0xDFFF)


def flags_of_all():
    categories = [regex.compile(rf"\p{{{name}}}").match for name in CATEGORIES]
    matchers = [regex.compile(pattern).match for _, pattern in CLASSES]
    flags = [CATEGORIES.index("Cs")] * 0x110000  # what is left so are the surrogates
    for c in code_points():
        text = chr(c)
        flags[c] = next(i for i, match in enumerate(categories) if match(text))
        flags[c] |= sum(1 << CATEGORY_BITS + i for i, match in enumerate(matchers) if match(text))
    return flags


def runs_of(flags):
    runs = []
    for value in flags:
        if runs and runs[-1][1] == value:
            runs[-1][0] += 1
        else:
            runs.append([1, value])
    return runs


def write(runs):
    lines = [
        "// Written by tools/make_unicode_classes.py (Unicode 16.0); do not edit.",
        '#include "text/unicode_class_runs.h"',
        "",
        "namespace winnow::text {",
        "",
        "// clang-format off",
        f"const ClassRun kClassRuns[{len(runs)}] = {{",
    ]
    line = "   "
    for length, value in runs:
        item = f" {{{length},{value}}},"
        if len(line) + len(item) > 100:
            lines.append(line)
            line = "   "
        line += item
    lines += [line, "};", f"const size_t kNumClassRuns = {len(runs)};", "",
              "}  // namespace winnow::text", ""]
    OUTPUT.write_text("\n".join(lines))


def compare(flags):
    """How many code points `tokenizers` puts elsewhere."""
    from tokenizers import Regex, pre_tokenizers

    differences = 0
    points = list(code_points())
    mask = (1 << CATEGORY_BITS) - 1
    wanted = [(name, rf"\p{{{name}}}", lambda f, i=i: f & mask == i)
              for i, name in enumerate(CATEGORIES) if name != "Cs"]
    wanted += [(name, pattern, lambda f, i=i: f >> CATEGORY_BITS + i & 1)
               for i, (name, pattern) in enumerate(CLASSES)]
    for name, pattern, holds in wanted:
        keep = pre_tokenizers.Split(Regex(pattern), "removed", invert=True)
        found = set()
        for start in range(0, len(points), 4096):
            text = "".join(map(chr, points[start:start + 4096]))
            for piece, _ in keep.pre_tokenize_str(text):
                found.update(map(ord, piece))
        wrong = [c for c in points if (c in found) != bool(holds(flags[c]))]
        differences += len(wrong)
        print(f"{name}: {len(found)} code points, {len(wrong)} differences")
    return differences


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--compare", action="store_true", help="check against `tokenizers` as well")
    arguments = parser.parse_args()
    if (found := importlib.metadata.version("regex")) != PINNED:
        sys.exit(f"regex {found} is installed; the tables are made with regex {PINNED}")
    flags = flags_of_all()
    runs = runs_of(flags)
    write(runs)
    print(f"{OUTPUT.name}: {len(runs)} runs")
    return 1 if arguments.compare and compare(flags) else 0


if __name__ == "__main__":
    sys.exit(main())
