"""What requests of training quote: sentences, titles and lists that must be copied word for word.

The filler's twenty patterns are soon known by heart; then a sentence is guessed from its beginning
instead of copied. These are made of anything.
"""
from . import filler, needle_frames, pools, talk_lines

WORDS = sorted({word for texts in (filler.PATTERNS["train"], filler.TIMES, filler.WHERES)
                for text in texts for word in text.replace(".", "").replace(",", "").split()
                if word.isalpha()})
_NOUNS = [single for single, _ in pools.THINGS["train"]] + filler.WORKERS + filler.NATURE
_QUESTIONS = [question for known, *_ in talk_lines.INTENTS.values() for question in known]


def _word(rng):
    drawn = rng.random()
    if drawn < 0.45:
        return rng.choice(WORDS)
    if drawn < 0.7:
        return rng.choice(_NOUNS)
    if drawn < 0.85:
        return rng.choice(filler.ADJECTIVES["train"])
    return pools.coined(rng)


def _salad(rng):
    """Words in no order, a few of them twice."""
    words = [_word(rng) for _ in range(rng.randint(3, 14))]
    if rng.random() < 0.4:
        words.insert(rng.randint(0, len(words)), rng.choice(words))
    return " ".join(words)


def _told(rng):
    form = rng.choice(("place", "owner", "price", "code"))
    value = str(rng.randint(2, 9999)) if form in ("price", "code") else (
        pools.person(rng, "train")[0])
    key = f"{rng.choice(filler.ADJECTIVES['train'])} {rng.choice(_NOUNS)}"
    return needle_frames.frame(rng, form).format(K=key, V=value)[:-1]


def _turned(rng):
    """Time or place first, then who does what: the parts of the filler in other orders."""
    where = f"{rng.choice(filler.WHERES)} {rng.choice(filler.NATURE + filler.ROOMS)}"
    first = rng.choice((rng.choice(filler.TIMES), where))
    who = rng.choice((pools.person(rng, "train")[0], f"the {rng.choice(filler.WORKERS)}",
                      f"a {rng.choice(filler.ADJECTIVES['train'])} {rng.choice(filler.ANIMALS)}"))
    what = f"{rng.choice(filler.VERBS)} {rng.choice(('a', 'one', 'some', 'every', 'his', 'her'))} "
    what += f"{_word(rng)} {rng.choice(('for', 'with', 'from', 'behind', 'and'))} {_word(rng)}"
    return rng.choice((f"{first} {who} {what}", f"{who}, {first}, {what}", f"{first}: {who} {what}",
                       f"{first}, then, {who} {what}"))


def sentence(rng):
    """One or two sentences, with or without a full stop."""
    make = rng.choice((_salad, _salad, _told, _turned, _turned,
                       lambda r: filler.sentence(r, "train")[:-1]))
    text = make(rng) if rng.random() < 0.93 else rng.choice(_QUESTIONS).rstrip("?.! ")
    if rng.random() < 0.12:
        more = _turned(rng)
        text += f". {more[0].upper()}{more[1:]}"
    if rng.random() < 0.85:
        text = text[0].upper() + text[1:]
    return text + "." if rng.random() < 0.6 else text


def title(rng):
    """One to four words."""
    def make():
        text = " ".join(_word(rng) for _ in range(rng.choice((1, 2, 2, 3, 4))))
        return text.capitalize() if rng.random() < 0.3 else text
    return pools.draw(rng, "train", make)


def names(rng):
    """Two to six things: words of any kind, a colour before some, made-up ones, names."""
    def one():
        drawn = rng.random()
        if drawn < 0.3:
            return pools.coined(rng) + rng.choice(("", "s", "es"))
        if drawn < 0.4:
            return pools.person(rng, "train")[0]
        single, plural = pools.thing(rng, "train")
        colour = rng.choice(pools.COLOURS["train"]) + " " if rng.random() < 0.2 else ""
        return colour + rng.choice((plural, plural, plural, single))
    found, count = [], rng.choice((2, 2, 3, 3, 4, 5, 6))
    while len(found) < count:
        name = one()
        if name not in found:
            found.append(name)
    return pools.alike(rng, found) if rng.random() < 0.15 else found
