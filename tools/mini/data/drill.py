"""Sums alone: practice for the steps of word problems."""
from . import pools
from .problems.story import product
from .sample import Sample, chat

QUESTIONS = {
    "train": ["What is {}?", "{}", "{} =", "Compute {}.", "How much is {}?", "Please compute {}.",
              "Can you tell me what {} is?", "Calculate {}.", "{} is how much?", "Work out {}.",
              "What do you get for {}?", "Solve {}.", "Give me the result of {}.", "I need {}.",
              "Hello, what is {}?", "{}, please.", "And {}?", "How much does {} give?"],
    "heldout": ["Tell me what {} is.", "Please calculate {}.", "What does {} make?"],
}


def _equation(rng, split):
    def make():
        kind = rng.choice("+-*/+-")
        high = rng.choice((20, 99, 400, 999))
        if kind == "+":
            return rng.randint(1, high), "+", rng.randint(1, high)
        if kind == "-":
            a, b = sorted((rng.randint(1, high), rng.randint(1, high)))
            return b, "-", a
        a, b = rng.randint(2, rng.choice((12, 99, 300))), rng.randint(2, rng.choice((9, 9, 20)))
        if kind == "*":
            return (a, "*", b) if rng.random() < 0.5 else (b, "*", a)
        a, b = min(a, 99), min(b, 20)
        return a * b, "/", b
    a, op, b = pools.draw(rng, split, make)
    if op == "*":
        return f"{a} * {b}", product(a, b)
    result = {"+": a + b, "-": a - b, "/": a // b}[op]
    return f"{a} {op} {b}", f"{a} {op} {b} = {result}"


def generate(rng, split, thinking=None):
    """A list of sums as plain text, or (always where `thinking` is given) one asked in chat."""
    if thinking is None:
        if rng.random() < 0.5:
            lines = [_equation(rng, split)[1] for _ in range(rng.randint(2, 12))]
            return Sample("drill/plain", pieces=[("\n".join(lines), True)], answer=None)
        thinking = rng.random() < 0.5
    asked, equation = _equation(rng, split)
    said = f"{asked} = {equation.rpartition('= ')[2]}." if thinking else equation + "."
    return chat("drill/chat", [rng.choice(QUESTIONS[split]).format(asked), said],
                equation.rpartition("= ")[2], reasoning=equation + "." if thinking else None)
