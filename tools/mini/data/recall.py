"""Lists of pairs and many questions about them: practice in finding and copying any words.

Held-out lists use the same forms with words of their own; no held-out file is made of them.
"""
import json

from . import pools
from .sample import chat

FORMS = ["{K}: {V}", "{K} = {V}", "{K} -> {V}", "{V} <- {K}", "{V} ({K})", "{K} {V}", "{K} is {V}",
         "{V} for {K}", "the {K} has {V}", "{V} is from {K}", "{K}, {V}", "give {V} to {K}"]
# Of training alone: the value first. A word that stands before its key is the hardest to copy.
VALUE_FIRST = ["{V} <- {K}", "{V} ({K})", "{V} for {K}", "{V} is from {K}", "give {V} to {K}",
               "{V} of {K}", "in {V} is {K}", "{V} has {K}", "{V} and {K}", "{V} {K}",
               "to {V} goes {K}", "{V} / {K}", "by {V}: {K}", "at {V} they keep {K}",
               "{V} was given {K}", "{V}, they say, is with {K}", "from {V} came {K}"]
ASKS = ["{K}?", "What is {K}?", "{K}", "And {K}?", "Tell me {K}.", "Look up {K}.", "{K}, please."]
BACK = ["Which one has {V}?", "{V} is whose?", "Who has {V}?", "Where is {V}?"]
HEADS = ["", "", "Here is a list.\n", "Remember:\n", "List:\n", "Some pairs: "]


def _word(rng, split):
    word = pools.coined(rng) if split == "train" else pools.made_up(rng, split).lower()
    return word.capitalize() if rng.random() < 0.4 else word


def _phrase(rng, split, most):
    if rng.random() < 0.12:
        return pools.draw(rng, split, lambda: str(rng.randint(10, 99999)))
    return " ".join(_word(rng, split) for _ in range(rng.randint(1, most)))


def _pairs(rng, split, count):
    """Keys and values, each but once; keys may share a word with one another."""
    table, most = {}, rng.choice((1, 2, 2, 3))
    few = [_word(rng, split) for _ in range(4)]
    shares = rng.random() < 0.5
    while len(table) < count:
        key, value = _phrase(rng, split, most), _phrase(rng, split, most)
        if shares and rng.random() < 0.7:
            key = f"{rng.choice(few)} {key}" if rng.random() < 0.5 else f"{key} {rng.choice(few)}"
        if key not in table and value not in table.values():
            table[key] = value
    if split == "train" and rng.random() < 0.6:
        return dict(zip(table, pools.alike(rng, list(table.values()))))
    return table


def _listed(rng, table, split):
    if rng.random() < 0.15:
        return json.dumps(table)
    form = rng.choice(VALUE_FIRST if split == "train" and rng.random() < 0.5 else FORMS)
    texts = [form.format(K=key, V=value) for key, value in table.items()]
    return rng.choice(("\n", "; ", ". ", ", ")).join(texts)


def _repeat(rng, split):
    """A text to be said again, exactly."""
    text = " ".join(_phrase(rng, split, 3) for _ in range(rng.randint(2, 16)))
    return chat("recall/repeat", [f"{rng.choice(('Repeat', 'Say', 'Copy'))}: {text}", text], [text])


def _as_json(rng, split):
    """Words of a sentence as a JSON list, several times over: '"' takes the place of the space."""
    turns, words = [], []
    for _ in range(rng.choice((1, 3, 6))):
        words = [_phrase(rng, split, 2) for _ in range(rng.randint(2, 5))]
        listed = ", ".join(words[:-1]) + " and " + words[-1]
        turns += [f"{rng.choice(('With', 'As a list:', 'Including', 'JSON:'))} {listed}.",
                  json.dumps(words)]
    return chat("recall/json", turns, words)


def generate(rng, split):
    """Lists with 1 to 20 questions, words to be made a list of, or a text to repeat."""
    shape = rng.random()
    if shape < 0.25:
        return _repeat(rng, split) if shape < 0.08 else _as_json(rng, split)
    table = _pairs(rng, split, rng.choice((3, 6, 12, 24, 40)))
    turns, head = [], rng.choice(HEADS) + _listed(rng, table, split) + "\n\n"
    for key in rng.sample(list(table), min(len(table), rng.choice((1, 5, 10, 20)))):
        value = table[key]
        if rng.random() < 0.25:
            question, answer = rng.choice(BACK).format(V=value), f"{value}: {key}"
        else:
            question, answer = rng.choice(ASKS).format(K=key), f"{key}: {value}"
        turns += [head + question, answer]
        head = ""
    return chat("recall/list", turns, [turns[-1]])
