"""Word problems as plain completions with shots (GSM8K's usual harness) and in chat."""
from .problems import make_problem
from .sample import Sample, chat
from .systems import system_prompt

ASKS = {
    "train": ["{}", "{}", "{}", "Solve this problem: {}", "{} Show your steps.",
              "{}\n\nExplain how you get there.",
              "Can you help me with this? {}", "Here is a problem.\n\n{}",
              "{} End with #### and the number.",
              "Question: {}", "Work it out step by step. {}", "Please solve: {}",
              "{}\nGive the answer after ####.", "I have a question. {}",
              "Find the answer. {}", "{} Please calculate.", "Hello! {}", "Can you do this one? {}",
              "{} Tell me every step.", "Listen: {}", "My homework says: {}", "{} Thank you!",
              "A riddle: {}", "Try this.\n\n{}", "{} How do you know?", "Next one: {}",
              "{}\n\nI need the number.", "My teacher asks: {}", "{} What is the result?"],
    "heldout": ["{}", "Please help me with this problem: {}", "{} Explain the steps.",
                "Here is a question.\n\n{}", "Solve it step by step. {}"],
}


def completion(rng, split, shots=None):
    """Question and answer after `shots` worked examples; the last answer is the one judged."""
    if shots is None:
        shots = rng.choice((0, 1, 2, 3, 4, 5, 5))
    pieces = []
    for index in range(shots + 1):
        problem = make_problem(rng, split)
        opening = "\n\n" if index else ""
        pieces.append((f"{opening}Question: {problem.question}\nAnswer:", False))
        pieces.append((" " + problem.worked(), True))
    return Sample(f"problem/{problem.family}", pieces=pieces, answer=str(problem.answer))


def in_chat(rng, split, thinking=None):
    problem = make_problem(rng, split)
    if thinking is None:
        thinking = rng.random() < 0.5
    ask = rng.choice(ASKS[split]).format(problem.question)
    turns = [ask, problem.short() if thinking else problem.worked()]
    kind = f"problem_chat/{problem.family}"
    return chat(kind, turns, str(problem.answer), system=system_prompt(rng, split),
                reasoning=problem.thoughts() if thinking else None)
