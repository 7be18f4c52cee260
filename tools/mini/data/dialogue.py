"""Talks of several turns in which sums, word problems and small talk follow one another."""
from . import drill, problem_samples, talk
from .systems import system_prompt

PARTS = [drill.generate, problem_samples.in_chat, talk.generate]


def generate(rng, split, thinking=None):
    """The last answer is the one judged. Earlier ones are learnt only where none of them thinks."""
    if thinking is None:
        thinking = rng.random() < 0.5
    last = rng.choice(PARTS)(rng, split, thinking=thinking)
    earlier = []
    for _ in range(rng.choice((1, 1, 2))):
        part = rng.choice(PARTS)(rng, split, thinking=thinking)
        earlier += [message for message in part.messages if message["role"] != "system"]
    system = system_prompt(rng, split)
    opening = [{"role": "system", "content": system}] if system else []
    asked = [message for message in last.messages if message["role"] != "system"]
    last.messages = opening + earlier + asked
    last.kind = "dialogue/" + last.kind.partition("/")[0]
    return last
