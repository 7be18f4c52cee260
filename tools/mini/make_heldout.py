#!/usr/bin/env python3
"""Writes tools/mini/heldout/: 1,000 items a skill that training never sees.

    tools/mini/make_heldout.py [--skill SKILL] [--check]

--check writes nothing and fails where a file differs from what the generators make.
"""
import argparse
import sys

import heldout_items


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--skill", choices=heldout_items.SKILLS, help="default: all")
    parser.add_argument("--check", action="store_true")
    args = parser.parse_args()
    heldout_items.FOLDER.mkdir(exist_ok=True)
    differing = []
    for skill in [args.skill] if args.skill else heldout_items.SKILLS:
        text = "".join(map(heldout_items.line, heldout_items.rows(skill)))
        path = heldout_items.path(skill)
        if not args.check:
            path.write_text(text, encoding="utf-8")
        elif not path.exists() or path.read_text(encoding="utf-8") != text:
            differing.append(path.name)
    if differing:
        sys.exit(f"not what the generators make: {', '.join(differing)}")


if __name__ == "__main__":
    main()
