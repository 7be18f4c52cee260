"""Harmless prose of any length, composed sentence by sentence: what needles are hidden in."""
from . import pools
from .sample import Sample

ADJECTIVES = {
    "train": """old young small large quiet loud bright dark warm cold heavy light clean dusty
        round square narrow wide soft hard rusty wooden broken empty full simple strange plain
        smooth rough shiny pale tall short thick thin hollow wet dry sweet""".split(),
    "heldout": "ancient tiny huge painted folded polished crooked gentle".split(),
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
    without a word;with great care;as always;as usual;for no reason""".replace("\n    ", "").split(";")
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
_OTHERS = ["wait", "sing", "work", "talk", "rest", "walk", "listen", "read"]


def sentence(rng, split):
    choice = rng.choice
    pattern = choice(PATTERNS[split])
    adjectives = ADJECTIVES[split]
    single, plural = choice(pools.THINGS[split])
    time = choice(TIMES)
    where = choice(WHERES)
    name = (choice(pools.SHE[split]) if rng.random() < 0.5 else choice(pools.HE[split])
            ) if rng.random() < 0.8 else pools.made_up(rng, split)
    return pattern.format(
        The=choice(("The", "The", "The", "One", "Every", "That")), A=choice(("A", "One")),
        a=choice(adjectives), a2=choice(adjectives), an=choice(ANIMALS), w=choice(WORKERS),
        g=choice(NATURE), g2=choice(NATURE), r=choice(ROOMS), v=choice(VERBS), m=choice(MOVES),
        m2=choice(_OTHERS), s=choice(STATES), o=choice(_OTHERS), i=time, I=time.capitalize(),
        l=where, L=where.capitalize(), k=choice(LINKS), N=name, t=single, ts=plural)


def estimate(text):
    """About how many tokens a text of common words has: words, stops and digits."""
    digits = sum(map(text.count, "0123456789")) if any(c.isdigit() for c in text) else 0
    return text.count(" ") + 1 + text.count(".") + text.count(",") + digits


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
