"""One to three facts in a long text of harmless sentences and of other facts of the same form."""
from . import filler, pools
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


def generate(rng, split, tokens=None, facts=None, distractors=None, thinking=None):
    """`facts` asked about (1 to 3), `distractors` other facts of the same form."""
    tokens = tokens or rng.choice(LENGTHS)
    facts = facts or rng.choice((1, 1, 1, 1, 2, 3))
    if distractors is None:
        distractors = rng.randint(0, max(1, min(40, tokens // 64)))
    if thinking is None:
        thinking = rng.random() < 0.4
    form = rng.choice(("code", "code", "code", "owner", "place", "price"))
    table = {}
    while len(table) < facts + distractors:
        table[_key(rng, split)] = _value(rng, split, form)
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
