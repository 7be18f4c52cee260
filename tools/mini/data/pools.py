"""Names, things and numbers, each belonging to one split for good.

Written lists are cut by hand. What is composed (made-up names, number tuples, pairs of words) is
cut by a checksum: one eighth is held out, and no draw for one split can give the other's.
"""
import re
import zlib

HELDOUT_SHARE = 8  # one in so many


def split_of(*values):
    """The split that a tuple of values belongs to."""
    text = "|".join(map(str, values))
    # Words that differ in one letter must not share a fate: crc32 alone is linear.
    checksum = zlib.crc32(text.encode()) * 2654435761 & 0xFFFFFFFF
    return "heldout" if checksum >> 16 & HELDOUT_SHARE - 1 == 0 else "train"


def draw(rng, split, make):
    """Calls make() until its value belongs to the split."""
    while True:
        value = make()
        if split_of(value) == split:
            return value


SHE = {
    "train": """Anna Maria Emma Clara Julia Sara Nina Lena Paula Rosa Laura Alice Ruth Helen Eva
        Ida Olga Vera Iris Ella Lucy Grace Amy Jane Kate Mary Linda Susan Diana Carla Elena Sofia
        Marta Irene Greta Hanna Frida Ingrid Lily Daisy Ada Edith Mina Nora Olivia Zoe Chloe Fatima
        Aisha Leila Yasmin Priya Meera Anjali Mei Yuki Hana Sakura Amara Zola""".split(),
    "heldout": """Bella Tessa Flora Norma Petra Selma Wanda Sylvia Monica Renata Kira Layla
        Naomi Esther""".split(),
}
HE = {
    "train": """Tom Ben Sam Max Leo Paul Peter Mark John James David Daniel Jack Adam Oscar Hugo
        Felix Simon Martin Robert Frank Henry George Walter Carl Erik Ivan Igor Boris Victor Luca
        Marco Pablo Diego Carlos Luis Jorge Omar Ali Hassan Karim Yusuf Ravi Arjun Vikram Wei Jin
        Kenji Hiro Taro Kofi Kwame Jomo Andrew Philip Stephen Noah Liam Ethan Owen""".split(),
    "heldout": """Bruno Theo Ralph Edgar Otto Stefan Nolan Rafael Tariq Anton Jasper Milo
        Conrad Dario""".split(),
}
_ONSETS = "b c d f g h j k l m n p r s t v w z br dr fl gr kl pl sh st th tr".split()
_VOWELS = "a e i o u a e i o ai ea".split()
_CODAS = ["", "", "", "n", "r", "l", "s", "m", "t", "k", "nd", "rn"]


# Accidents that nobody wants to read in a name.
_UNWANTED = re.compile("shit|fuc?k|cunt|nig|fag|rap|dic?k|cock|slut|whor|nazi|tit|piss|cum|sex|homo"
                       "|ass|anus|coon|kike|paki|spic|hell|kill|porn|slav")


_SPOKEN = re.compile(r"(?!(.)\1)[^aeiou]{0,2}[aeiou]").match


def _syllables(rng):
    word = "".join(rng.choice(_ONSETS) + rng.choice(_VOWELS) for _ in range(2))
    return word + rng.choice(_CODAS)


def _blend(rng):
    """The head of one known word on the tail of another, so that every piece of a word is met."""
    head, tail = rng.choice(_WORDS), rng.choice(_WORDS)
    return (head[:rng.randint(1, 4)] + tail[-rng.randint(2, 5):]).lower()


def _letters(rng):
    """Any letters with a vowel among them: Qyrbo, Xeedk."""
    word = [rng.choice(_ALPHABET) for _ in range(rng.randint(3, 8))]
    word[rng.randrange(len(word))] = rng.choice("aeiouy")
    return "".join(word)


def _likely(rng):
    """Letters that follow one another as in known words, so that it looks like English."""
    word = "^^"
    while len(word) < 12:
        letter = rng.choice(_FOLLOWERS[word[-2:]])
        if letter == "$":
            break
        word += letter
    return word[2:]


def coined(rng):
    """A word of training that nobody has heard, lower case, more varied than made_up: it is to be
    copied, whatever tokens it falls into."""
    makers = (_syllables, _blend, _likely, _likely, _letters)
    while True:
        word = rng.choice(makers)(rng)
        if (3 <= len(word) <= 12 and not _UNWANTED.search(word) and word not in _KNOWN
                and word not in HELDOUT_WORDS and split_of(word) == "train"
                and split_of(word.capitalize()) == "train"):
            return word


