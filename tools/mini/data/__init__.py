"""Seeded synthetic data for winnow-mini: every example is written by the code in this folder.

    import random
    from data import SKILLS, sample                  # with tools/mini on sys.path
    from data.render import Renderer

    rng = random.Random(1)
    item = sample("problem_chat", rng, "train")      # -> Sample
    renderer = Renderer("models/winnow-mini/tokenizer.json")
    ids, mask = renderer(item)                       # list[int], list[int] of 0 and 1

`sample(skill, rng, split, **kw)` draws one example. `split` is "train" or "heldout"; wordings,
names, things and combinations of numbers of the two never meet (see pools.py), so that a held-out
score shows skill.
All randomness comes from `rng` (random.Random): the same seed gives the same examples.

`Sample` has
    kind      the skill and its variant, e.g. "tools/several"
    messages  OpenAI messages, the last one the assistant's answer; [] for plain completions
    tools     OpenAI tool objects or None
    thinking  whether the prompt opens <think>; the answer then has `reasoning_content`
    pieces    plain completions only: [(text, learn)] in order; learn marks what a model says
    answer    what the scorer compares with: the number (str), the letter, the codes (list of str),
              the calls (list of {"name", "arguments"}) or the words that must occur (list of str)
and the methods prompt_messages() (all but the last answer) and prompt_text() (plain completions).

SKILLS (weights for a training mixture are the trainer's business; SHARES is what we suggest,
by tokens):
    problem       plain completion as in GSM8K's harness, shots=0..5 (default random)
    problem_chat  the same in chat; thinking=True|False (default random)
    drill         sums alone, in chat and plain; thinking=True|False gives chat
    needle        one to three facts in filler; tokens=256..16384 is the length aimed at (default
                  random, mostly short), met within about a tenth; facts=1..3, distractors=n
    tools         GLM tool calls: one, several, none, and answers from tool results;
                  kind="call"|"result"|"none", thinking
    choices       four-choice questions ending in "Answer: X"; thinking
    talk          about winnow-mini and Winnow, greetings, things it cannot know; thinking
    dialogue      sums, word problems and talk in one conversation; thinking
    recall        lists of made-up pairs with many questions about them
    filler        the needle's filler as plain text: language modelling and long context

`render.Renderer(tokenizer)(sample) -> (ids, mask)` writes GLM-5's format without the template
engine (tests hold it equal to models/winnow-mini/chat_template.jinja). mask is 1 on what the model
must say: reasoning, </think>, text, calls, and the token that ends a turn (<|user|> after an
answer, <|observation|> after calls, <|endoftext|> after a plain completion). Prefilled <think> and
</think> are 0.
"""
from .sample import Sample
from .registry import SHARES, SKILLS, sample

__all__ = ["Sample", "SHARES", "SKILLS", "sample"]
