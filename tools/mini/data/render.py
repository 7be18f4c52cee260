"""Samples as token ids, in GLM-5's chat format, with a mask of what the model must say.

The format is written here in Python, because a template engine would take longer than everything
else; tests compare it with the template that ships with the model.
"""
import json
import re
from itertools import chain

# GLM's pre-tokenizer pattern where all text is ASCII.
ASCII_PATTERN = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\nA-Za-z0-9]?[A-Za-z]+|[0-9]{1,3}"
                 r"| ?[^\sA-Za-z0-9]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
TOOLS_HEAD = """<|system|>
# Tools

You may call one or more functions to assist with the user query.

You are provided with function signatures within <tools></tools> XML tags:
<tools>
"""
TOOLS_TAIL = """</tools>

For each function call, output the function name and arguments within the following XML format:
<tool_call>{function-name}<arg_key>{arg-key-1}</arg_key><arg_value>{arg-value-1}</arg_value>\
<arg_key>{arg-key-2}</arg_key><arg_value>{arg-value-2}</arg_value>...</tool_call>"""


def json_text(value):
    return json.dumps(value, ensure_ascii=False)


def call_text(call):
    function = call.get("function", call)
    pieces = ["<tool_call>", function["name"]]
    for key, value in function["arguments"].items():
        text = value if isinstance(value, str) else json_text(value)
        pieces += ["<arg_key>", key, "</arg_key><arg_value>", text, "</arg_value>"]
    return "".join(pieces) + "</tool_call>"


def _assistant(message, keep_reasoning):
    """(what the prompt prefills, what the model says)."""
    said = message.get("content") or ""
    calls = "".join(call_text(call) for call in message.get("tool_calls") or [])
    reasoning = message.get("reasoning_content") or ""
    if reasoning and keep_reasoning:
        return "<think>", reasoning.strip() + "</think>" + said.strip() + calls
    return "</think>", said.strip() + calls


def chat_pieces(sample):
    """[(text, learn)] of a chat; the last piece is the token that ends the last turn."""
    pieces = ["[gMASK]<sop>"]
    marked = []
    if sample.tools:
        pieces.append(TOOLS_HEAD)
        pieces += [json_text(tool) + "\n" for tool in sample.tools]
        pieces.append(TOOLS_TAIL)
    roles = [message["role"] for message in sample.messages]
    last_user = len(roles) - 1 - roles[::-1].index("user") if "user" in roles else -1

    def plain(text):
        pieces.append(text)

    for index, message in enumerate(sample.messages):
        role = message["role"]
        after = roles[index - 1] if index else ""
        if role == "system":
            plain("<|system|>" + message["content"])
        elif role == "user":
            # The role token of the next turn is what ended the answer: it is learnt there.
            plain(("" if after == "assistant" else "<|user|>") + message["content"])
        elif role == "tool":
            opening = "" if after in ("assistant", "tool") else "<|observation|>"
            plain(opening + "<tool_response>" + message["content"] + "</tool_response>")
        else:
            prefill, said = _assistant(message, index > last_user)
            plain("<|assistant|>" + prefill)
            # A thinking sample's earlier answers stand without their reasoning: not to be copied.
            learn = index > last_user or not sample.thinking
            ending = "<|observation|>" if message.get("tool_calls") else "<|user|>"
            marked.append(("".join(pieces), False))
            pieces.clear()
            marked.append((said + ending, learn))
    if pieces:
        marked.append(("".join(pieces), False))
    return marked


def marked_pieces(sample):
    return chat_pieces(sample) if sample.messages else sample.pieces + [("<|endoftext|>", True)]


def rendered_text(sample):
    return "".join(text for text, _ in marked_pieces(sample))


class Words(dict):
    """Ids of each word met so far. GLM's pattern never joins words, so a text is its words' ids."""

    MOST = 200_000

    def __init__(self, tokenizer):
        super().__init__()
        self.tokenizer = tokenizer

    def __missing__(self, word):
        if len(self) >= self.MOST:
            self.clear()
        self[word] = ids = tuple(self.tokenizer.encode(word, add_special_tokens=False).ids)
        return ids


class Renderer:
    """Callable: Sample -> (ids, mask). `tokenizer` is a path or a tokenizers.Tokenizer."""

    def __init__(self, tokenizer):
        if not hasattr(tokenizer, "encode_batch_fast"):
            import tokenizers
            tokenizer = tokenizers.Tokenizer.from_file(str(tokenizer))
        self.tokenizer = tokenizer
        self.words = Words(tokenizer)
        added = [token.content for token in tokenizer.get_added_tokens_decoder().values()]
        self.cut = re.compile("(" + "|".join(map(re.escape, added)) + ")").split
        self.split = re.compile(ASCII_PATTERN).findall

    def encode(self, text):
        """The tokenizer's ids, some times faster on ASCII."""
        if not text.isascii():
            return self.tokenizer.encode(text, add_special_tokens=False).ids
        ids = []
        for index, part in enumerate(self.cut(text)):  # every other part is a control token
            words = (part,) if index % 2 else self.split(part)
            ids.extend(chain.from_iterable(map(self.words.__getitem__, words)))
        return ids

    def __call__(self, sample):
        # Every border of pieces is at a control token or where a word starts, so the ids of the
        # parts are the ids of the whole.
        ids, mask = [], []
        for text, learn in marked_pieces(sample):
            part = self.encode(text)
            ids += part
            mask += [int(learn)] * len(part)
        return ids, mask


def render(sample, tokenizer, template=None):
    """(ids, mask); `tokenizer` is a Renderer or what makes one. The format needs no template."""
    del template
    return (tokenizer if isinstance(tokenizer, Renderer) else Renderer(tokenizer))(sample)
