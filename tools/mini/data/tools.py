"""Tool calls in GLM's format: one, several, none, and answers from what tools returned."""
import json
import re

from . import filler, pools, talk
from .sample import Sample
from .systems import system_prompt
from .tool_schemas import KINDS, Function, make_function

REQUESTS = {
    "heldout": ["Hello, please {}.", "Could you please {}?", "I would like you to {}.",
                "You need to {}."],
}
# Training alone: what may stand before a request, the request, and what may stand behind it.
OPENINGS = ["hi. ", "hi, ", "good morning. ", "good day, ", "hey, ", "hello there. ",
            "dear model, ", "sorry, ", "well, ", "OK, ", "so, ", "listen: ", "quick: ",
            "it is late. ",
            "{N} says: ", "my name is {N}. ", "I am {N}, and here is my request: ", "{N}, ",
            "{w} {w}, ", "{w}: ",
            "{s} ", "this is a new task. ", "thanks for the last one. ", "excuse me, ",
            "as you know, I am busy. ", "there is something to do. "]
FRAMES = ["please {}.", "{}.", "can you {}?", "I want to {}.", "I need to {}.", "could you {}?",
          "help me to {}.", "{}, please.", "I would like to {}.", "now {}.", "can you please {}?",
          "would you {}?", "would you please {}?", "will you {} for me?", "I must {}.",
          "I have to {}.", "I want you to {}.", "I need you to {}.", "let us {}.", "you should {}.",
          "you must {}.", "you have to {}.", "it is time to {}.", "go and {}.", "try to {}.",
          "my wish is to {}.", "next, {}.", "please go ahead and {}.", "what I need: {}.",
          "your task is to {}.", "task: {}.", "make sure to {}.", "do not forget to {}.",
          "be so kind and {}.", "kindly {}.", "is it possible to {}?", "could someone {}?",
          "I ask you to {}.", "would it be possible to {}?", "my boss wants me to {}.",
          "{N} wants me to {}.", "{N} asked me to {}.", "may I ask you to {}?",
          "I am trying to {}.", "how about this: {}.", "one more thing: {}.",
          "the next thing is to {}.", "we need to {}.", "we want to {}.", "we would like to {}.",
          "I'd like to {}.", "do this for me: {}.", "there is a need to {}.", "{w} to {}.",
          "{w} {w} {}.", "do you think you can {}?", "it would be nice to {}.",
          "I hope you can {}.", "use a tool to {}.", "you can {} now.", "somebody has to {}."]
ENDINGS = [" Thanks.", " Thank you!", " It is important.", " Be quick.", " {N} waits for it.",
           " That is all.", " {s}", " I hope that is possible.", " Do it now."]
JOINTS = {"train": [" and another {}", ", then another {}", " and one more {}", ", and a second {}",
                    " plus another {}", " as well as another {}", ", after that another {}",
                    "; another {}", " and a further one {}", ", next one {}", " and then one {}"],
          "heldout": [" and also another {}"]}
TWO = {"train": ["{} and {}", "{}, then {}", "{} and also {}", "{}. After that, {}",
                 "{} and then {}", "{}, and after that {}", "{}; also {}", "{}. Then {}",
                 "{}. Next, {}", "{}, and {}", "at first {}, afterwards {}", "both {} and {}",
                 "{} before you {}", "{} and, when that is done, {}", "{}, next {}"],
       "heldout": ["first {}, then {}"]}
RESULTS = {
    "status": lambda rng, split: rng.choice(("done", "ready", "open", "closed", "booked", "sent",
                                             "late",
                                             "waiting", "saved", "paid")),
    "id": lambda rng, split: pools.draw(rng, split, lambda: rng.randint(1000, 99999)),
    "price": lambda rng, split: pools.draw(
        rng, split, lambda: rng.randint(1, 99) + rng.choice((0, 0.5, 0.25))),
    "temperature": lambda rng, split: rng.randint(-9, 39),
    "sky": lambda rng, split: rng.choice(("clear", "cloudy", "dark", "grey", "blue")),
    "owner": lambda rng, split: pools.person(rng, split)[0],
    "town": lambda rng, split: pools.made_up(rng, split),
    "count": lambda rng, split: rng.randint(0, 999),
    "time": lambda rng, split: f"{rng.randint(0, 23)}:{rng.randint(10, 59)}",
    "colour": lambda rng, split: rng.choice(pools.COLOURS["train"]),
}
ERRORS = {"train": ["not found", "no free place", "access denied", "the service is closed",
                    "wrong id", "too late"],
          "heldout": ["the place is closed", "id not found"]}