def alike(rng, words):
    """Training words, some of them with the first letters of one another: whoever copies one must
    not go on with the rest of another. Words stay different, and of training. One letter is often
    a token of its own."""
    stems = [word[:rng.randint(1, 3)] for word in rng.sample(words, min(len(words), 3))]
    out = []
    for word in words:
        stem = rng.choice(stems)
        changed = stem + word[len(stem):]
        good = (len(word) > len(stem) and word.isdigit() == stem.isdigit()
                and changed not in out + words
                and split_of(changed) == split_of(changed.lower()) == "train"
                and changed.lower() not in HELDOUT_WORDS and not _UNWANTED.search(changed.lower()))
        out.append(changed if good and rng.random() < 0.8 else word)
    return out


def made_up(rng, split):
    """A capitalised word that nobody has heard: Tolarn, Brevis, Shuka."""
    if split == "train" and rng.random() < 0.5:
        return coined(rng).capitalize()

    def make():
        while True:
            word = _blend(rng) if rng.random() < 0.3 else _syllables(rng)
            good = len(word) > 3 and _SPOKEN(word) and not _UNWANTED.search(word)
            if good and word not in _KNOWN:
                return word.capitalize()
    return draw(rng, split, make)


def person(rng, split):
    """(name, pronoun)."""
    if rng.random() < 0.25:
        return made_up(rng, split), rng.choice(("he", "she"))
    if rng.random() < 0.5:
        return rng.choice(SHE[split]), "she"
    return rng.choice(HE[split]), "he"


def people(rng, split, count):
    found = {}
    while len(found) < count:
        name, pronoun = person(rng, split)
        found[name] = pronoun
    return list(found.items())


# Countable things: singular, plural where it is not singular + "s".
_THINGS = {
    "train": """apple pear orange lemon plum banana melon onion carrot potato:potatoes
        tomato:tomatoes egg nut cake cookie muffin sandwich:sandwiches candle book pencil pen
        notebook stamp card sticker marble coin shell stone ball balloon kite doll toy puzzle
        button ribbon scarf:scarves hat shirt sock glove cup plate bowl spoon fork bottle jar box:boxes
        basket bag brick tile plank nail screw rope chair table lamp clock picture poster postcard
        letter ticket badge flag flower rose tulip seed tree bush:bushes leaf:leaves fish:fish
        duck hen goat sheep:sheep rabbit pumpkin turnip cherry:cherries berry:berries
        peach:peaches radish:radishes loaf:loaves roll pie tart biscuit chocolate candy:candies
        mug towel blanket pillow magazine map crayon brush:brushes bead feather pebble magnet
        wheel tyre battery:batteries bulb key lock bell drum whistle medal""".split(),
    "heldout": """olive fig bun pancake envelope folder bracelet ring bucket ladder
        hammer broom vase mirror turtle hamster acorn lantern comic guitar spade
        bench:benches""".split(),
}


def _plurals(words):
    pairs = (word.partition(":") for word in words)
    return [(single, plural or single + "s") for single, _, plural in pairs]


THINGS = {split: _plurals(words) for split, words in _THINGS.items()}

_FOODS = {"train": """apple pear orange lemon plum banana melon onion carrot potato tomato egg nut
              pumpkin cherry berry peach chocolate""".split(), "heldout": ["olive", "fig", "acorn"]}
FOODS = {split: [pair for pair in THINGS[split] if pair[0] in _FOODS[split]] for split in THINGS}

COLOURS = {"train": "red blue green yellow white black brown pink grey purple".split(),
           "heldout": "orange golden silver".split()}
PLACES = {
    "train": """the market;the shop;the school;the park;the library;the farm;the harbour;the
        station;the museum;the garden;the village;the office;the bakery;the kitchen;the
        workshop;the hall;the barn;the fair""".replace("\n        ", " ").split(";"),
    "heldout": "the theatre;the cinema;the castle;the hospital".split(";"),
}


_WORDS = [word.lower() for word in SHE["train"] + HE["train"]]
_WORDS += [word for pair in THINGS["train"] for word in pair] + """tailor writer morning square
    after another forest river window tower market kitchen machine garden minute hour person
    number message duration location customer address weekday destination reserve evening
    cellar stable library weaver gardener winter summer remember question answer""".split()
_KNOWN = {word.lower() for split in ("train", "heldout")
          for word in SHE[split] + HE[split] + [word for pair in THINGS[split] for word in pair]}


_ALPHABET = "abcdefghijklmnopqrstuvwxyz"
_FOLLOWERS = {}
for _word in _WORDS:
    for _at, _letter in enumerate(_word + "$"):
        _FOLLOWERS.setdefault(("^^" + _word)[_at:_at + 2], []).append(_letter)
# Single words that only held-out examples use; other modules add theirs.
HELDOUT_WORDS = {word.lower() for word in SHE["heldout"] + HE["heldout"] + COLOURS["heldout"]
                 + [word for pair in THINGS["heldout"] for word in pair]}


def thing(rng, split):
    return rng.choice(THINGS[split])


def things(rng, split, count):
    return rng.sample(THINGS[split], count)
