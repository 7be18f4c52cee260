"""A story under construction: sentences on one side, the steps of its answer on the other."""
import re

from .. import pools
from .more_wordings import MORE, MORE_OPENERS
from .wordings import HELDOUT_OPENERS, OPENERS, WORDINGS

ARTICLE = re.compile(r"\ba (?=[aeiou])")


def product(a, b):
    """The equation of a * b; longer factors are taken apart into parts that fit in the head."""
    small, large = sorted((a, b))
    if small < 10 and large < 100 or small == 10 or large % 100 == 0 and small < 10:
        return f"{a} * {b} = {a * b}"
    if small < 10:
        parts = (large - large % 100, large % 100)
    else:  # both above 10: the smaller one is taken apart
        parts = (small - small % 10, small % 10)
    whole = small if small < 10 else large
    if parts[1] == 0:
        return f"{a} * {b} = {a * b}"
    first, second = (whole * part for part in parts)
    if small < 10:
        spelt = f"{parts[0]} * {whole} + {parts[1]} * {whole}"
    else:
        spelt = f"{whole} * {parts[0]} + {whole} * {parts[1]}"
    return f"{a} * {b} = {spelt} = {first} + {second} = {a * b}"


class Story:
    """Keeps which wordings and numbers were used, so that splits can be told apart."""

    def __init__(self, rng, split):
        self.rng = rng
        self.split = split
        self.sentences = []
        self.steps = []       # (what it is about, equation, unit)
        self.numbers = []
        self.unseen = False   # holds a wording of the held-out pool
        self.value = None

    def number(self, low, high, step=1):
        value = self.rng.randrange(low, high + 1, step)
        self.numbers.append(value)
        return value

    def note(self, value):
        self.numbers.append(value)
        return value

    def word(self, kind):
        """A wording of the kind; held-out stories mix both pools, training has only its own."""
        known, unseen = WORDINGS[kind]
        if self.split == "heldout" and unseen and self.rng.random() < 0.5:
            self.unseen = True
            return self.rng.choice(unseen)
        if self.split == "train" and self.rng.random() < 0.7:
            known = MORE.get(kind, known)
        return self.rng.choice(known)

    def say(self, kind, *, opener=0.0, **words):
        text = ARTICLE.sub("an ", self.word(kind).format(**words))
        if opener and self.rng.random() < opener:
            pool = OPENERS + MORE_OPENERS if self.split == "train" else OPENERS
            if self.split == "heldout" and self.rng.random() < 0.5:
                pool = HELDOUT_OPENERS
            text = self.rng.choice(pool) + " " + text
        self.sentences.append(text[0].upper() + text[1:])

    def _step(self, about, equation, unit, value):
        self.steps.append((about, equation, unit))
        self.value = value
        return value

    def add(self, a, b, about, unit):
        return self._step(about, f"{a} + {b} = {a + b}", unit, a + b)

    def add_all(self, values, about, unit):
        """A sum of several, one addition at a time."""
        total = values[0]
        for value in values[1:-1]:
            total = self.add(total, value, "Together that is", unit)
        return self.add(total, values[-1], about, unit)

    def take(self, a, b, about, unit):
        return self._step(about, f"{a} - {b} = {a - b}", unit, a - b)

    def times(self, a, b, about, unit):
        return self._step(about, product(a, b), unit, a * b)

    def divide(self, a, b, about, unit):
        return self._step(about, f"{a} / {b} = {a // b}", unit, a // b)

    def person(self, count=1):
        found = pools.people(self.rng, self.split, count)
        return found[0] if count == 1 else found

    def other_than(self, name):
        while True:
            other = self.person()[0]
            if other != name:
                return other

    def actor(self):
        """Words for one person: A the name, p the pronoun, h the possessive."""
        name, pronoun = self.person()
        return {"A": name, "p": pronoun, "h": "his" if pronoun == "he" else "her"}

    def thing(self):
        return pools.thing(self.rng, self.split)

    def chance(self, share):
        return self.rng.random() < share
