"""The recipes of winnow-mini: what each step trains on, and how, by progress from 0 to 1."""
import dataclasses
import math

from batches import Shape, Weighing

SHORT, LONG = 4096, 16384
TOKENS, LONG_TOKENS = 131072, 65536


@dataclasses.dataclass
class Recipe:
    shares: dict              # skill -> share of the tokens of short rows
    weighing: Weighing        # loss weights and made-up words
    muon_lr: float
    adam_lr: float
    warmup: int               # steps
    decay_from: float         # until there the learning rate is constant, then it falls linearly
    last_factor: float        # to this share of it
    grown_at: float           # needles in short rows grow from 512 to 4096 tokens until there
    sparse_from: float        # attention over the indexers' choice instead of everything
    long_from: float          # rows of 16k, every long_every-th step
    draft_from: float         # the draft layer learns
    fp8_from: float           # weights rounded as the export rounds them
    long_every: int = 6
    long_shares: dict = dataclasses.field(
        default_factory=lambda: {"needle": 0.8, "tools": 0.1, "problem": 0.1})


RECIPES = {
    # Short texts first teach copying and sums; long needles come later.
    "first": Recipe(
        shares={"problem": 0.22, "problem_chat": 0.20, "drill": 0.08, "needle": 0.18,
                "tools": 0.16, "choices": 0.10, "talk": 0.04, "dialogue": 0.02, "filler": 0.01},
        weighing=Weighing(), muon_lr=0.004, adam_lr=0.003, warmup=100, decay_from=0.40,
        last_factor=0.03, grown_at=0.35, sparse_from=0.50, long_from=0.45, draft_from=0.80,
        fp8_from=0.85),
    # Made-up words in most examples, so that words are copied and not known; more weight on the
    # letter of a choice, none to speak of on what cannot be foreseen.
    "second": Recipe(
        shares={"problem": 0.17, "problem_chat": 0.19, "drill": 0.03, "needle": 0.20,
                "tools": 0.20, "choices": 0.16, "talk": 0.03, "dialogue": 0.02},
        weighing=Weighing(prompt=0.03, letter=25.0, disguised=0.6, foreseen_only=True),
        muon_lr=0.003, adam_lr=0.002, warmup=40, decay_from=0.30, last_factor=0.02,
        grown_at=0.0, sparse_from=0.35, long_from=0.35, draft_from=0.75, fp8_from=0.80),
    # More wordings, many questions about one text, and made-up words nearly everywhere.
    "third": Recipe(
        shares={"problem": 0.12, "problem_chat": 0.15, "drill": 0.02, "needle": 0.25,
                "tools": 0.17, "choices": 0.18, "talk": 0.02, "dialogue": 0.02, "recall": 0.07},
        weighing=Weighing(prompt=0.03, letter=8.0, disguised=0.85, foreseen_only=True),
        muon_lr=0.0035, adam_lr=0.0025, warmup=40, decay_from=0.30, last_factor=0.02,
        grown_at=0.20, sparse_from=0.40, long_from=0.42, draft_from=0.80, fp8_from=0.85,
        long_every=5, long_shares={"needle": 0.85, "recall": 0.10, "tools": 0.05}),
    # The same with weight on whether a tool is called, long rows earlier, and more lists whose
    # values stand before their keys.
    "fourth": Recipe(
        shares={"problem": 0.10, "problem_chat": 0.13, "drill": 0.01, "needle": 0.23,
                "tools": 0.26, "choices": 0.14, "talk": 0.02, "dialogue": 0.01, "recall": 0.10},
        weighing=Weighing(prompt=0.03, letter=6.0, decision=16.0, disguised=0.8,
                          foreseen_only=True),
        muon_lr=0.0025, adam_lr=0.0018, warmup=40, decay_from=0.25, last_factor=0.02,
        grown_at=0.0, sparse_from=0.22, long_from=0.22, draft_from=0.80, fp8_from=0.85,
        long_every=4, long_shares={"needle": 0.84, "recall": 0.06, "tools": 0.10}),
}


def log_uniform(rng, low, high):
    return int(math.exp(rng.uniform(math.log(low), math.log(high))))


def _needle(low, high):
    return {"needle": lambda rng: {"tokens": log_uniform(rng, low, high)}}


class Schedule:
    def __init__(self, recipe, steps):
        self.recipe, self.steps = recipe, steps

    def progress(self, step):
        return step / self.steps

    def shorten(self, step, most):
        """From `step` on, reach the end of the recipe after at most so many more steps. What the
        batches hold is not changed by it."""
        self.steps = min(self.steps, step + max(most, 1))

    def learning_rate(self, step):
        """Factor on the peak learning rates."""
        recipe, progress = self.recipe, self.progress(step)
        if step < recipe.warmup:
            return (step + 1) / recipe.warmup
        if progress < recipe.decay_from:
            return 1.0
        fallen = (progress - recipe.decay_from) / (1 - recipe.decay_from)
        return 1 - (1 - recipe.last_factor) * fallen

    def is_long(self, step):
        return (self.progress(step) >= self.recipe.long_from
                and step % self.recipe.long_every == 0)

    def is_sparse(self, step):
        return self.progress(step) >= self.recipe.sparse_from

    def has_draft(self, step):
        return self.progress(step) >= self.recipe.draft_from

    def is_fp8(self, step):
        return self.progress(step) >= self.recipe.fp8_from

    def shape_of(self, step):
        recipe = self.recipe
        if self.is_long(step):
            return Shape(LONG_TOKENS // LONG, LONG, recipe.long_shares,
                         _needle(3000, LONG - 384), 256, recipe.weighing)
        grown = min(1.0, self.progress(step) / recipe.grown_at) if recipe.grown_at else 1.0
        return Shape(TOKENS // SHORT, SHORT, recipe.shares,
                     _needle(256, 512 * (SHORT / 512) ** grown - 96), 64, recipe.weighing)
