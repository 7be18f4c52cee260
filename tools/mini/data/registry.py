"""Which skill is drawn by which generator."""
from . import problem_samples

SKILLS = {
    "problem": problem_samples.completion,
    "problem_chat": problem_samples.in_chat,
}
SHARES = {"problem": 0.5, "problem_chat": 0.5}


def sample(skill, rng, split="train", **kw):
    """One example of the skill; `rng` is a random.Random, `split` "train" or "heldout"."""
    if split not in ("train", "heldout"):
        raise ValueError(f"split is 'train' or 'heldout', not {split!r}")
    return SKILLS[skill](rng, split, **kw)
