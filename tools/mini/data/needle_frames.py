"""Sentences that tell a fact of a long text, composed at random; training alone.

K is the key, V the value. Three in five tell the value before the key. What reads such a sentence
must carry the whole value on to the key: its first token is not enough where several begin alike.
Most clauses are told in both orders, so that the order is read and not known from the clause.
"""
from . import filler, pools

FIRST = 0.6  # share of frames with the value before the key

ADVERBS = ["these days", "since last year", "as I heard", "to this day", "they say", "now", "still",
           "as everybody knows", "of all places", "it seems", "for a while", "after all", "again",
           "by chance", "once more", "so they tell", "this year", "luckily", "as before", "at last"]
ENDINGS = [", and nobody knows why", " until the end of the year", ", which is a long story",
           " for good", ", or so it is said", " and has been forgotten", " with all the rest"]
SUBJECTS = ["they", "people", "somebody", "one", "we", "everybody", "the old {w}", "a {w}",
            "the {w}", "{N}", "my friend {N}", "the {w} and the {w}", "a {a} {w}", "the guards"]
# Clauses about a place: of somebody, of nobody, and the verb before its subject.
DONE = """kept hid showed guarded stored put left saw lost placed hung forgot sold mended cleaned
    painted used got admired buried dropped""".split()
PARTICIPLES = """kept hidden shown guarded stored put left seen lost placed hung forgotten sold
    mended cleaned painted used admired buried locked needed wanted""".split()
RESTS = ["lies", "stands", "rests", "waits", "hangs", "stays", "remains", "sits", "ended up",
         "has its place", "can be seen", "is", "belongs", "turned up", "must be", "may be seen"]
INVERTED = ["lies", "stands", "rests", "hangs", "was hidden", "is kept", "there was",
            "there stands", "there lies", "waits", "remains", "one gets to see", "one comes upon",
            "one may look at", "it is easy to see", "you will see", "I saw", "I once held"]
PLACES = ["in {V}"] * 4 + ["at {V}", "over in {V}", "in the town of {V}", "somewhere in {V}",
                           "only in {V}", "in old {V}", "deep in {V}", "in a house in {V}",
                           "in the middle of {V}", "inside {V}", "far away in {V}", "up in {V}"]


def _words(rng, text):
    """The text with workers w, names N and adjectives a drawn for its fields."""
    while "{w}" in text or "{N}" in text or "{a}" in text:
        text = text.replace("{w}", rng.choice(filler.WORKERS), 1)
        text = text.replace("{N}", pools.person(rng, "train")[0], 1)
        text = text.replace("{a}", rng.choice(filler.ADJECTIVES["train"]), 1)
    return text


def _subject(rng):
    return _words(rng, rng.choice(SUBJECTS))


def _with_adverb(rng, first, second, joint=" "):
    """first and second with something between them at times."""
    drawn = rng.random()
    if drawn < 0.4:
        return f"{first}{joint}{second}"
    adverb = rng.choice(ADVERBS) if drawn < 0.8 else rng.choice(filler.TIMES)
    return f"{first}, {adverb}, {second}" if rng.random() < 0.5 else f"{first} {adverb} {second}"


def _place(rng, first):
    where, shape = rng.choice(PLACES), rng.random()
    if shape < 0.35:
        clause = f"{_subject(rng)} {rng.choice(DONE)} the {{K}}"
    elif shape < 0.55:
        clause = f"the {{K}} {rng.choice(('is', 'was', 'has been'))} {rng.choice(PARTICIPLES)}"
    elif shape < 0.75 or not first:
        clause = f"the {{K}} {rng.choice(RESTS)}"
    else:
        return _with_adverb(rng, where, f"{rng.choice(INVERTED)} the {{K}}")
    if not first:
        return _with_adverb(rng, clause, where)
    shape = rng.random()
    if shape < 0.5:
        return _with_adverb(rng, where, clause, rng.choice((" ", ", ")))
    return rng.choice((f"it is {where} that {clause}", f"{{V}} is where {clause}",
                       f"{{V}} is the town in which {clause}", f"go to {{V}}, for there {clause}",
                       f"in {{V}}, which is a {rng.choice(filler.ADJECTIVES['train'])} town, "
                       f"{clause}", f"whoever visits {{V}} hears that {clause}",
                       f"from {{V}} comes the news that {clause}",
                       f"{{V}} is known because {clause}"))


OWNED = """bought got found keeps has holds inherited received won ordered carries loves wants
    mended stole took brought wears""".split()
