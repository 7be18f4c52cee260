"""Four-choice questions over made-up worlds; all that is needed stands in the question."""
from . import pools
from .sample import chat
from .systems import system_prompt

LETTERS = "ABCD"
# The usual prompt of four-choice evals (simple-evals, MIT), which `winnow eval` sends as well.
EVAL_PROMPT = (
    "Answer the following multiple choice question. The last line of your response should be of "
    "the "
    "following format: 'Answer: $LETTER' (without quotes) where LETTER is one of ABCD. Think "
    "step by "
    "step before answering.\n\n")
INSTRUCTIONS = {
    "train": [EVAL_PROMPT] * 5 + [
        "", "Choose the right answer.\n\n",
        "Which option is right? End with 'Answer: ' and the letter.\n\n",
        "Read the facts and choose one of A, B, C and "
        "D.\n\n", "Answer with one of the four letters.\n\n"],
    "heldout": [EVAL_PROMPT] * 3 + ["Choose one of the four options.\n\n"],
}

# attribute: (the fact as answers say it, other wordings of training, of held-out,
#             questions for the value, questions for the owner, noun phrase of a two-step question)
# S the subject, V the value.
ATTRIBUTES = {
    "country": {
        "capital": ("The capital of {S} is {V}.", ["{V} is the capital of {S}.",
                                                   "In {S}, the capital is called {V}."],
                    ["{S} has the capital {V}."],
                    ["What is the capital of {S}?", "Which town is the capital of {S}?",
                     "How is the capital of {S} called?"],
                    ["Which country has the capital {V}?", "{V} is the capital of which country?"],
                    "the country whose capital is {V}"),
        "coin": ("In {S} people pay with the {V}.", ["The {V} is the coin of {S}.",
                                                     "{S} uses the {V} as its coin."],
                 ["The coin of {S} is the {V}."],
                 ["With what do people pay in {S}?", "Which coin is used in {S}?",
                  "What is the coin of {S}?"],
                 ["In which country do people pay with the {V}?", "Which country uses the {V}?"],
                 "the country that pays with the {V}"),
        "river": ("The river of {S} is the {V}.", ["The {V} flows through {S}.",
                                                   "{S} lies on the river {V}."],
                  ["Through {S} flows the {V}."],
                  ["Which river flows through {S}?", "What is the river of {S}?"],
                  ["Through which country does the {V} flow?",
                   "The {V} is the river of which country?"],
                  "the country on the river {V}"),
        "ruler": ("The ruler of {S} is {V}.", ["{V} rules {S}.", "{S} is ruled by {V}."],
                  ["In {S}, {V} is the ruler."],
                  ["Who rules {S}?", "Who is the ruler of {S}?"],
                  ["Which country is ruled by {V}?", "{V} is the ruler of which country?"],
                  "the country that is ruled by {V}"),
    },
    "animal": {
        "food": ("The {S} eats {V}.", ["{V} is what the {S} eats.", "The food of the {S} is {V}."],
                 ["The {S} lives on {V}."],
                 ["What does the {S} eat?", "What is the food of the {S}?"],
                 ["Which animal eats {V}?"], "the animal that eats {V}"),
        "home": ("The {S} lives in {V}.", ["The home of the {S} is {V}.", "In {V} lives the {S}."],
                 ["You find the {S} in {V}."],
                 ["Where does the {S} live?", "What is the home of the {S}?"],
                 ["Which animal lives in {V}?"], "the animal that lives in {V}"),
        "colour": ("The {S} is {V}.", ["The colour of the {S} is {V}."],
                   ["The {S} has the colour {V}."],
                   ["What colour is the {S}?", "Which colour does the {S} have?"],
                   ["Which animal is {V}?"], "the animal that is {V}"),
        "enemy": ("The enemy of the {S} is the {V}.", ["The {S} fears the {V}.",
                                                       "The {S} runs away from the {V}."],
                  ["The {S} has the {V} as its enemy."],
                  ["What is the enemy of the {S}?", "Which animal does the {S} fear?"],
                  ["Which animal fears the {V}?"], "the animal that fears the {V}"),
    },
    "person": {
        "job": ("{S} works as a {V}.", ["{S} is a {V}.", "The job of {S} is {V}."],
                ["{S} has the job of a {V}."],
                ["What is the job of {S}?", "What does {S} work as?"],
                ["Who works as a {V}?", "Who is the {V}?"], "the person who works as a {V}"),
        "town": ("{S} lives in {V}.", ["The home of {S} is {V}.", "{S} has a house in {V}."],
                 ["In {V} lives {S}."],
                 ["Where does {S} live?", "In which town does {S} live?"],
                 ["Who lives in {V}?"], "the person who lives in {V}"),
        "owns": ("{S} owns the {V}.", ["The {V} belongs to {S}.", "The owner of the {V} is {S}."],
                 ["{S} is the owner of the {V}."],
                 ["What does {S} own?", "Which thing belongs to {S}?"],
                 ["Who owns the {V}?", "To whom does the {V} belong?"],
                 "the person who owns the {V}"),
        "friend": ("The friend of {S} is {V}.", ["{S} is a friend of {V}.",
                                                 "{S} has a friend called {V}."],
                   ["{S} is the friend of {V}."],
                   ["Who is the friend of {S}?", "What is the name of the friend of {S}?"],
                   ["Who has the friend {V}?"], "the person whose friend is {V}"),
    },
}
COMPARED = [("is {n} years old", "oldest", "youngest"), ("is {n} metres tall", "tallest",
                                                         "shortest"),
            ("weighs {n} pounds", "heaviest", "lightest"), ("runs {n} miles", "fastest", "slowest"),
            ("has {n} coins", "richest", "poorest")]
