"""One to three facts in a long text of harmless sentences and of other facts of the same form."""
from . import filler, needle_frames, pools
from .sample import chat
from .systems import system_prompt

# Share of the room that filler takes by its own estimate, so that few texts come out too long.
FILL = {"train": 0.93, "heldout": 0.9}
LENGTHS = [256, 256, 512, 512, 512, 1024, 1024, 2048]

# Form: the fact as the answer says it, how a text may say it, and how it is asked.
# K the key ("blue lantern"), V the value.
FORMS = {
    "code": {
        "fact": "The code of the {K} is {V}.",
        "said": (["The code of the {K} is {V}."] * 4 + [
            "Remember that the code of the {K} is {V}.", "{V} is the code of the {K}.",
            "The {K} has the code {V}.", "Note: the code of the {K} is {V}."],
            ["Remember: the code of the {K} is {V}."]),
        "asked": (["What is the code of the {K}?", "Which code does the {K} have?",
                   "Tell me the code of the {K}.", "What code belongs to the {K}?",
                   "I need the code of the {K}.", "Find the code of the {K}.",
                   "According to the text, what is the code of the {K}?"],
                  ["Which code is the code of the {K}?", "Please tell me the code of the {K}."]),
    },
    "owner": {
        "fact": "The {K} belongs to {V}.",
        "said": (["The {K} belongs to {V}."] * 3 + [
            "{V} owns the {K}.", "The owner of the {K} is {V}."], ["{V} is the owner of the {K}."]),
        "asked": (["Who owns the {K}?", "To whom does the {K} belong?",
                   "Who is the owner of the {K}?",
                   "Tell me who owns the {K}.", "Whose is the {K}?"],
                  ["Please tell me who the owner of the {K} is."]),
    },
    "place": {
        "fact": "The {K} is kept in {V}.",
        "said": (["The {K} is kept in {V}."] * 3 + [
            "You can find the {K} in {V}.", "Someone left the {K} in {V}."],
            ["In {V} you can find the {K}."]),
        "asked": (["Where is the {K} kept?", "Where is the {K}?", "In which town is the {K}?",
                   "Tell me where the {K} is kept.", "Where can I find the {K}?"],
                  ["Please tell me where I can find the {K}."]),
    },
    "price": {
        "fact": "The {K} costs {V} coins.",
        "said": (["The {K} costs {V} coins."] * 3 + [
            "The price of the {K} is {V} coins.", "One pays {V} coins for the {K}."],
            ["The {K} has a price of {V} coins."]),
        "asked": (["How much does the {K} cost?", "What is the price of the {K}?",
                   "How many coins does the {K} cost?", "Tell me the price of the {K}."],
                  ["Please tell me how much the {K} costs."]),
    },
}
# Training alone: wordings of facts and questions beside those above.
MORE_SAID = {
    "code": ["People say that the code of the {K} is {V}.", "Its code is {V}: the {K}.",
             "With the code {V} you open the {K}.", "The {K}: code {V}.", "{V} opens the {K}.",
             "For the {K} the code is {V}.", "The code {V} belongs to the {K}.",
             "Somebody wrote {V} on the {K}, which is its code.", "To open the {K}, use {V}."],
    "owner": ["The {K} is the property of {V}.", "{V} bought the {K}.", "{V} has got the {K}.",
              "The {K} was given to {V}.", "To {V} belongs the {K}.", "{V} keeps the {K} at home.",
              "The {K} is owned by {V}.", "Long ago the {K} was sold to {V}."],
    "place": ["The {K} is in {V}.", "In {V} they keep the {K}.", "{V} is the place of the {K}.",
              "The {K} was brought to {V}.", "In {V} there is the {K}.",
              "Whoever looks for the {K} must go to {V}.", "The {K} stands in {V}."],
    "price": ["For {V} coins you get the {K}.", "The {K} is sold for {V} coins.",
              "{V} coins is the price of the {K}.", "The {K} can be had for {V} coins.",
              "To buy the {K}, pay {V} coins.", "Nobody sells the {K} below {V} coins."],
}
MORE_ASKED = {
    "code": ["Can you tell me the code of the {K}?", "What opens the {K}?",
             "Look up the code of the {K}.", "The {K} has which code?",
             "What was the code of the {K} again?", "Say the code of the {K}.",
             "Do you know which code the {K} has?", "{K}: what is its code?"],
    "owner": ["The {K} belongs to whom?", "Which person owns the {K}?",
              "Can you say who owns the {K}?", "Find out who owns the {K}.",
              "What is the name of the owner of the {K}?", "{K}: who owns it?"],
    "place": ["The {K} is kept in which town?", "Can you tell me where the {K} is?",
              "Find the place of the {K}.", "Say where the {K} is kept.", "{K}: where is it?",
              "I look for the {K}. Where is it?"],
    "price": ["What must one pay for the {K}?", "The {K} costs how much?",
              "Can you say what the {K} costs?", "Find the price of the {K}.",
              "I want to buy the {K}. How many coins does it cost?", "{K}: what does it cost?"],
}
# None: a relation with a made-up name. Words are harder to carry than digits.
TRAINED = ("code", "owner", "owner", "place", "place", "price", None, None, None)
PREFIXES = ["please ", "tell me: ", "now: ", "hello. ", "quickly: ", "one more question: ",
            "I want to know this: ", "think of the text: ", "another one: ", "OK, "]


