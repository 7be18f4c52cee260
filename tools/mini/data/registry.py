"""Which skill is drawn by which generator."""
from . import choices, dialogue, drill, filler, needle, problem_samples, recall, talk, tools

SKILLS = {
    "problem": problem_samples.completion,
    "problem_chat": problem_samples.in_chat,
    "drill": drill.generate,
    "needle": needle.generate,
    "tools": tools.generate,
    "choices": choices.generate,
    "talk": talk.generate,
    "dialogue": dialogue.generate,
    "filler": filler.plain,
    "recall": recall.generate,
}
# A mixture to begin with, by tokens.
SHARES = {"problem": 0.22, "problem_chat": 0.2, "drill": 0.05, "needle": 0.2, "tools": 0.14,
          "choices": 0.1, "talk": 0.02, "dialogue": 0.01, "filler": 0.01, "recall": 0.05}


def sample(skill, rng, split="train", **kw):
    """One example of the skill; `rng` is a random.Random, `split` "train" or "heldout"."""
    if split not in ("train", "heldout"):
        raise ValueError(f"split is 'train' or 'heldout', not {split!r}")
    return SKILLS[skill](rng, split, **kw)