def _arguments(rng, split, function):
    """The values a request gives: all that are required, and some of the others."""
    return {key: KINDS[kind].value(rng, split) for key, kind, needed in function.parameters
            if needed or rng.random() < 0.5}


def _phrases(rng, function, arguments):
    kinds = {key: kind for key, kind, _ in function.parameters}
    phrases = [KINDS[kinds[key]].phrase(rng, value) for key, value in arguments.items()]
    if rng.random() < 0.5:
        rng.shuffle(phrases)
    return " ".join(phrases)


def _request(rng, function, arguments):
    article = "an" if function.noun[0] in "aeiou" else "a"
    return f"{function.verb} {article} {function.noun} {_phrases(rng, function, arguments)}".strip()


def _call(function, arguments, index=0):
    return {"id": f"call_{index}", "type": "function",
            "function": {"name": function.name, "arguments": arguments}}


def _functions(rng, split, count):
    found = []
    while len(found) < count:
        found.append(make_function(rng, split, [function.name for function in found]))
    return found


# How many calls a request wants, and how often the same function is called again.
SHAPES = {"train": ("one", "one", "same", "same", "two", "two"),
          "heldout": ("one", "one", "same", "two")}
REPEATS = {"train": (1, 2, 2), "heldout": (1, 1, 2)}


def _wanted(rng, split, functions):
    """(request in words, calls)."""
    first = functions[0]
    arguments = _arguments(rng, split, first)
    request, calls = _request(rng, first, arguments), [_call(first, arguments)]
    shape = rng.choice(SHAPES[split])
    if shape == "same":
        for index in range(rng.choice(REPEATS[split])):
            other = _arguments(rng, split, first)
            if other != arguments and _phrases(rng, first, other):
                request += rng.choice(JOINTS[split]).format(_phrases(rng, first, other))
                calls.append(_call(first, other, index + 1))
    elif shape == "two" and len(functions) > 1:
        other = _arguments(rng, split, functions[1])
        request = rng.choice(TWO[split]).format(request, _request(rng, functions[1], other))
        calls.append(_call(functions[1], other, 1))
    return request, calls


def _filled(rng, text):
    """N a name, w a word that nobody has heard, s a sentence."""
    while True:
        field = re.search(r"{[Nws]}", text)
        if not field:
            return text
        word = {"N": lambda: pools.person(rng, "train")[0], "w": lambda: pools.coined(rng),
                "s": lambda: filler.sentence(rng, "train")}[field.group()[1]]()
        text = text[:field.start()] + word + text[field.end():]


def _request_frame(rng):
    """A wording of training with {} for the request: an opening, a frame and an ending."""
    while True:
        frame = rng.choice(FRAMES)
        opening = rng.choice(OPENINGS) if rng.random() < 0.4 else ""
        if opening[-2:] == ". ":
            frame = frame[0].upper() + frame[1:]
        frame = opening + frame + (rng.choice(ENDINGS) if rng.random() < 0.15 else "")
        if not any(frame.lower() == unseen.lower() for unseen in REQUESTS["heldout"]):
            return _filled(rng, frame)


def _sentence(rng, split, request):
    frame = _request_frame(rng) if split == "train" else rng.choice(REQUESTS[split])
    text = frame.format(request)
    # A request that ends in a quoted sentence keeps one full stop.
    text = text.replace('.".', '."')
    return text[0].upper() + text[1:]


def _result(rng, split):
    """(what a tool returns, the answer to the user, the words that must occur in it)."""
    if rng.random() < 0.12:
        error = rng.choice(ERRORS[split])
        return json.dumps({"error": error}), f"That did not work: {error}.", [error]
    fields = rng.sample(list(RESULTS), rng.choice((1, 2, 2, 3)))
    values = {key: RESULTS[key](rng, split) for key in fields}
    said = " ".join(f"The {key} is {value}." for key, value in values.items())
    return json.dumps(values), said, [str(value) for value in values.values()]


def _thought(calls):
    names = [call["function"]["name"] for call in calls]
    return "I need to call " + " and ".join(names) + "."