FOODS = ["grass", "nuts", "leaves", "seeds", "bread", "fish", "berries", "roots", "honey", "corn",
         "bark",
         "snails", "worms", "rice", "moss"]
HOMES = ["the forest", "the hills", "the lake", "the desert", "the sea", "the swamp", "caves",
         "old trees",
         "the snow", "the fields", "the river", "high towers"]
JOBS = """baker farmer teacher sailor doctor painter miller tailor driver gardener cook singer writer
    hunter nurse guard judge clerk weaver smith""".split()


def _distinct(rng, count, make):
    found = []
    while len(found) < count:
        value = make()
        if value not in found:
            found.append(value)
    return found


def _values(rng, split, kind, attribute, count):
    lists = {"food": FOODS, "home": HOMES, "job": JOBS, "colour": pools.COLOURS["train"]}
    if attribute in lists:
        return rng.sample(lists[attribute], count)
    if attribute == "owns":
        return [single for single, _ in pools.things(rng, split, count)]
    if attribute in ("ruler", "friend"):
        return [name for name, _ in pools.people(rng, split, count)]
    lower = attribute in ("coin", "enemy")
    words = _distinct(rng, count, lambda: pools.made_up(rng, split))
    return [word.lower() for word in words] if lower else words


def _subjects(rng, split, kind, count):
    if kind == "person":
        return [name for name, _ in pools.people(rng, split, count)]
    words = _distinct(rng, count, lambda: pools.made_up(rng, split))
    return [word.lower() for word in words] if kind == "animal" else words


