"""The wordings of each clause: (those of training, those that only held-out problems use).

Placeholders: A, B, C people, p pronoun, h possessive of A; n, k, m numbers; o things, s one thing.
"""

OPENERS = """then|later|after that,|on Monday|on Tuesday|on Friday|on Sunday|in the morning|in the
evening|in the afternoon|the next day|a week later|at noon|after lunch|in spring|in summer|that
day|before dinner|at the weekend|in May|in June|in the end,|after school|at home|next,""".replace(
    "\n", " ").split("|")
HELDOUT_OPENERS = "on Saturday|the day after,|in autumn|before lunch|at the end of the day".split("|")

WORDINGS = {
    # One owner, a changing number of things.
    "have": ([
        "{A} has {n} {o}.", "{A} owns {n} {o}.",
        "there are {n} {o} in {h} room, and {A} counts them.",
        "{A} starts with {n} {o}.", "{A} has a collection of {n} {o}.",
        "{A} keeps {n} {o} in a box.", "{A} brings {n} {o}.", "at first {A} has {n} {o}.",
        "{A} had {n} {o} at the start.", "{A} holds {n} {o}.",
        "in a bag of {A} there are {n} {o}.", "{A} got {n} {o} for {h} birthday.",
        "{A} has bought {n} {o}.", "{A} found {n} {o} in the house."],
        ["{A} begins with {n} {o}.", "there are {n} {o} in the box of {A}.",
         "{A} has {n} {o} at home."]),
    "gain": ([
        "{A} buys {n} more {o}.", "{A} finds {n} more {o}.", "{B} gives {A} {n} more {o}.",
        "{A} gets {n} {o} from {B}.", "{A} picks up another {n} {o}.",
        "{p} is given {n} {o} by {B}.", "{A} adds {n} {o} to them.", "{n} more {o} arrive for {A}.",
        "{A} collects {n} more {o}.", "{B} brings {n} {o} to {A}.",
        "{A} receives {n} {o} as a present.", "{A} wins {n} {o} in a game.",
        "{p} buys another {n} {o}.", "{B} hands {n} {o} to {A}.", "{A} takes {n} {o} from {B}.",
        "{p} gets {n} more.", "{A} borrows {n} {o} from {B}.", "{A} makes {n} more {o}.",
        "{B} leaves {n} {o} for {A}.", "{p} finds another {n}."],
        ["another {n} {o} are given to {A} by {B}.", "{p} collects another {n} {o}.",
         "{B} buys {n} {o} and hands them to {A}.", "{A} receives {n} more {o} from {B}."]),
    "lose": ([
        "{A} gives {n} {o} to {B}.", "{A} loses {n} {o}.", "{A} sells {n} of the {o}.",
        "{A} gives away {n} {o}.", "{n} of the {o} are lost.", "{B} takes {n} of the {o}.",
        "{p} throws away {n} {o}.", "{A} lends {n} {o} to {B}.", "{A} hands {n} {o} to {B}.",
        "{B} gets {n} {o} from {A}.", "{p} gives {n} of them to {B}.", "{p} sells {n} of them.",
        "{A} leaves {n} {o} with {B}.", "{n} {o} are stolen.", "{p} has to give {n} {o} back.",
        "{A} brings {n} of the {o} to {B}.", "{B} buys {n} {o} from {A}.",
        "{n} of them turn out to be broken and are thrown away.", "{p} loses {n} of them."],
        ["{n} of the {o} are given to {B}.", "{p} sells {n} {o} to {B}.",
         "{A} throws {n} of the {o} away.", "{n} {o} are sold."]),
    "double": ([
        "the number of {o} doubles.", "{A} doubles the number of {o}.",
        "now {p} gets as many {o} again as {p} already has.",
        "{A} buys as many {o} as {p} already has."],
        ["{A} finds as many {o} as {p} already has."]),
    "grow": ([
        "the number of {o} becomes {k} times as large.",
        "the number of {o} grows to {k} times what it was.",
        "{A} now has {k} times as many {o} as before."],
        ["the {o} become {k} times as many as before."]),
    "halve": ([
        "{A} gives half of the {o} to {B}.", "half of the {o} are lost.",
        "{A} sells half of the {o}.",
        "{B} takes half of them.", "{p} gives half of them away.", "{A} loses half of {h} {o}."],
        ["half of the {o} are given to {B}.", "{p} sells half of them."]),
    "part": ([
        "{A} gives a {f} of the {o} to {B}.", "a {f} of the {o} are lost.",
        "{p} sells a {f} of them.", "{B} takes a {f} of the {o}."],
        ["a {f} of the {o} are given to {B}."]),
    "boxes": ([
        "{A} buys {k} boxes with {m} {o} each.", "{A} gets {k} bags of {m} {o} each.",
        "{B} brings {k} boxes, and each box holds {m} {o}.",
        "{A} finds {k} bags, each with {m} {o}.", "{p} buys {k} packs of {m} {o}.",
        "{B} gives {A} {k} packs with {m} {o} in each."],
        ["{A} gets {k} boxes, and each box holds {m} {o}.",
         "{B} brings {k} bags of {m} {o} each."]),
    "now?": ([
        "how many {o} does {A} have now?", "how many {o} does {A} have in the end?",
        "how many {o} are there now?", "how many {o} does {A} have left?",
        "what is the number of {o} that {A} has now?", "how many {o} has {A} at the end?",
        "find the number of {o} that {A} has now.", "how many does {p} have now?"],
        ["how many {o} does {p} have at the end?", "what number of {o} does {A} have in the end?"]),
    "share?": ([
        "{A} shares all of them equally among {k} friends. How many {o} does each friend get?",
        "{p} puts the {o} into {k} boxes, the same number in each. How many {o} are in one box?",
        "they are divided equally between {k} people. How many {o} does each of them get?",
        "{A} divides them into {k} equal groups. How many {o} are in each group?",
        "{k} children share the {o} equally. How many does each child get?"],
        ["{p} divides the {o} equally among {k} friends. How many does each friend get?",
         "they are put into {k} boxes, the same number in each. How many {o} are in each box?"]),
    "idle": ([
        "{A} is {n} years old.", "it is {n} degrees outside.", "the house has {n} windows.",
        "{A} lives at number {n}.", "the bus comes every {n} minutes.",
        "{h} brother is {n} years old.",
        "the shop is {n} steps away."],
        ["{h} sister is {n} years old.", "the station is {n} steps away."]),

    # Comparisons between people.
    "base": ([
        "{A} has {n} {o}.", "{A} owns {n} {o}.", "{A} collects {n} {o}.", "{A} picked {n} {o}.",
        "{A} counts {n} {o}.", "{A} sold {n} {o}.", "{A} made {n} {o}."],
        ["{n} {o} belong to {A}.", "{A} has picked {n} {o}."]),
    "more": ([
        "{B} has {n} more than {A}.", "{B} has {n} more {o} than {A}.",
        "{B} has {n} {o} more than {A} has.", "{B} has as many as {A} and {n} more.",
        "{B} beats {A} by {n} {o}.", "compared with {A}, {B} has {n} more."],
        ["{B} has {n} more than {A} has.", "compared with {A}, {B} has {n} {o} more."]),
    "fewer": ([
        "{B} has {n} fewer than {A}.", "{B} has {n} fewer {o} than {A}.",
        "{B} has {n} {o} fewer than {A} has.", "{B} has {n} less than {A}.",
        "compared with {A}, {B} has {n} fewer.", "{B} is {n} {o} behind {A}."],
        ["compared with {A}, {B} has {n} {o} fewer.", "{B} has {n} {o} less than {A} has."]),
    "multiple": ([
        "{B} has {k} times as many as {A}.", "{B} has {k} times as many {o} as {A}.",
        "{B} has {k} times the number of {o} that {A} has.",
        "for each of the {o} of {A}, {B} has {k}."],
        ["{B} has {k} times the number that {A} has."]),
    "twice": ([
        "{B} has twice as many as {A}.", "{B} has twice as many {o} as {A}.",
        "{B} has double the number of {o} that {A} has."],
        ["{B} has double the number that {A} has."]),
    "half as": ([
        "{B} has half as many as {A}.", "{B} has half as many {o} as {A}.",
        "{B} has half the number of {o} that {A} has."],
        ["{B} has half the number that {A} has."]),
    "all?": ([
        "how many {o} do they have together?", "how many {o} do they have in all?",
        "what is the total number of {o}?", "how many {o} are there altogether?",
        "how many {o} do all of them have in total?"],
        ["what is the number of {o} that they have together?",
         "how many {o} in all do they have?"]),
    "of?": ([
        "how many {o} does {A} have?", "what is the number of {o} that {A} has?",
        "how many does {A} have?"],
        ["find the number of {o} that {A} has."]),
    "gap?": ([
        "how many more {o} does {A} have than {B}?", "how many {o} more than {B} does {A} have?",
        "what is the difference between the {o} of {A} and of {B}?"],
        ["how many more does {A} have than {B}?"]),
}
