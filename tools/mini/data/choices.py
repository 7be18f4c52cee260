"""Four-choice questions over made-up worlds; all that is needed stands in the question."""
from . import choices_worlds, pools
from .choices_worlds import COMPARED, FOODS, HOMES, JOBS, RELATIONS
from .sample import chat
from .systems import system_prompt

LETTERS = "ABCD"
FOLLOWING = (0, 1, 3, 5)  # further questions in one conversation of training
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

def _distinct(rng, count, make):
    found = []
    while len(found) < count:
        value = make()
        if value not in found:
            found.append(value)
    return found


def _made_up(rng, split, count):
    words = _distinct(rng, count, lambda: pools.made_up(rng, split))
    return pools.alike(rng, words) if split == "train" and rng.random() < 0.6 else words


def _people(rng, split, count):
    names = [name for name, _ in pools.people(rng, split, count)]
    return pools.alike(rng, names) if split == "train" and rng.random() < 0.4 else names


def _values(rng, split, attribute, count):
    lists = {"food": FOODS, "home": HOMES, "job": JOBS, "colour": pools.COLOURS["train"]}
    if attribute in lists:
        return rng.sample(lists[attribute], count)
    if attribute == "owns":
        return [single for single, _ in pools.things(rng, split, count)]
    if attribute in ("ruler", "friend"):
        return _people(rng, split, count)
    lower = attribute in ("coin", "enemy")
    words = _made_up(rng, split, count)
    return [word.lower() for word in words] if lower else words


def _subjects(rng, split, kind, count):
    if kind == "person":
        return _people(rng, split, count)
    words = _made_up(rng, split, count)
    return [word.lower() for word in words] if kind == "animal" else words


def _wordings(rng, split, relation, count):
    """One wording for each fact."""
    pool = [relation.plain, relation.plain, *relation.known]
    if split == "train":
        pool += relation.more
    one_wording = rng.choice(pool) if rng.random() < 0.5 else None
    wordings = [one_wording or rng.choice(pool) for _ in range(count)]
    if split == "heldout":  # all facts, or at least one, in a wording that training lacks
        unseen = relation.unseen
        wordings = unseen * count if one_wording else unseen + wordings[1:]
    return wordings


def _dressed(rng, text):
    """A wording of training with words before or after it."""
    if rng.random() < 0.15:
        text = rng.choice(choices_worlds.BEFORE) + text[0].lower() + text[1:]
    if rng.random() < 0.15:
        text = text.removesuffix(".") + rng.choice(choices_worlds.AFTER) + "."
    return text


class World:
    """Relations between subjects and values, and the sentences that tell them."""

    def __init__(self, rng, split):
        self.rng, self.split = rng, split
        kind = rng.choice(list(RELATIONS))
        count = rng.randint(4, 6)
        if split == "train" and rng.random() < 0.35:
            kind = "coined"
        self.kind = kind
        subjects = _subjects(rng, split, kind, count)
        if kind == "coined":
            self.relations = choices_worlds.coined_relations(rng, rng.choice((1, 2, 2, 3)))
            names = list(self.relations)
        else:
            self.relations = RELATIONS[kind]
            names = rng.sample(list(RELATIONS[kind]), rng.choice((1, 2, 2, 3)))
        self.table, facts = {}, []
        for name in names:
            relation = self.relations[name]
            self.table[name] = dict(zip(subjects, self.values(name, count)))
            wordings = _wordings(rng, split, relation, count)
            for (subject, value), wording in zip(self.table[name].items(), wordings):
                if split == "train":
                    wording = _dressed(rng, wording)
                facts.append((subject, wording.format(S=subject, V=value)))
        if rng.random() < 0.6:
            rng.shuffle(facts)
        else:  # all about one subject together
            facts.sort(key=lambda fact: subjects.index(fact[0]))
        self.facts = [text[0].upper() + text[1:] for _, text in facts]

    def values(self, name, count):
        if self.kind == "coined":
            words = _distinct(self.rng, count, lambda: pools.coined(self.rng))
            if self.rng.random() < 0.5:
                words = pools.alike(self.rng, words)
            return [word.capitalize() for word in words] if self.rng.random() < 0.5 else words
        return _values(self.rng, self.split, name, count)

    def asks(self, shared, own):
        return shared + own if self.split == "train" else shared

    def lookup(self):
        """(kind, question, right, wrongs, reasons) of a one- or two-step lookup."""
        rng, table = self.rng, self.table
        first, *others = rng.sample(list(table), len(table))
        relation = self.relations[first]
        subjects = list(table[first])
        subject = rng.choice(subjects)
        value = table[first][subject]
        if others and rng.random() < 0.5:
            other = self.relations[others[0]]
            phrase = relation.phrase.format(V=value)
            asked = self.asks(other.ask_value, other.more_value)
            question = rng.choice(asked).format(S=phrase).replace("the the ", "the ")
            right = table[others[0]][subject]
            wrongs = [table[others[0]][name] for name in subjects if name != subject]
            return f"{self.kind}2", question, right, wrongs, [
                relation.back.format(S=subject, V=value), other.plain.format(S=subject, V=right)]
        if rng.random() < 0.5:
            asked = self.asks(relation.ask_value, relation.more_value)
            question = rng.choice(asked).format(S=subject)
            wrongs = [table[first][name] for name in subjects if name != subject]
            return f"{self.kind}1", question, value, wrongs, [
                relation.plain.format(S=subject, V=value)]
        asked = self.asks(relation.ask_owner, relation.more_owner)
        question = rng.choice(asked).format(V=value)
        wrongs = [name for name in subjects if name != subject]
        return f"{self.kind}1", question, subject, wrongs, [
            relation.back.format(S=subject, V=value)]