def _world(rng, split):
    """(kind, {attribute: {subject: value}}, fact sentences)."""
    kind = rng.choice(list(ATTRIBUTES))
    count = rng.randint(4, 6)
    subjects = _subjects(rng, split, kind, count)
    names = rng.sample(list(ATTRIBUTES[kind]), rng.choice((1, 2, 2, 3)))
    table, facts = {}, []
    for name in names:
        table[name] = dict(zip(subjects, _values(rng, split, kind, name, count)))
        plain, known, unseen, *_ = ATTRIBUTES[kind][name]
        pool = [plain, plain, *known]
        one_wording = rng.choice(pool) if rng.random() < 0.5 else None
        wordings = [one_wording or rng.choice(pool) for _ in subjects]
        if split == "heldout":  # all facts, or at least one, in a wording that training lacks
            wordings = unseen * count if one_wording else unseen + wordings[1:]
        for (subject, value), wording in zip(table[name].items(), wordings):
            facts.append((subject, wording.format(S=subject, V=value)))
    if rng.random() < 0.6:
        rng.shuffle(facts)
    else:  # all about one subject together
        facts.sort(key=lambda fact: subjects.index(fact[0]))
    return kind, table, [text[0].upper() + text[1:] for _, text in facts]


def _lookup(rng, split):
    """(facts, question, right, wrongs, reasons) of a one- or two-step lookup."""
    kind, table, facts = _world(rng, split)
    first, *others = rng.sample(list(table), len(table))
    specs = ATTRIBUTES[kind]
    subjects = list(table[first])
    subject = rng.choice(subjects)
    value = table[first][subject]
    reason = specs[first][0].format(S=subject, V=value)
    if others and rng.random() < 0.5:
        other = others[0]
        phrase = specs[first][5].format(V=value)
        question = rng.choice(specs[other][3]).format(S=phrase).replace("the the ", "the ")
        right = table[other][subject]
        wrongs = [table[other][name] for name in subjects if name != subject]
        second = specs[other][0].format(S=subject, V=right)
        return f"{kind}2", facts, question, right, wrongs, [reason, second]
    if rng.random() < 0.5:
        question = rng.choice(specs[first][3]).format(S=subject)
        wrongs = [table[first][name] for name in subjects if name != subject]
        return f"{kind}1", facts, question, value, wrongs, [reason]
    question = rng.choice(specs[first][4]).format(V=value)
    wrongs = [name for name in subjects if name != subject]
    return f"{kind}1", facts, question, subject, wrongs, [reason]


def _compare(rng, split):
    names = [name for name, _ in pools.people(rng, split, 4)]
    said, most, least = rng.choice(COMPARED)
    high = rng.choice((20, 99, 300))
    numbers = pools.draw(rng, split, lambda: tuple(rng.sample(range(2, high), 4)))
    facts = [f"{name} {said.format(n=n)}." for name, n in zip(names, numbers)]
    top = rng.random() < 0.5
    number = (max if top else min)(numbers)
    right = names[numbers.index(number)]
    question = f"Who is the {most if top else least}?"
    order = sorted(numbers, reverse=top)
    reason = ["In order: " + ", ".join(map(str, order)) + ".", f"{right} {said.format(n=number)}."]
    return "compare", facts, question, right, [name for name in names if name != right], reason


def generate(rng, split, thinking=None, letter=None):
    """`letter` fixes where the right answer stands (default uniform)."""
    if thinking is None:
        thinking = rng.random() < 0.5
    build = _compare if rng.random() < 0.12 else _lookup
    kind, facts, question, right, wrongs, reasons = build(rng, split)
    options = rng.sample(wrongs, 3)
    letter = letter or rng.choice(LETTERS)
    options.insert(LETTERS.index(letter), right)
    mark = ")" if rng.random() < 0.8 else "."
    listed = "\n".join(f"{name}{mark} {option}" for name, option in zip(LETTERS, options))
    joint = " " if rng.random() < 0.6 else "\n"
    body = joint.join(facts) + rng.choice((" ", "\n", "\n\n")) + question
    text = rng.choice(INSTRUCTIONS[split]) + body + "\n\n" + listed
    worked = " ".join(reason[0].upper() + reason[1:] for reason in reasons)
    worked += f"\nThe right option is {right}."
    ending = f"Answer: {letter}"
    item = chat(f"choices/{kind}", [text, ending if thinking else worked + "\n\n" + ending], letter,
                system=system_prompt(rng, split, 0.15), reasoning=worked if thinking else None)
    item.choice = {"question": body, "options": options}
    return item
