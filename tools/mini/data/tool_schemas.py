"""Parameters and functions that tool examples are composed of.

A parameter kind knows its possible keys, its schema, how to draw a value and how a request says it.
A function is a verb and a noun with one to four parameters of different kinds.
"""
from dataclasses import dataclass

from . import filler, pools, quoted


@dataclass
class Kind:
    keys: tuple          # names a schema may give it
    unseen_keys: tuple   # names that only held-out schemas use
    schema: dict
    says: str            # its description
    value: object        # (rng, split) -> JSON value
    phrase: object       # (rng, value) -> how a request says it


def _town(rng, split):
    return pools.made_up(rng, split)


def _title(rng, split):
    if split == "train" and rng.random() < 0.5:
        return quoted.title(rng)
    adjectives = filler.ADJECTIVES["train"] + pools.COLOURS["train"]

    def make():
        return f"{rng.choice(adjectives)} {rng.choice(pools.THINGS['train'])[0]}"
    return pools.draw(rng, split, make)


def _message(rng, split):
    if split == "train" and rng.random() < 0.6:
        return quoted.sentence(rng)
    text = filler.sentence(rng, split)
    return text[:-1] if rng.random() < 0.3 else text


def _number(low, high):
    def value(rng, split):
        return rng.randint(low, high)
    return value


def _decimal(rng, split):
    parts = (0.5, 0.25, 0.1, 0.75, 0.2)
    return pools.draw(rng, split, lambda: round(rng.randint(1, 99) + rng.choice(parts), 2))


def _street(rng, split):
    return pools.made_up(rng, split) + rng.choice((" Street", " Road", " Lane"))


def _list(rng, split):
    if split == "train" and rng.random() < 0.5:
        return quoted.names(rng)
    return [plural for _, plural in pools.things(rng, split, rng.randint(2, 4))]


def _listed(words):
    return ", ".join(words[:-1]) + " and " + words[-1]


def _say(*wordings):
    def phrase(rng, value):
        return rng.choice(wordings).format(v=value)
    return phrase


def _object(rng, split, **makers):
    return {key: make(rng, split) for key, make in makers.items()}


INTEGER, STRING = {"type": "integer"}, {"type": "string"}


def _properties(**types):
    return {"type": "object", "properties": types, "required": list(types)}


DAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]

