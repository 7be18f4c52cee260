"""One example: a chat or a plain completion, with what a scorer needs."""
from dataclasses import dataclass, field


@dataclass
class Sample:
    kind: str
    messages: list = field(default_factory=list)
    tools: list | None = None
    thinking: bool = False
    answer: object = None
    pieces: list = field(default_factory=list)
    choice: dict | None = None  # choices only: {"question", "options"} without instructions

    @property
    def text(self):
        """The whole plain completion."""
        return "".join(text for text, _ in self.pieces)

    def prompt_text(self):
        """A plain completion up to its last learnt piece."""
        return "".join(text for text, _ in self.pieces[:-1])

    def prompt_messages(self):
        return self.messages[:-1]


def chat(kind, turns, answer, *, reasoning=None, system=None, tools=None, thinking=None):
    """A Sample from alternating user and assistant texts, the last one the assistant's."""
    messages = [{"role": "system", "content": system}] if system else []
    for index, text in enumerate(turns):
        messages.append({"role": "assistant" if index % 2 else "user", "content": text})
    if reasoning is not None:
        messages[-1]["reasoning_content"] = reasoning
    return Sample(kind, messages, tools, reasoning is not None if thinking is None else thinking,
                  answer)