MORE_ASKS = ["\n\nHere is my question: {}", "\n\nNow a question. {}", "\n\nSo: {}",
             "\n\nThat was the text. {}", "\n\n{} Look into the text.", "\n\nPlease answer. {}",
             "\n\nTell me this: {}", " {}"]


def _coined_form(rng):
    """A relation that nobody has heard of, in the shape of FORMS with MORE_* inside."""
    word = pools.coined(rng)
    said = [f"The {word} of the {{K}} is {{V}}.", f"{{V}} is the {word} of the {{K}}.",
            f"The {{K}} gets the {word} {{V}}.", f"For the {{K}} the {word} is {{V}}.",
            f"With {{V}} as its {word} comes the {{K}}.", f"As a {word} the {{K}} takes {{V}}.",
            f"The {{K}} {word}s {{V}}.", f"{{V}} {word}s the {{K}}.",
            f"The {word} {{V}} goes with the {{K}}."]
    asked = [f"What is the {word} of the {{K}}?", f"Which {word} does the {{K}} have?",
             f"Tell me the {word} of the {{K}}.", f"Name the {word} of the {{K}}.",
             f"{{K}}: which {word}?", f"The {{K}} has which {word}?"]
    said += [needle_frames.coined(rng, word) for _ in range(len(said))]
    kept = rng.sample(said, rng.randint(1, 4))
    return {"fact": f"The {word} of the {{K}} is {{V}}.", "said": kept, "asked": asked}


# Of the frames that a text of training draws from: composed ones, and those of one text in four,
# whose facts tell the value first and last in turn.
COMPOSED = 24
BOTH_ORDERS = 0.25


def _training_form(rng, form):
    spec = FORMS[form]
    said = spec["said"][0] + MORE_SAID[form]
    drawn = rng.random()
    if drawn < BOTH_ORDERS:
        said = needle_frames.both_orders(rng, form)
    elif drawn < 0.8:
        said += [needle_frames.frame(rng, form) for _ in range(COMPOSED)]
        if drawn < 0.5:  # all facts in one wording or two
            said = rng.sample(said, rng.randint(1, 2))
    return {"fact": spec["fact"], "said": said, "asked": spec["asked"][0] + MORE_ASKED[form]}


HEADS = {
    "train": ["", "", "Read this text.\n\n", "Here is a long text.\n\n", "Text:\n",
              "There is a fact "
              "in this text. Remember it.\n\n",
              "Read the text and answer the question at the end.\n\n"],
    "heldout": ["", "Here is a text. Read it.\n\n",
                "Read this long text and answer the question.\n\n"],
}
ASKS = {
    "train": ["\n\n{}", "\n\n{}", "\n\nQuestion: {}", "\n{}", "\n\nNow answer: {}",
              "\n\n{} Answer with one sentence.", "\n\nThe question is: {}", "\n\n{} Be short."],
    "heldout": ["\n\n{}", "\n\nThis is the question: {}", "\n\nAnswer this question: {}"],
}


def _key(rng, split):
    colours = pools.COLOURS["train"] + filler.ADJECTIVES["train"]
    if split == "heldout":
        colours = colours + pools.COLOURS["heldout"] + filler.ADJECTIVES["heldout"]

    def make():
        single = rng.choice(pools.THINGS["train"])[0]
        if split == "heldout" and rng.random() < 0.3:
            single = rng.choice(pools.THINGS["heldout"])[0]
        return f"{rng.choice(colours)} {single}"
    return pools.draw(rng, split, make)


def _value(rng, split, form):
    if form == "code":
        return pools.draw(rng, split, lambda: str(rng.randint(1000, 9999)))
    if form == "price":
        return pools.draw(rng, split, lambda: str(rng.randint(100, 999)))
    if form == "owner":
        return pools.person(rng, split)[0]
    return pools.made_up(rng, split)


def _said(rng, split, form, key, value):
    known, unseen = FORMS[form]["said"]
    pool = unseen if split == "heldout" and rng.random() < 0.3 else known
    return rng.choice(pool).format(K=key, V=value)


