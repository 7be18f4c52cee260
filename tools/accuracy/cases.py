"""What is asked: held-out items of tools/mini, and many questions about one long text.

An item is a dict: "skill" (its judge), "prompt" (text with control tokens, as the chat template
writes it) and "expected" (the right continuation), and what tools/mini/score.py and judge.py read.
"""
import pathlib
import random
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "mini"))
import heldout_items  # noqa: E402
from data import needle, render, sample  # noqa: E402
from data.sample import Sample  # noqa: E402

SHOTS = 5  # worked examples before a plain word problem: beyond index_topk tokens
# Case -> tokens of its texts. The model's index_topk is 1/8, 1/16 and 1/32 of them.
NEEDLE_TOKENS = {"needle_2k": 2048, "needle_4k": 4096, "needle_8k": 8192}
QUESTIONS_A_TEXT = 24
CASES = ["problem", "thinking_off", "thinking_on", "tools", "choices", *NEEDLE_TOKENS]


def _with_prompt(item, skill):
    """A chat item with its prompt and continuation as text."""
    messages = item["messages"] + [item["expected"]]
    pieces = render.chat_pieces(Sample("", messages, item.get("tools"), item["thinking"]))
    *before, (expected, _) = pieces
    return {**item, "skill": skill, "prompt": "".join(text for text, _ in before),
            "expected_text": expected}


def _problems(count):
    items = heldout_items.load("problem")
    shots = "".join(f"Question: {item['question']}\nAnswer: {item['answer']}\n\n"
                    for item in items[:SHOTS])
    return [{**item, "skill": "problem", "shots": shots, "kind": "problem",
             "prompt": f"{shots}Question: {item['question']}\nAnswer:",
             "expected_text": " " + item["answer"]} for item in items[SHOTS:SHOTS + count]]


def _chats(skill, count, thinking=None):
    items = [item for item in heldout_items.load(skill)
             if thinking is None or item["thinking"] == thinking]
    return [_with_prompt(item, skill) for item in items[:count]]


def _facts_in_a_text(tokens, text_idx):
    """(messages before, text, [(question, answer, value)], kind)."""
    rng = random.Random(f"accuracy {tokens} {text_idx}")
    # The generator leaves room for all questions behind the text; here each gets its own.
    drawn = sample("needle", rng, "heldout", tokens=tokens + 24 * QUESTIONS_A_TEXT + 80,
                   facts=QUESTIONS_A_TEXT, distractors=8, thinking=False)
    *before, user, said = drawn.messages
    text = user["content"][:user["content"].rindex("\n\n")]
    form = drawn.kind.removeprefix("needle/").rstrip("0123456789")
    fact = needle.FORMS[form]["fact"]
    pattern = re.escape(fact).replace(r"\{K\}", "(.+?)").replace(r"\{V\}", r"\S+?") + "(?: |$)"
    keys = re.findall(pattern, said["content"])
    assert len(keys) == QUESTIONS_A_TEXT, (form, said)
    asked = needle.FORMS[form]["asked"][1]
    facts = [(rng.choice(asked).format(K=key), fact.format(K=key, V=value), value)
             for key, value in zip(keys, drawn.answer)]
    return before, text, facts, f"needle/{form}"


def _asked_singly(tokens, text_idx):
    """One item a fact about one text: the text is read once and its prefix then reused."""
    before, text, facts, kind = _facts_in_a_text(tokens, text_idx)
    for question, answer, value in facts:
        yield _with_prompt({
            "kind": kind, "thinking": False, "answer": [value],
            "messages": [*before, {"role": "user", "content": f"{text}\n\n{question}"}],
            "expected": {"role": "assistant", "content": answer}}, "needle")


def pieces(item):
    """[(text, whether the model should say it)] of an item."""
    return [(item["prompt"], False), (item["expected_text"], True)]


def dialogue_pieces(tokens, text_idx):
    """The same for all questions about one text, asked one after the other in one chat."""
    before, text, facts, _ = _facts_in_a_text(tokens, text_idx)
    messages = list(before)
    for number, (question, answer, _) in enumerate(facts):
        content = question if number else f"{text}\n\n{question}"
        messages += [{"role": "user", "content": content},
                     {"role": "assistant", "content": answer}]
    return render.chat_pieces(Sample("", messages, None, False))


def items_of(case, count):
    """The first `count` items of the case, always the same."""
    if case == "problem":
        return _problems(count)
    if case.startswith("thinking_"):
        return _chats("problem_chat", count, case == "thinking_on")
    if case in NEEDLE_TOKENS:
        texts = range(-(-count // QUESTIONS_A_TEXT))
        return [item for text_idx in texts
                for item in _asked_singly(NEEDLE_TOKENS[case], text_idx)][:count]
    return _chats(case, count)