OWNER_FIRST = ["by {V}{,} the {K} was bought", "to {V}{,} the {K} was given",
               "with {V}{,} stays the {K}", "from {V}{,} one can borrow the {K}",
               "in the house of {V}{,} stands the {K}", "in the hands of {V}{,} is the {K}",
               "it was {V} to whom they gave the {K}",
               "it is {V} who {v} the {K}", "{V} is the one who {v} the {K}",
               "{V}{,} {v} the {K}", "{V}{,} {v} the {K}", "{V}{,} {v} the {K}",
               "as a present{,} {V} got the {K}", "the house of {V}{,} holds the {K}",
               "{V} says: I own the {K}", "nobody but {V}{,} {v} the {K}",
               "when {V} was young, they gave that child the {K}",
               "{V} paid for the {K}", "{V}, a {w}, {v} the {K}"]
OWNER_LAST = ["the {K}{,} was bought by {V}", "the {K}{,} went to {V}", "the {K}{,} is with {V}",
              "the {K}{,} came into the hands of {V}", "the {K} is what {V} {v}",
              "if you need the {K}, ask {V}, who {v} it", "the {K}, which {V} {v}, is old",
              "they gave the {K}{,} to {V}", "of the {K} it is said that {V} {v} it",
              "who {v} the {K}? That is {V}"]
PRICE_FIRST = ["for {V} coins{,} {s} sold the {K}", "for {V} coins{,} {s} let go of the {K}",
               "{V} coins{,} buy the {K}", "{V} coins{,} were paid for the {K}",
               "with {V} coins{,} one gets the {K}", "at {V} coins{,} {s} offered the {K}",
               "it takes {V} coins{,} to get the {K}", "it was {V} coins that {s} gave for the {K}",
               "{s} paid {V} coins{,} for the {K}", "{V} coins{,} were asked for the {K}",
               "{V} is the number of coins that buys the {K}",
               "whoever has {V} coins{,} can take the {K} home",
               "{V} coins, not one more,{,} is what {s} wants for the {K}"]
PRICE_LAST = ["the {K}{,} went for {V} coins", "the {K} is worth {V} coins",
              "who wants the {K}{,} pays {V} coins", "the {K}{,} was sold for {V} coins",
              "{s} sold the {K}{,} for {V} coins", "on the {K} there is a label: {V} coins",
              "if you like the {K}, bring {V} coins", "as for the {K}, {V} coins will do"]
CODE_FIRST = ["with {V}{,} {s} opened the {K}", "with {V}{,} {s} locked the {K}",
              "{V} is what opens the {K}", "type {V} to open the {K}",
              "{V}{,} was written on the {K}", "it is {V} that opens the {K}",
              "only {V}{,} opens the {K}", "the number {V}{,} opens the {K}",
              "by {V} one knows the {K}", "under {V}{,} {s} stored the {K}",
              "{V}, said {s}, unlocks the {K}", "{s} chose {V}{,} for the {K}",
              "keep {V} in mind: it opens the {K}", "{V} was the answer when {s} asked for the {K}"]
CODE_LAST = ["the {K} opens with {V}", "for the {K} {s} uses {V}", "on the {K}{,} stands {V}",
             "the {K}{,} has the number {V}", "to get into the {K}, press {V}",
             "the {K}, says {s}, has {V} as its code", "whoever opens the {K}{,} types {V}",
             "{s} locked the {K}{,} with {V}", "if the {K} is locked, try {V}"]
LISTS = {"owner": (OWNER_FIRST, OWNER_LAST), "price": (PRICE_FIRST, PRICE_LAST),
         "code": (CODE_FIRST, CODE_LAST)}


def _listed(rng, form, first):
    text = rng.choice(LISTS[form][not first])
    text = text.replace("{v}", rng.choice(OWNED)).replace("{s}", _subject(rng))
    between = f", {rng.choice(ADVERBS)}," if rng.random() < 0.3 else ""
    return _words(rng, text.replace("{,}", between))


def frame(rng, form, first=None):
    """A sentence with {K} and {V} for the form "place", "owner", "price" or "code"."""
    if first is None:
        first = rng.random() < FIRST
    text = _place(rng, first) if form == "place" else _listed(rng, form, first)
    if rng.random() < 0.1:
        text += rng.choice(ENDINGS)
    return text + "."


def coined(rng, word):
    """The same for a relation with a made-up name."""
    first = rng.random() < FIRST
    small = "by with for from at near over under once always now then only still often".split()
    between = " ".join(rng.choice(small) for _ in range(rng.randint(0, 2)))
    says = rng.choice((f"the {word}", f"the {word}", f"a {word}", f"{word}s", f"{word}ed",
                       f"is the {word} of", f"was {word}ed by", f"gives the {word} to",
                       f"{_subject(rng)} {word}ed"))
    ends = ("{V}", "the {K}") if first else ("the {K}", "{V}")
    before = rng.choice(("", "", "by ", "in ", "with ", "for ", "as for ", "it is "))
    return " ".join(f"{before}{ends[0]} {between} {says} {ends[1]}".split()) + "."


def both_orders(rng, form):
    """Two frames: one tells the value first, the other last."""
    return [frame(rng, form, True), frame(rng, form, False)]