def _training_key(rng):
    shape = rng.random()
    if shape < 0.6:
        return _key(rng, "train")
    if shape < 0.8:
        return f"{pools.coined(rng)} {pools.coined(rng)}"
    single = pools.thing(rng, "train")[0]
    return f"{pools.coined(rng)} {single}" if shape < 0.95 else pools.coined(rng)


def _training_value(rng, form):
    if form:
        return _value(rng, "train", form)
    shape = rng.random()
    if shape < 0.3:
        return pools.draw(rng, "train", lambda: str(rng.randint(10, 99999)))
    return pools.coined(rng).capitalize()


def _table(rng, count, make_key, make_value):
    table = {}
    while len(table) < count:
        table[make_key()] = make_value()
    return table


def _training_table(rng, count, form):
    table = _table(rng, count, lambda: _training_key(rng), lambda: _training_value(rng, form))
    if rng.random() < 0.65:
        return dict(zip(table, pools.alike(rng, list(table.values()))))
    return table


def _question(rng, wordings, keys):
    """The question of training for some keys, with something before it at times."""
    text = " ".join(rng.choice(wordings).format(K=key) for key in keys)
    if rng.random() < 0.2:
        prefix = rng.choice(PREFIXES)
        text = prefix + (text[0].lower() + text[1:] if prefix[-2] in ",e" else text)
    return text[0].upper() + text[1:]


def _train(rng, tokens, facts, distractors, thinking):
    """Like generate's held-out half, in more wordings and with many questions about one text:
    a long text costs as much as all of its questions."""
    form = rng.choice(TRAINED)
    spec = _training_form(rng, form) if form else _coined_form(rng)
    table = _training_table(rng, facts + distractors, form)
    told = [rng.choice(spec["said"]).format(K=key, V=value) for key, value in table.items()]
    told = [text[0].upper() + text[1:] for text in told]
    room = tokens - 60 - 24 * facts - sum(map(filler.estimate, told))
    keys = list(table)
    following = 0 if thinking else min(len(keys) - 1, rng.choice((0, 2, 6, 12, 24)))
    texts = filler.sentences(rng, "train", max(40, int((room - 32 * following) * FILL["train"])))
    for text in told:
        texts.insert(rng.randint(0, len(texts)), text)

    def answered(asked):
        return " ".join(spec["fact"].format(K=key, V=table[key]) for key in asked)
    first = keys[:facts]
    question = rng.choice(ASKS["train"] + MORE_ASKS).format(_question(rng, spec["asked"], first))
    turns = [rng.choice(HEADS["train"]) + filler.joined(rng, texts) + question, answered(first)]
    for key in rng.sample(keys, following):
        first = [key] if rng.random() < 0.85 else [key, rng.choice(keys)]
        turns += [_question(rng, spec["asked"], first), answered(first)]
    reasoning = "I look it up in the text. " + answered(first) if thinking else None
    return chat(f"needle/{form or 'coined'}{facts}", turns, [table[key] for key in first],
                system=system_prompt(rng, "train", 0.1), reasoning=reasoning)


def generate(rng, split, tokens=None, facts=None, distractors=None, thinking=None):
    """`facts` asked about (1 to 3), `distractors` other facts of the same form."""
    tokens = tokens or rng.choice(LENGTHS)
    facts = facts or rng.choice((1, 1, 1, 1, 2, 3))
    if distractors is None:
        most = min(60, tokens // 40) if split == "train" else min(40, tokens // 64)
        distractors = rng.randint(0, max(1, most))
    if thinking is None:
        thinking = rng.random() < 0.4
    if split == "train":
        return _train(rng, tokens, facts, distractors, thinking)
    form = rng.choice(("code", "code", "code", "owner", "place", "price"))
    table = _table(rng, facts + distractors, lambda: _key(rng, split),
                   lambda: _value(rng, split, form))
    told = [_said(rng, split, form, key, value) for key, value in table.items()]
    room = tokens - 60 - 24 * facts - sum(map(filler.estimate, told))
    texts = filler.sentences(rng, split, max(40, int(room * FILL[split])))
    for text in told:
        texts.insert(rng.randint(0, len(texts)), text)

    keys = list(table)[:facts]
    known, unseen = FORMS[form]["asked"]
    pool = unseen if split == "heldout" else known
    asks = [rng.choice(pool).format(K=key) for key in keys]
    question = rng.choice(ASKS[split]).format(" ".join(asks))
    answers = [FORMS[form]["fact"].format(K=key, V=table[key]) for key in keys]
    text = rng.choice(HEADS[split]) + filler.joined(rng, texts) + question
    return chat(f"needle/{form}{facts}", [text, " ".join(answers)], [table[key] for key in keys],
                system=system_prompt(rng, split, 0.1),
                reasoning="I look it up in the text. " + " ".join(answers) if thinking else None)