KINDS = {
    "town": Kind(("city", "town", "place", "location"), ("city_name",), STRING, "The town", _town,
                 _say("in {v}", "at {v}", "in the town of {v}")),
    "person": Kind(("name", "person", "user", "customer"), ("person_name",), STRING,
                   "Name of a person",
                   lambda rng, split: pools.person(rng, split)[0],
                   _say("for {v}", "in the name of {v}")),
    "day": Kind(("day", "date", "weekday"), ("on_day",), STRING, "Day of the week",
                lambda rng, split: rng.choice(DAYS), _say("on {v}", "this {v}", "next {v}")),
    "title": Kind(("title", "label", "subject"), ("title_text",), STRING, "A title", _title,
                  _say('called "{v}"', 'with the title "{v}"', 'titled "{v}"')),
    "message": Kind(("text", "message", "content", "body"), ("message_text",), STRING, "The text",
                    _message,
                    _say('with the text "{v}"', 'saying "{v}"', 'that says "{v}"')),
    "colour": Kind(("colour", "color"), ("main_colour",), STRING, "A colour",
                   lambda rng, split: rng.choice(pools.COLOURS["train"]),
                   _say("in {v}", "coloured {v}")),
    "size": Kind(("size",), ("size_name",), {"type": "string",
                                             "enum": ["small", "medium", "large"]}, "The size",
                 lambda rng, split: rng.choice(("small", "medium", "large")),
                 _say("in size {v}", "of {v} size")),
    "unit": Kind(("unit", "units"), ("unit_name",), {"type": "string",
                                                     "enum": ["celsius", "fahrenheit"]},
                 "Unit of temperature", lambda rng, split: rng.choice(("celsius", "fahrenheit")),
                 _say("in {v}", "with {v} as the unit")),
    "people": Kind(("people", "guests", "persons"), ("guest_count",), INTEGER, "Number of people",
                   _number(2, 40),
                   _say("for {v} people", "for {v} persons", "for {v} guests")),
    "minutes": Kind(("minutes", "duration", "length"), ("minutes_long",), INTEGER,
                    "Duration in minutes",
                    _number(2, 240), _say("for {v} minutes", "of {v} minutes",
                                          "lasting {v} minutes")),
    "count": Kind(("count", "number", "amount", "quantity"), ("count_number",), INTEGER, "How many",
                  _number(2, 500),
                  _say("with a count of {v}", "in a quantity of {v}")),
    "floor": Kind(("floor", "level"), ("floor_number",), INTEGER, "The floor", _number(1, 60),
                  _say("on floor {v}", "on level {v}")),
    "id": Kind(("id", "order_id", "code"), ("ticket_id",), INTEGER, "Identifier",
               lambda rng, split: pools.draw(rng, split, lambda: rng.randint(1000, 99999)),
               _say("with the id {v}", "with number {v}", "with code {v}")),
    "price": Kind(("price", "max_price", "limit", "budget"), ("price_limit",), {"type": "number"},
                  "Highest price",
                  _decimal, _say("for at most {v} dollars", "below {v} dollars",
                                 "up to {v} dollars")),
    "weight": Kind(("weight", "kilos", "mass"), ("weight_kilos",), {"type": "number"},
                   "Weight in kilos", _decimal,
                   _say("weighing {v} kilos", "of {v} kilos", "with a weight of {v} kilos")),
    "urgent": Kind(("urgent", "high_priority"), ("is_urgent",), {"type": "boolean"},
                   "Whether it is urgent",
                   lambda rng, split: rng.random() < 0.5,
                   lambda rng, value: rng.choice(("as urgent", "with urgent on") if value else
                                                 ("as not urgent", "with urgent off"))),
    "sound": Kind(("sound", "alarm", "with_sound"), ("use_sound",), {"type": "boolean"},
                  "Whether there is sound",
                  lambda rng, split: rng.random() < 0.5,
                  lambda rng, value: "with sound" if value else "without sound"),
    "address": Kind(("address", "home", "destination"), ("home_address",),
                    _properties(street=STRING, number=INTEGER),
                    "Street and house number",
                    lambda rng, split: _object(rng, split, street=_street, number=_number(1, 300)),
                    lambda rng, value: f"at {value['number']} {value['street']}"),
    "box": Kind(("dimensions", "area"), ("box_dimensions",),
                _properties(width=INTEGER, height=INTEGER),
                "Width and height",
                lambda rng, split: _object(rng, split, width=_number(2, 400),
                                           height=_number(2, 400)),
                lambda rng, value: f"{value['width']} wide and {value['height']} high"),
    "seat": Kind(("seat", "position"), ("seat_position",), _properties(row=INTEGER, seat=INTEGER),
                 "Row and seat",
                 lambda rng, split: _object(rng, split, row=_number(1, 40), seat=_number(1, 60)),
                 lambda rng, value: f"in row {value['row']}, seat {value['seat']}"),
    "time": Kind(("time", "start", "start_time"), ("begin_time",),
                 _properties(hour=INTEGER, minute=INTEGER),
                 "Hour and minute",
                 lambda rng, split: _object(rng, split, hour=_number(0, 23),
                                            minute=_number(10, 59)),
                 lambda rng, value: f"at {value['hour']}:{value['minute']}"),
    "items": Kind(("items", "things", "products"), ("list_of_items",),
                  {"type": "array", "items": {"type": "string"}},
                  "Names of things", _list,
                  lambda rng, value: f"{rng.choice(('with', 'including'))} {_listed(value)}"),
}
# Phrases that would be mistaken for one another do not meet in one function.
CLASHES = [{"town", "colour", "unit"}, {"minutes", "weight"}, {"id", "count"}, {"people", "person"},
           {"seat", "floor"},
           {"title", "message"}, {"town", "address"}, {"address", "time"}, {"size", "colour"}]

VERBS = """book find send create delete open close order check list move start stop count print sell
    buy update get show set reserve add remove pay read write plan search save cancel rent share
    track""".split()
NOUNS = {
    "train": """table room ticket timer note letter lamp door report parcel meeting playlist recipe
        train flight bill photo plant car bike boat desk hotel song film book task event file
        message invoice shelf garden lesson class taxi bus trip package list game map alarm
        weather""".split(),
    "heldout": "concert camera chapter window market phone visit picture".split(),
}


@dataclass
class Function:
    verb: str
    noun: str
    parameters: list  # (key, kind name, required)

    @property
    def name(self):
        return f"{self.verb}_{self.noun}"

    def tool(self):
        properties = {}
        for key, kind, _ in self.parameters:
            properties[key] = {**KINDS[kind].schema, "description": KINDS[kind].says}
        required = [key for key, _, needed in self.parameters if needed]
        return {"type": "function", "function": {
            "name": self.name, "description": f"{self.verb.capitalize()} a {self.noun}",
            "parameters": {"type": "object", "properties": properties, "required": required}}}


def _kinds(rng, count):
    chosen = rng.sample(list(KINDS), count)
    for group in CLASHES:
        inside = [kind for kind in chosen if kind in group]
        for kind in inside[1:]:
            chosen.remove(kind)
    return chosen


def make_function(rng, split, taken=()):
    """A function whose name is not in `taken`."""
    nouns = NOUNS["train"]
    while True:
        noun = rng.choice(NOUNS["heldout"] if split == "heldout" and rng.random() < 0.4 else nouns)
        verb = rng.choice(VERBS)
        if f"{verb}_{noun}" in taken or pools.split_of(verb, noun) != split:
            continue
        parameters = []
        for kind in _kinds(rng, rng.choice((1, 2, 2, 3, 3, 4))):
            spec = KINDS[kind]
            keys = spec.unseen_keys if split == "heldout" and rng.random() < 0.2 else spec.keys
            key = rng.choice(keys)
            if all(key != other for other, _, _ in parameters):
                parameters.append((key, kind, rng.random() < 0.75))
        return Function(verb, noun, parameters)
