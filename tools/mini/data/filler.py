"""Harmless prose of any length, composed sentence by sentence: what needles are hidden in."""
import re

from . import pools
from .sample import Sample

ADJECTIVES = {
    "train": """old young small large quiet loud bright dark warm cold heavy light clean dusty
        round square narrow wide soft hard rusty wooden broken empty full simple strange plain
        smooth rough shiny pale tall short thick thin hollow wet dry sweet""".split(),
    "heldout": "ancient tiny huge spotted folded polished crooked gentle".split(),
}
ANIMALS = "dog cat horse cow bird fox bear crow owl mouse frog bee wolf deer swan".split()
WORKERS = """farmer baker teacher sailor doctor painter miller tailor driver gardener cook singer
    writer hunter fisher nurse guard judge clerk weaver""".split()
NATURE = """river hill wind rain snow field forest lake road bridge sea sky moon sun cloud stone
    grass valley path shore""".split()
ROOMS = "tower cellar kitchen garden attic barn hall yard cabin stable library workshop".split()
VERBS = """carries watches finds leaves takes paints mends wants sees moves keeps opens holds
    cleans counts hides sells brings likes remembers""".split()
MOVES = "walks runs goes comes travels moves hurries wanders climbs turns".split()
STATES = "sleeps waits sings rests works reads stands sits listens talks dreams".split()
TIMES = """in the morning;in the evening;at night;every day;at noon;once a week;in winter;in spring;
    in summer;after the rain;before sunrise;for a long time;all day;from time to time;now and then;
    without a word;with great care;as always;as usual;for no reason"""
TIMES = TIMES.replace("\n    ", "").split(";")
WHERES = ["near the", "behind the", "in front of the", "next to the", "far from the", "above the",
          "under the", "beyond the", "close to the"]
LINKS = ["and", "but", "while", "because", "so", "although", "until", "when"]
PATTERNS = {
    "train": ["{The} {a} {w} {v} a {t} {i}.", "{N} {v} the {a} {t} {i}.", "{The} {an} {s} {l} {g}.",
              "{The} {g} is {a} {i}.", "{N} {s} {i}.", "{The} {w} {m} to the {r} {i}.",
              "{The} {an} {m} {l} {g}, {k} the {w} {s}.", "There is a {a} {t} in the {r}.",
              "{N} and the {w} {o} {i}.", "It is {a} {l} {g}.", "{The} {t} of the {w} is {a}.",
              "Nobody knows why the {an} {m} {l} {g}.", "{The} {g} is {a}, {k} the {g2} is {a2}.",
              "When the {g} is {a}, {N} {s} {l} {r}.", "{N} says that the {w} {v} a {t}.",
              "{N} thinks about the {g} {i}.", "People say that the {g} was once {a}.",
              "{A} {w} and a {an} {m2} {l} {g}.", "Most of the {ts} in the {r} are {a}.",
              "{The} {w} {v} some {ts}, {k} the {an} {s}."],
    "heldout": ["{I}, {N} {v} the {t} of the {w}.", "{L} {g} there is a {a} {t}.",
                "{The} {a} {t} in the {r} is {a2}.", "{N} {m} to the {g}, {k} the {an} {s} {i}.",
                "{The} {w} says that the {g} is {a}."],
}
PLAIN_VERBS = ["wait", "sing", "work", "talk", "rest", "walk", "listen", "read"]


def _any(items):
    """A drawer: rng -> one of the items. Quicker than choice(): filler is most of the tokens."""
    count = len(items)
    return lambda rng: items[int(rng.random() * count)]


def _fields(split):
    """What each placeholder of a pattern is drawn from."""
    names = _any(pools.SHE[split] + pools.HE[split])
    adjective, single = _any(ADJECTIVES[split]), _any([s for s, _ in pools.THINGS[split]])
    nature, where = _any(NATURE), _any(WHERES)
    return {
        "The": _any(("The", "The", "The", "One", "Every", "That")), "A": _any(("A", "One")),
        "a": adjective, "a2": adjective, "an": _any(ANIMALS), "w": _any(WORKERS), "g": nature,
        "g2": nature, "r": _any(ROOMS), "v": _any(VERBS), "m": _any(MOVES), "m2": _any(PLAIN_VERBS),
        "o": _any(PLAIN_VERBS), "s": _any(STATES), "i": _any(TIMES), "k": _any(LINKS), "l": where,
        "I": _any([text.capitalize() for text in TIMES]), "t": single,
        "L": _any([text.capitalize() for text in WHERES]),
        "ts": _any([plural for _, plural in pools.THINGS[split]]),
        "N": lambda rng: names(rng) if rng.random() < 0.8 else pools.made_up(rng, split)}


def _compiled(split):
    """Patterns as lists of texts and drawers."""
    fields = _fields(split)
    return [[fields[part] if index % 2 else part
             for index, part in enumerate(re.split(r"{(\w+)}", pattern))]
            for pattern in PATTERNS[split]]


_PATTERNS = {split: _any(_compiled(split)) for split in PATTERNS}


def sentence(rng, split):
    return "".join([part if isinstance(part, str) else part(rng) for part in _PATTERNS[split](rng)])


_COUNTED = re.compile(r"[0-9]|[A-Za-z]+|[.,:]").findall
# Words that are one token; others are taken to be a token for every three letters.
_WHOLE = {word for texts in (PATTERNS["train"], TIMES, WHERES, ADJECTIVES["train"], ANIMALS,
                             WORKERS, NATURE,
                             ROOMS, VERBS, MOVES, STATES, LINKS, PLAIN_VERBS, pools.SHE["train"],
                             pools.HE["train"],
                             ["The One Every That A code costs belongs coins kept has"],
                             [word for pair in pools.THINGS["train"] for word in pair])
          for text in texts for word in _COUNTED(text)}


class _Tokens(dict):
    def __missing__(self, word):
        whole = len(word) == 1 or word in _WHOLE
        return 1 if whole else len(word) // 3 + 1


_count = _Tokens().__getitem__


def estimate(text):
    """About how many tokens a text has; the tokenizer is not at hand here."""
    return sum(map(_count, _COUNTED(text)))


def sentences(rng, split, tokens):
    """Sentences of about `tokens` tokens in all. A fifth of the texts repeat a few of them."""
    found, total = [], 0
    if rng.random() < 0.2:
        few = [sentence(rng, split) for _ in range(rng.randint(3, 12))]
        sizes = [estimate(text) for text in few]
        index = 0
        while total < tokens:
            found.append(few[index % len(few)])
            total += sizes[index % len(few)]
            index += 1
        return found
    while total < tokens:
        text = sentence(rng, split)
        found.append(text)
        total += estimate(text)
    return found


def joined(rng, texts):
    """Sentences as paragraphs of a few lines, or in one line."""
    if rng.random() < 0.3:
        return " ".join(texts)
    size = rng.randint(4, 12)
    return "\n".join(" ".join(texts[i:i + size]) for i in range(0, len(texts), size))


def plain(rng, split, tokens=None):
    """Filler as language-modelling text."""
    tokens = tokens or rng.choice((128, 256, 512))
    text = joined(rng, sentences(rng, split, tokens))
    return Sample("filler", pieces=[(text, True)], answer=None)
