"""Draws whole problems: a family, its story, and the worked answer in two styles."""
from .. import pools
from . import work_wordings  # noqa: F401  (adds its wordings)
from . import owning, working
from .story import Story

FAMILIES = [owning.inventory] * 5 + [owning.comparison] * 3 + [owning.ages, owning.kinds] + [
    working.shopping] * 3 + [working.production] * 2 + [
    working.wages, working.packing, working.seats, working.journey, working.recipe]
# Training has more of what is hardest to read.
FAMILIES_OF = {"train": FAMILIES + [owning.comparison] * 4 + [owning.ages] * 3 + [
    working.wages, working.packing, working.recipe] * 2,
               "heldout": FAMILIES}
LARGEST = 9999
MOST_STEPS = 5


class Problem:
    """question, steps [(about, equation, unit)], answer (int), family."""

    def __init__(self, story, family):
        self.question = " ".join(story.sentences)
        self.steps = story.steps
        self.answer = story.value
        self.unit = story.steps[-1][2]
        self.family = family

    def worked(self):
        """GSM8K's shape: one line a step, then #### and the number."""
        lines = [f"{about} {equation} {unit}." for about, equation, unit in self.steps]
        return "\n".join(lines) + f"\n#### {self.answer}"

    def thoughts(self):
        lines = [f"Step {index}: {about} {equation} {unit}."
                 for index, (about, equation, unit) in enumerate(self.steps, 1)]
        return "\n".join(lines) + f"\nSo the answer is {self.answer}."

    def short(self):
        return f"The answer is {self.answer} {self.unit}.\n#### {self.answer}"


def make_problem(rng, split):
    while True:
        family = rng.choice(FAMILIES_OF[split])
        story = Story(rng, split)
        family(story)
        if not len(story.steps) <= MOST_STEPS or not 0 < story.value <= LARGEST:
            continue
        if len(story.steps) == 1 and rng.random() < 0.7:
            continue
        if pools.split_of("numbers", *story.numbers) != split:
            continue
        if split == "heldout" and not story.unseen:
            continue
        return Problem(story, family.__name__)
