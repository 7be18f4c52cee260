"""Training examples with made-up words in place of known ones.

The lists of things, names, colours, functions and the like are short: a model learns them by heart
and fails on words it has not met, instead of copying them from the question. So the trainer
replaces, in part of the examples, words of these lists that the answer takes from the question by
words that nobody has heard, everywhere in the example.
"""
import re

from . import choices_worlds, filler, pools, tool_schemas, tools
from .sample import Sample

_RUNS = re.compile(r"[A-Za-z]+")
# Words of the JSON of tools, which must stay what they are.
_STRUCTURE = set("""with type function name description parameters properties required string number
    integer boolean array object items enum""".split())
_SHORTEST = 3
# What the stories themselves speak of stays in word problems: cakes are cakes in every answer.
_OF_STORIES = """box bag cake book coin card shelf ticket seat row page room bed table basket house
    bus piece meal""".split()
LONG_KEYS = 0.4  # share of the parameters that get a longer name, of those that could
_ENDINGS = "value id code list type key data info new main last first field".split()


def _words(texts):
    return {word.lower() for text in texts for word in _RUNS.findall(text)}


def _plain_words():
    lists = [pools.SHE["train"], pools.HE["train"], pools.COLOURS["train"],
             filler.ADJECTIVES["train"], filler.ANIMALS, filler.WORKERS, choices_worlds.FOODS,
             choices_worlds.JOBS,
             ["forest hills lake desert sea swamp caves trees snow fields towers"]]
    return {word for texts in lists for word in _words(texts)}


def _tool_words():
    keys = [key for kind in tool_schemas.KINDS.values() for key in kind.keys]
    values = ["small medium large celsius fahrenheit done ready open closed booked sent late"
              " waiting saved paid clear cloudy dark"]
    # Words of descriptions stay: by them a value finds its parameter.
    says = _words(kind.says for kind in tool_schemas.KINDS.values())
    lists = [tool_schemas.VERBS, tool_schemas.NOUNS["train"], keys, list(tools.RESULTS), values]
    return {word for texts in lists for word in _words(texts)} - says


_PLURAL_OF = {single.lower(): plural.lower() for single, plural in pools.THINGS["train"]}
_PLAIN = {word for word in _plain_words() if len(word) >= _SHORTEST}
_TOOLS = {word for word in _tool_words() - _STRUCTURE if len(word) >= _SHORTEST}


def _novel(rng, like):
    """A made-up word that begins with a vowel where `like` does."""
    while True:
        word = pools.coined(rng)
        if (word[0] in "aeiou") == (like[0] in "aeiou"):
            return word


def _texts(value):
    """All strings in nested lists and dictionaries, keys included."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield key
            yield from _texts(inner)
    elif isinstance(value, (list, tuple)):
        for inner in value:
            yield from _texts(inner)


def _replaced(value, replace):
    if isinstance(value, str):
        return replace(value)
    if isinstance(value, dict):
        return {replace(key): _replaced(inner, replace) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_replaced(inner, replace) for inner in value)
    return value


def _replaced_message(message, replace):
    """Roles and the names of fields stay."""
    out = dict(message)
    for field in ("content", "reasoning_content"):
        if field in out:
            out[field] = replace(out[field])
    if out.get("tool_calls"):
        out["tool_calls"] = [{**call, "function": _replaced_call(call["function"], replace)}
                             for call in out["tool_calls"]]
    return out


def _replaced_call(call, replace):
    return {"name": replace(call["name"]), "arguments": _replaced(call["arguments"], replace)}


def _sides(sample):
    """(words that are given, words that the model says)."""
    if sample.pieces:
        return (_words(text for text, learn in sample.pieces if not learn),
                _words(text for text, learn in sample.pieces if learn))
    said = [m for m in sample.messages if m["role"] == "assistant"]
    given = [m["content"] for m in sample.messages if m["role"] != "assistant"]
    return _words([*given, *_texts(sample.tools or [])]), _words(_texts(said))


def _mapping(rng, sample, share):
    given, said = _sides(sample)
    found = {}
    stories = sample.kind.partition("/")[0] in ("problem", "problem_chat", "dialogue")
    for single, plural in _PLURAL_OF.items():
        if stories and single in _OF_STORIES:
            continue
        if (single in said or plural in said) and (single in given or plural in given):
            if rng.random() < share:
                word = _novel(rng, single)
                found[single] = word
                found[plural] = word + "s" if plural != single else word
    known = _PLAIN | _TOOLS if sample.tools else _PLAIN
    if sample.tools:  # all functions, or only the one that is wanted would have a strange name
        said |= _words(tool["function"]["name"] for tool in sample.tools)
    for word in sorted(known & given & said):
        if word not in found and rng.random() < share:
            found[word] = _novel(rng, word)
    return found


def _long_keys(rng, tools, share):
    """Longer names for some of the parameters: "size" -> "size_toral"."""
    keys = {key for tool in tools for key in tool["function"]["parameters"]["properties"]}
    found = {}
    for key in sorted(keys):
        if rng.random() < share:
            other = rng.choice(_ENDINGS) if rng.random() < 0.4 else _novel(rng, key)
            found[key] = f"{key}_{other}" if rng.random() < 0.7 else f"{other}_{key}"
    return found


def _with_keys(sample, found):
    """The sample with parameters renamed in its tools and calls."""
    tools = []
    for tool in sample.tools:
        schema = tool["function"]["parameters"]
        schema = {**schema,
                  "properties": {found.get(k, k): v for k, v in schema["properties"].items()},
                  "required": [found.get(k, k) for k in schema["required"]]}
        tools.append({**tool, "function": {**tool["function"], "parameters": schema}})
    messages = []
    for message in sample.messages:
        calls = [{**call, "function": {
            "name": call["function"]["name"],
            "arguments": {found.get(k, k): v for k, v in call["function"]["arguments"].items()}}}
            for call in message.get("tool_calls") or []]
        messages.append({**message, "tool_calls": calls} if calls else message)
    return Sample(sample.kind, messages, tools, sample.thinking, sample.answer, sample.pieces)


def disguise(rng, sample, share):
    """A copy in which each replaceable word is made up with probability `share`. Its `answer`
    stays as it was: trainers do not read it."""
    if sample.tools:
        sample = _with_keys(sample, _long_keys(rng, sample.tools, share * LONG_KEYS))
    found = _mapping(rng, sample, share)
    if not found:
        return sample

    def one(match):
        text = match.group()
        word = found.get(text.lower())
        if word is None:
            return text
        return word.capitalize() if text[0].isupper() else word

    def replace(text):
        return _RUNS.sub(one, text)
    return Sample(sample.kind, [_replaced_message(m, replace) for m in sample.messages],
                  _replaced(sample.tools, replace), sample.thinking,
                  sample.answer,
                  [(replace(text), learn) for text, learn in sample.pieces])
