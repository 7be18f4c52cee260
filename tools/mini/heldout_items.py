"""Held-out items: how they are drawn, written and read back.

tools/mini/heldout/ holds 1,000 items a skill as JSON lines. Needles are long, so their file has
only what they are drawn from, their answers and the start of the SHA-256 of their text.
"""
import hashlib
import json
import pathlib
import random

from data import sample

FOLDER = pathlib.Path(__file__).resolve().parent / "heldout"
COUNT = 1000
SKILLS = ["problem", "problem_chat", "tools", "choices", "talk", "needle"]
NEEDLE_TOKENS = [1024, 2048, 4096, 8192, 15360]


def _chat_item(item):
    row = {"kind": item.kind, "thinking": item.thinking, "answer": item.answer,
           "messages": item.prompt_messages()}
    if item.tools:
        row["tools"] = item.tools
    if item.choice:
        row.update(item.choice)
    row["expected"] = item.messages[-1]
    return row


def _problem_item(rng):
    """GSM8K's two fields, so that any harness for it can read the file."""
    item = sample("problem", rng, "heldout", shots=0)
    question = item.prompt_text().removeprefix("Question: ").removesuffix("\nAnswer:")
    return {"question": question, "answer": item.pieces[-1][0].strip()}


def needle(tokens, index):
    """The needle of that length and number, always the same."""
    rng = random.Random(f"heldout needle {tokens} {index}")
    return sample("needle", rng, "heldout", tokens=tokens, facts=1 + (index % 8 == 7),
                  thinking=bool(index % 2))


def text_hash(item):
    return hashlib.sha256(item.messages[-2]["content"].encode()).hexdigest()[:12]


def needle_row(tokens, index):
    item = needle(tokens, index)
    return {"tokens": tokens, "index": index, "kind": item.kind, "answer": item.answer,
            "sha256": text_hash(item)}


def rows(skill):
    """The rows of the skill's file, drawn anew."""
    if skill == "needle":
        for tokens in NEEDLE_TOKENS:
            yield from (needle_row(tokens, index) for index in range(COUNT // len(NEEDLE_TOKENS)))
        return
    rng = random.Random(f"heldout {skill}")
    asked = set()  # no prompt is asked twice
    while len(asked) < COUNT:
        if skill == "problem":
            row = _problem_item(rng)
        else:
            row = _chat_item(sample(skill, rng, "heldout"))
        prompt = json.dumps(row.get("messages") or row["question"])
        if prompt not in asked:
            asked.add(prompt)
            yield row


def path(skill):
    return FOLDER / f"{skill}.jsonl"


def line(row):
    return json.dumps(row, ensure_ascii=False) + "\n"


def load(skill):
    with open(path(skill), encoding="utf-8") as file:
        return [json.loads(text) for text in file]


def needle_items(tokens, count):
    """Chat items of needles: of one length, or those of the file where tokens is 0."""
    if tokens:
        return [_chat_item(needle(tokens, index)) for index in range(count)]
    found = []
    for row in load("needle")[:count]:
        item = needle(row["tokens"], row["index"])
        if text_hash(item) != row["sha256"]:
            raise SystemExit(f"needle {row['tokens']}/{row['index']} is not the text of the file: "
                             "this Python draws other random numbers")
        found.append(_chat_item(item))
    return found
