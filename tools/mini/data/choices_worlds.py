"""The relations of made-up worlds and how facts and questions word them.

S is the subject, V the value. Training adds its own wordings to those it shares with held-out
questions, and relations that nobody has heard of in frames put together at random, so that a fact
is found by its words and not by a wording learnt by heart.
"""
from dataclasses import dataclass, field

from . import filler, pools


@dataclass
class Relation:
    plain: str           # the fact as answers say it, the subject first
    back: str            # the same with the value first, for questions that name the value
    known: list          # other wordings
    unseen: list         # wordings of held-out questions alone
    ask_value: list
    ask_owner: list
    phrase: str          # the owner in a two-step question
    more: list = field(default_factory=list)        # wordings of training alone
    more_value: list = field(default_factory=list)  # questions of training alone
    more_owner: list = field(default_factory=list)


RELATIONS = {
    "country": {
        "capital": Relation(
            "The capital of {S} is {V}.", "{V} is the capital of {S}.",
            ["{V} is the capital of {S}.", "In {S}, the capital is called {V}."],
            ["{S} has the capital {V}."],
            ["What is the capital of {S}?", "Which town is the capital of {S}?",
             "How is the capital of {S} called?"],
            ["Which country has the capital {V}?", "{V} is the capital of which country?"],
            "the country whose capital is {V}",
            ["{S} is governed from its capital {V}.", "{V} became the capital of {S}.",
             "The name of the capital of {S} is {V}.", "{S} chose {V} as its capital.",
             "As the capital of {S}, {V} is well known.", "{S}'s capital is {V}.",
             "The town of {V} serves {S} as its capital.", "For {S} the capital is {V}.",
             "{V}, where the king sits, is the capital of {S}.", "{V} is to {S} its capital.",
             "From {V}, its capital, {S} is led.", "It is {V} that {S} has as its capital."],
            ["Name the capital of {S}.", "Which capital belongs to {S}?",
             "{S}: what is its capital?", "The capital of {S} is which town?"],
            ["The capital {V} belongs to which country?", "Of which country is {V} the capital?"]),
        "coin": Relation(
            "In {S} people pay with the {V}.", "The {V} is the coin of {S}.",
            ["The {V} is the coin of {S}.", "{S} uses the {V} as its coin."],
            ["The coin of {S} is the {V}."],
            ["With what do people pay in {S}?", "Which coin is used in {S}?",
             "What is the coin of {S}?"],
            ["In which country do people pay with the {V}?", "Which country uses the {V}?"],
            "the country that pays with the {V}",
            ["{S} has a coin called the {V}.", "With the {V} you can pay in {S}.",
             "The {V} is money in {S}.", "Shops in {S} take the {V}.", "{S} pays with the {V}.",
             "The coin that {S} mints is the {V}.", "One needs the {V} to buy things in {S}.",
             "The coins in {S} are called {V}.", "Inside {S} goes the {V}.",
             "In {S}, the {V} buys all.", "The {V} is what shops of {S} take.",
             "It is the {V} that one needs in {S}.", "The {V}, a coin, comes from {S}."],
            ["Which money is used in {S}?", "How is the coin of {S} called?",
             "What do shops in {S} take?"],
            ["Whose coin is the {V}?", "The {V} is the coin of which country?"]),
        "river": Relation(
            "The river of {S} is the {V}.", "The {V} flows through {S}.",
            ["The {V} flows through {S}.", "{S} lies on the river {V}."],
            ["Through {S} flows the {V}."],
            ["Which river flows through {S}?", "What is the river of {S}?"],
            ["Through which country does the {V} flow?",
             "The {V} is the river of which country?"],
            "the country on the river {V}",
            ["{S} gets its water from the river {V}.", "The river {V} crosses {S}.",
             "In {S} there is a river, the {V}.", "The longest river of {S} is the {V}.",
             "Boats reach {S} on the {V}.", "Across {S} runs the {V}.",
             "{S} is crossed by the {V}.", "Along {S} goes the {V}.", "By {S} passes the {V}.",
             "Past {S} runs the {V}.", "Inside {S} one finds the {V}.",
             "The {V} is the only river of {S}.", "It is the {V} that crosses {S}.",
             "Down the {V} one sails to {S}.", "On the {V}, a river, {S} was built."],
            ["Which river does {S} have?", "How is the river of {S} called?",
             "Name the river of {S}."],
            ["Which country lies on the {V}?", "Where does the {V} flow?"]),
        "ruler": Relation(
            "The ruler of {S} is {V}.", "{V} rules {S}.",
            ["{V} rules {S}.", "{S} is ruled by {V}."],
            ["In {S}, {V} is the ruler."],
            ["Who rules {S}?", "Who is the ruler of {S}?"],
            ["Which country is ruled by {V}?", "{V} is the ruler of which country?"],
            "the country that is ruled by {V}",
            ["{S} has had {V} as its ruler for years.", "{V} became the ruler of {S}.",
             "The people of {S} follow {V}.", "The king of {S} is called {V}.",
             "{S} belongs to the realm of {V}.", "As a ruler of {S}, {V} is loved.",
             "{V} governs {S}.", "Over {S} rules {V}.", "At the head of {S} stands {V}.",
             "For {S}, {V} is the king.", "{V} wears the crown of {S}.",
             "{V} was chosen as the ruler of {S}.", "It is {V} whom {S} obeys.",
             "Within {S} the word of {V} is law.", "Since long ago {V} has led {S}."],
            ["What is the name of the ruler of {S}?", "Who governs {S}?", "By whom is {S} ruled?"],
            ["Which country does {V} rule?", "Of which country is {V} the ruler?"]),
    },
    "animal": {
        "food": Relation(
            "The {S} eats {V}.", "{V} is what the {S} eats.",
            ["{V} is what the {S} eats.", "The food of the {S} is {V}."],
            ["The {S} lives on {V}."],
            ["What does the {S} eat?", "What is the food of the {S}?"],
            ["Which animal eats {V}?"], "the animal that eats {V}",
            ["The {S} feeds on {V}.", "The {S} likes to eat {V}.", "{V} feeds the {S}.",
             "One gives {V} to the {S} as food.", "The {S} looks for {V} to eat.",
             "For the {S} there is {V} to eat.", "{V} is eaten by the {S}.",
             "The {S} needs {V} every day to eat.", "The {S} lives by eating {V}.",
             "The {S} grows on {V}.", "{V} is all that the {S} takes.",
             "With {V} one feeds the {S}.", "It is {V} that the {S} wants to eat."],
            ["What food does the {S} like?", "On what does the {S} feed?"],
            ["By which animal is {V} eaten?", "Which animal feeds on {V}?",
             "{V} is the food of which animal?"]),
        "home": Relation(
            "The {S} lives in {V}.", "In {V} lives the {S}.",
            ["The home of the {S} is {V}.", "In {V} lives the {S}."],
            ["You find the {S} in {V}."],
            ["Where does the {S} live?", "What is the home of the {S}?"],
            ["Which animal lives in {V}?"], "the animal that lives in {V}",
            ["The {S} has its home in {V}.", "One meets the {S} in {V}.",
             "{V} is where the {S} lives.", "The {S} sleeps and hunts in {V}.",
             "The {S} never leaves {V}, its home.", "To see the {S}, go to {V}.",
             "The {S} makes its home in {V}.", "{V} is home to the {S}.", "Inside {V} is the {S}.",
             "From {V} comes the {S}.", "In {V}, far away, sleeps the {S}."],
            ["Where is the home of the {S}?", "Where can the {S} be seen?"],
            ["Which animal has its home in {V}?", "Of which animal is {V} the home?"]),
        "colour": Relation(
            "The {S} is {V}.", "{V} is the colour of the {S}.",
            ["The colour of the {S} is {V}."],
            ["The {S} has the colour {V}."],
            ["What colour is the {S}?", "Which colour does the {S} have?"],
            ["Which animal is {V}?"], "the animal that is {V}",
            ["{V} is the colour of the {S}.", "The {S} shines in {V}.", "Every {S} is {V}.",
             "The skin of the {S} is {V}.", "A {V} animal is the {S}.", "The {S} looks {V}.",
             "The {S} was born {V}.", "By its {V} coat you know the {S}.",
             "The {S} has a coat of {V}."],
            ["What is the colour of the {S}?", "In which colour does one see the {S}?"],
            ["Of which animal is {V} the colour?", "Which animal has a {V} coat?"]),
        "enemy": Relation(
            "The enemy of the {S} is the {V}.", "The {V} is the enemy of the {S}.",
            ["The {S} fears the {V}.", "The {S} runs away from the {V}."],
            ["The {S} has the {V} as its enemy."],
            ["What is the enemy of the {S}?", "Which animal does the {S} fear?"],
            ["Which animal fears the {V}?"], "the animal that fears the {V}",
            ["The {V} is the enemy of the {S}.", "The {V} hunts the {S}.",
             "The {S} is hunted by the {V}.", "The {S} hides from the {V}.",
             "An old enemy of the {S} is the {V}.", "The {S} is afraid of the {V}.",
             "From the {V} the {S} must hide.", "The {S} has an enemy, the {V}.",
             "When the {V} comes, the {S} runs away.", "It is the {V} that the {S} fears.",
             "The {V} eats the {S}.", "To the {V} the {S} is food."],
            ["By which animal is the {S} hunted?", "From which animal does the {S} hide?"],
            ["Which animal is afraid of the {V}?", "Which animal has the enemy {V}?"]),
    },
    "person": {
        "job": Relation(
            "{S} works as a {V}.", "The {V} is {S}.",
            ["{S} is a {V}.", "The job of {S} is {V}."],
            ["{S} has the job of a {V}."],
            ["What is the job of {S}?", "What does {S} work as?"],
            ["Who works as a {V}?", "Who is the {V}?"], "the person who works as a {V}",
            ["{S} became a {V}.", "{S} was trained as a {V}.", "The work of a {V} is done by {S}.",
             "The {V} is called {S}.", "{S} earns money as a {V}.", "{S}, the {V}, works hard.",
             "By day {S} works as a {V}.", "As a {V}, {S} is known to all.",
             "{S} does the job of a {V}.", "The {V} in this town is {S}."],
            ["Which job does {S} have?", "What kind of work does {S} do?"],
            ["Who has the job of the {V}?", "What is the name of the {V}?"]),
        "town": Relation(
            "{S} lives in {V}.", "{V} is the home of {S}.",
            ["The home of {S} is {V}.", "{S} has a house in {V}."],
            ["In {V} lives {S}."],
            ["Where does {S} live?", "In which town does {S} live?"],
            ["Who lives in {V}?"], "the person who lives in {V}",
            ["{V} is the home of {S}.", "{S} has moved to {V}.", "{S} comes from {V}.",
             "The town of {S} is {V}.", "You can visit {S} in {V}.",
             "A house in {V} belongs to {S}.", "The town where {S} lives is {V}.",
             "In the town of {V} one meets {S}.",
             "{V} is where {S} lives.", "From {V} comes {S}.", "At {V} there is the house of {S}.",
             "{V} is the town of {S}.", "It is {V} where {S} has a bed.", "To {V} moved {S}."],
            ["Where is the home of {S}?", "Which town is the home of {S}?"],
            ["Whose home is {V}?", "Who has a house in {V}?"]),
        "owns": Relation(
            "{S} owns the {V}.", "The owner of the {V} is {S}.",
            ["The {V} belongs to {S}.", "The owner of the {V} is {S}."],
            ["{S} is the owner of the {V}."],
            ["What does {S} own?", "Which thing belongs to {S}?"],
            ["Who owns the {V}?", "To whom does the {V} belong?"],
            "the person who owns the {V}",
            ["{S} has bought the {V}.", "The {V} is the property of {S}.", "{S} keeps the {V}.",
             "The {V} was given to {S} for good.", "{S} got the {V} as a present.",
             "{S}, who owns the {V}, is glad.", "The {V} is owned by {S}.",
             "To {S} belongs the {V}.", "It is {S} who has the {V}.",
             "The {V} is in the hands of {S}."],
            ["Of what is {S} the owner?", "What belongs to {S}?"],
            ["Whose is the {V}?", "Who is the owner of the {V}?", "By whom is the {V} owned?"]),
        "friend": Relation(
            "The friend of {S} is {V}.", "{V} is a friend of {S}.",
            ["{S} is a friend of {V}.", "{S} has a friend called {V}."],
            ["{S} is the friend of {V}."],
            ["Who is the friend of {S}?", "What is the name of the friend of {S}?"],
            ["Who has the friend {V}?"], "the person whose friend is {V}",
            ["{S} has {V} as a friend.", "{S} likes {V}, a good friend.",
             "{S} found a friend in {V}.", "A good friend of {S} is {V}.",
             "{S} calls {V} a friend.", "{S} and {V} are friends.", "For {S}, {V} is a friend.",
             "The best friend that {S} has is {V}.", "{V} is whom {S} calls a friend.",
             "It is {V} whom {S} trusts as a friend.", "{V} is the best friend of {S}."],
            ["Which friend does {S} have?", "How is the friend of {S} called?"],
            ["Whose friend is {V}?", "Who is a friend of {V}?"]),
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
JOBS = """baker farmer teacher sailor doctor painter miller tailor driver gardener cook singer
    writer hunter nurse guard judge clerk weaver smith""".split()

# What a training text may put before a fact and after it.
BEFORE = ["it is known that ", "everyone says that ", "note that ", "remember: ", "today ",
          "it is true that ", "by the way, ", "as we know, ", "I heard that ",
          "long ago it was said that ", "a book says: ", "still, "]
AFTER = [", as everyone knows", ", people say", " and is glad of it", ", and that is all", " again",
         ", they say", " this year", ", of course", " to this day"]
_SMALL = """by with for from at near over under the a of to and goes comes stands has had takes
    gives likes calls keeps once then there only always now this that its one""".split()


def _connection(rng, least):
    words = [rng.choice(_SMALL) if rng.random() < 0.8 else pools.coined(rng)
             for _ in range(rng.randint(least, 3))]
    return words


def _frame(rng, relation):
    """A fact in words thrown together: "by {S} goes the toral {V}"."""
    ends = ["{S}", "{V}"]
    if rng.random() < 0.5:
        ends.reverse()
    parts = [_connection(rng, 0), _connection(rng, 1), _connection(rng, 0)]
    where = rng.choice(parts[:2])
    where.insert(rng.randint(0, len(where)), relation)
    before, between, after = (" ".join(words) for words in parts)
    return " ".join(f"{before} {ends[0]} {between} {ends[1]} {after}".split()) + "."


def _noun_relation(noun, frames):
    return Relation(
        f"The {noun} of {{S}} is {{V}}.", f"{{V}} is the {noun} of {{S}}.", frames or [
            f"{{V}} is the {noun} of {{S}}.", f"{{S}}'s {noun} is {{V}}.",
            f"{{S}} calls {{V}} its {noun}.", f"For {{S}} the {noun} is {{V}}.",
            f"As a {noun}, {{S}} uses {{V}}.", f"{{S}} got the {noun} {{V}}.",
            f"With {{S}} goes the {noun} {{V}}."], [],
        [f"What is the {noun} of {{S}}?", f"Which {noun} does {{S}} have?",
         f"Name the {noun} of {{S}}.", f"{{S}} has which {noun}?"],
        [f"Whose {noun} is {{V}}?", f"{{V}} is the {noun} of what?", f"What has the {noun} {{V}}?"],
        f"the one whose {noun} is {{V}}")


def _verb_relation(verb, frames):
    return Relation(
        f"{{S}} {verb}s {{V}}.", f"{{V}} is {verb}ed by {{S}}.", frames or [
            f"{{V}} is {verb}ed by {{S}}.", f"{{S}} likes to {verb} {{V}}.",
            f"It is {{V}} that {{S}} {verb}s.", f"{{S}} never {verb}s anything but {{V}}.",
            f"There {{S}} {verb}s the old {{V}}.", f"By {{S}} is {verb}ed {{V}}."], [],
        [f"What does {{S}} {verb}?", f"What is {verb}ed by {{S}}?"],
        [f"Who {verb}s {{V}}?", f"By whom is {{V}} {verb}ed?"], f"the one who {verb}s {{V}}")


def coined_relations(rng, count):
    """{name: Relation} with words that nobody has heard, each in frames of its own."""
    found = {}
    while len(found) < count:
        noun = rng.random() < 0.6
        word = pools.coined(rng) if rng.random() < 0.8 else rng.choice(filler.NATURE)
        frames = [_frame(rng, word) for _ in range(rng.randint(1, 3))] if rng.random() < 0.5 else []
        found[word] = (_noun_relation if noun else _verb_relation)(word, frames)
    return found