def _turn(rng, split, functions, thinking):
    """[user, assistant with calls]."""
    request, calls = _wanted(rng, split, functions)
    message = {"role": "assistant", "content": "", "tool_calls": calls}
    if thinking:
        message["reasoning_content"] = _thought(calls)
    return [{"role": "user", "content": _sentence(rng, split, request)}, message]


def _answered(rng, split, turn, thinking):
    """The turn with tool results and the answer from them; (messages, words)."""
    results = [_result(rng, split) for _ in turn[-1]["tool_calls"]]
    said = [answer for _, answer, _ in results]
    if len(said) > 1:
        names = ("First", "Second", "Third")
        said = [f"{names[index]}: {answer}" for index, answer in enumerate(said)]
    message = {"role": "assistant", "content": "\n".join(said)}
    if thinking:
        message["reasoning_content"] = "The tool has answered."
    messages = turn + [{"role": "tool", "content": text, "tool_call_id": call["id"]}
                       for (text, _, _), call in zip(results, turn[-1]["tool_calls"])]
    return messages + [message], [word for _, _, words in results for word in words]


def _near(rng, functions, other):
    """`other` with the verb or the noun of a function that is there, so that both must be read."""
    like = rng.choice(functions)
    verb, noun = (like.verb, other.noun) if rng.random() < 0.5 else (other.verb, like.noun)
    taken = f"{verb}_{noun}" in [function.name for function in functions]
    free = not taken and pools.split_of(verb, noun) == "train"
    return Function(verb, noun, other.parameters) if free else other


def _no_call(rng, split, functions, thinking):
    """Small talk beside tools, or a request that none of them serves."""
    if rng.random() < (0.3 if split == "train" else 0.5):
        question, answer, words = talk.pair(rng, split)
    else:
        other = make_function(rng, split, [function.name for function in functions])
        if split == "train" and rng.random() < 0.5:
            other = _near(rng, functions, other)
        question = _sentence(rng, split, _request(rng, other, _arguments(rng, split, other)))
        answer, words = f"I have no tool to {other.verb} a {other.noun}.", ["no tool", other.noun]
    message = {"role": "assistant", "content": answer}
    if thinking:
        missing = words[0] == "no tool"
        message["reasoning_content"] = "No tool does this." if missing else "This needs no tool."
    return [{"role": "user", "content": question}, message], words


KINDS_DRAWN = {"train": ("call",) * 13 + ("result",) * 4 + ("none",) * 3,
               "heldout": ("call",) * 6 + ("result",) * 3 + ("none",)}
EARLIER = (0, 0, 1, 3, 6)  # earlier exchanges of training where the model does not think


def _earlier(rng, split, functions, thinking):
    """Exchanges before the one that counts."""
    if split == "train" and not thinking:
        count = rng.choice(EARLIER)
    else:
        count = int(rng.random() < 0.12)
    messages = []
    for _ in range(count):
        if split == "train" and rng.random() < 0.2:
            messages += _no_call(rng, split, functions, False)[0]
            continue
        shuffled = rng.sample(functions, len(functions))
        messages += _answered(rng, split, _turn(rng, split, shuffled, False), False)[0]
    return messages


def generate(rng, split, thinking=None, kind=None):
    """kind: "call" (one or several), "result" or "none"; default mixed."""
    if thinking is None:
        thinking = rng.random() < (0.4 if split == "train" else 0.5)
    kind = kind or rng.choice(KINDS_DRAWN[split])
    functions = _functions(rng, split, rng.choice((1, 2, 2, 3, 3, 4, 5)))
    tools = [function.tool() for function in functions]
    rng.shuffle(tools)
    messages = []
    system = system_prompt(rng, split, 0.15)
    if system:
        messages.append({"role": "system", "content": system})
    messages += _earlier(rng, split, functions, thinking)
    if kind == "none":
        turn, answer = _no_call(rng, split, functions, thinking)
    else:
        turn = _turn(rng, split, functions, thinking)
        calls = [call["function"] for call in turn[-1]["tool_calls"]]
        answer = calls
        kind = "several" if kind == "call" and len(calls) > 1 else kind
        if kind == "result":
            turn, answer = _answered(rng, split, turn, thinking)
    return Sample(f"tools/{kind}", messages + turn, tools, thinking, answer)