class Ranking:
    """Four people and a number each; the answer goes through them in order."""

    def __init__(self, rng, split):
        self.rng = rng
        self.names = [name for name, _ in pools.people(rng, split, 4)]
        self.said, self.most, self.least = rng.choice(COMPARED)
        high = rng.choice((20, 99, 300))
        self.numbers = pools.draw(rng, split, lambda: tuple(rng.sample(range(2, high), 4)))
        self.facts = [f"{name} {self.said.format(n=n)}."
                      for name, n in zip(self.names, self.numbers)]

    def lookup(self):
        top = self.rng.random() < 0.5
        pairs = list(zip(self.names, self.numbers))
        best, lines = pairs[0], [f"{pairs[0][0]}: {pairs[0][1]}."]
        for name, number in pairs[1:]:
            if (number > best[1]) == top:
                best = name, number
            lines.append(f"{name}: {number}, {self.most if top else self.least} "
                         f"{best[0]} with {best[1]}.")
        question = f"Who is the {self.most if top else self.least}?"
        right = best[0]
        return "compare", question, right, [name for name in self.names if name != right], lines


def _asked(rng, world, letter):
    """(question, options, right letter, what is said before the letter, kind)."""
    kind, question, right, wrongs, reasons = world.lookup()
    options = rng.sample(wrongs, 3)
    letter = letter or rng.choice(LETTERS)
    options.insert(LETTERS.index(letter), right)
    worked = " ".join(reason[0].upper() + reason[1:] for reason in reasons)
    return question, options, letter, worked + f"\nThe right option is {right}.", kind


def _listed(options, mark):
    return "\n".join(f"{name}{mark} {option}" for name, option in zip(LETTERS, options))


def generate(rng, split, thinking=None, letter=None):
    """`letter` fixes where the right answer stands (default uniform)."""
    if thinking is None:
        thinking = rng.random() < 0.5
    build = Ranking if rng.random() < 0.12 else World
    world = build(rng, split)
    question, options, letter, worked, kind = _asked(rng, world, letter)
    mark = ")" if rng.random() < 0.8 else "."
    joint = " " if rng.random() < 0.6 else "\n"
    body = joint.join(world.facts) + rng.choice((" ", "\n", "\n\n")) + question
    text = rng.choice(INSTRUCTIONS[split]) + body + "\n\n" + _listed(options, mark)
    ending = f"Answer: {letter}"
    turns = [text, ending if thinking else worked + "\n\n" + ending]
    if split == "train" and not thinking:  # more questions about the same world
        for _ in range(rng.choice(FOLLOWING)):
            asked, options, letter, worked, kind = _asked(rng, world, None)
            turns += [asked + "\n\n" + _listed(options, mark),
                      worked + f"\n\nAnswer: {letter}"]
    item = chat(f"choices/{kind}", turns, letter, system=system_prompt(rng, split, 0.15),
                reasoning=worked if thinking else None)
    item.choice = {"question": body, "options": options}
    return item
