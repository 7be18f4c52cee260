"""Packed training batches, made by background processes while the GPU trains.

The batch of a step depends on the seed, the step and the mixture alone, never on how many
processes make batches or how quick they are.
"""
import dataclasses
import multiprocessing
import random

import numpy as np

from data import sample
from data.disguise import disguise
from data.render import Renderer

LONG_PROMPT = 300        # a longer prompt weighs no more in all than one of this many tokens
SHORT_ANSWER = 48        # a shorter answer weighs up to MAX_ANSWER_WEIGHT times more a token
MAX_ANSWER_WEIGHT = 6.0
FULL_ENOUGH = 0.97
MISSES = 24              # documents that fit nowhere before a batch is closed
QUEUED = 3               # finished batches that wait, a process
INDEX_TOPK = 256
TOOLS_PLAIN = 0.3        # share of tools that keep their words in any case
DISGUISES = (0.5, 1.0, 1.0)  # share of the words made up, where any are
WITHOUT_QUESTION = ("filler", "drill/plain")


@dataclasses.dataclass
class Weighing:
    """Loss weights; what the model must say weighs 1."""
    prompt: float = 0.1          # other tokens
    letter: float = 1.0          # the letter of a choice
    decision: float = 1.0        # the first token beside tools: whether one is called
    disguised: float = 0.0       # share of the examples with made-up words
    foreseen_only: bool = False  # texts without a question weigh like prompts


@dataclasses.dataclass
class Shape:
    """What kind of batch a step takes."""
    rows: int
    length: int
    shares: dict             # skill -> share of the tokens
    arguments: dict          # skill -> function of rng to the keyword arguments of data.sample
    index_rows: int          # sampled query rows a row of tokens, for the indexers
    weighing: Weighing


def token_weights(kind, mask, weighing):
    """Loss weights of one document from its mask of what the model must say."""
    mask = np.asarray(mask, dtype=bool)
    if weighing.foreseen_only and kind in WITHOUT_QUESTION:
        mask = np.zeros_like(mask)
    said = max(int(mask.sum()), 1)
    prompt = max(len(mask) - said, 1)
    weights = np.where(mask, np.clip(SHORT_ANSWER / said, 1.0, MAX_ANSWER_WEIGHT),
                       weighing.prompt * min(1.0, LONG_PROMPT / prompt))
    weights[0] = 0  # nothing comes before it
    if kind.startswith("choices"):  # of the letter, only the end of the turn follows it
        ends = np.flatnonzero(mask & ~np.append(mask[1:], False))
        weights[ends - 1] *= weighing.letter
    if kind.startswith("tools"):
        begins = np.flatnonzero(mask & ~np.append(False, mask[:-1]))
        # The same for short and for long answers, or else the short ones, which call nothing, are
        # preferred.
        weights[begins] = np.maximum(weights[begins], weighing.decision)
    return weights.astype(np.float16)


class Packer:
    """Rows that documents are laid into, first fit."""

    def __init__(self, rows, length):
        self.length = length
        self.rows = [[] for _ in range(rows)]
        self.room = [length] * rows

    def add(self, ids, weights):
        for i, room in enumerate(self.room):
            if len(ids) <= room:
                self.rows[i].append((ids, weights))
                self.room[i] -= len(ids)
                return True
        return False

    def filled(self):
        return 1 - sum(self.room) / (self.length * len(self.rows))

    def arrays(self):
        """ids uint16, start int32, weights fp16, each [rows, length]; the rest of a row is a
        document of its own without weight."""
        shape = (len(self.rows), self.length)
        ids, start = np.zeros(shape, np.uint16), np.zeros(shape, np.int32)
        weights = np.zeros(shape, np.float16)
        for row, documents in enumerate(self.rows):
            at = 0
            for document, weight in documents:
                end = at + len(document)
                ids[row, at:end], weights[row, at:end], start[row, at:end] = document, weight, at
                at = end
            start[row, at:] = at
        return ids, start, weights


def sampled_rows(start, count, generator):
    """int32 [rows, count]: query rows that see more than index_topk tokens, where there are any."""
    positions = np.arange(start.shape[1])[None] - start
    out = np.empty((len(start), count), np.int32)
    for row in range(len(start)):
        candidates = np.flatnonzero(positions[row] >= INDEX_TOPK)
        if len(candidates) < count:
            candidates = np.arange(start.shape[1])
        out[row] = generator.choice(candidates, count, replace=False)
    return out


def draw(skill, shape, rng):
    """One training example of the skill."""
    item = sample(skill, rng, "train", **shape.arguments.get(skill, lambda _: {})(rng))
    plain = skill == "tools" and rng.random() < TOOLS_PLAIN
    if not plain and rng.random() < shape.weighing.disguised:
        item = disguise(rng, item, rng.choice(DISGUISES))
    return item


def fill(shape, rng, render):
    """A Packer with documents in the shares asked for, by tokens."""
    packer, spent, misses = Packer(shape.rows, shape.length), dict.fromkeys(shape.shares, 0), 0
    while misses < MISSES and packer.filled() < FULL_ENOUGH:
        skill = min(shape.shares, key=lambda s: (spent[s] + rng.random() * 2000) / shape.shares[s])
        item = draw(skill, shape, rng)
        ids, mask = render(item)
        weights = token_weights(item.kind, mask, shape.weighing)
        if packer.add(np.asarray(ids, np.uint16), weights):
            spent[skill] += len(ids)
        else:
            misses += 1
    return packer


def make_batch(seed, step, shape, render):
    rng = random.Random(f"{seed}/{step}")
    ids, start, weights = fill(shape, rng, render).arrays()
    generator = np.random.default_rng(rng.getrandbits(64))
    return ids, start, weights, sampled_rows(start, shape.index_rows, generator)


def producer(queue, seed, steps, shape_of, tokenizer):
    render = Renderer(tokenizer)
    for step in steps:
        queue.put(make_batch(seed, step, shape_of(step), render))


class Producers:
    """Batches of the steps first..last - 1, in order."""

    def __init__(self, seed, first, last, shape_of, tokenizer, processes):
        context = multiprocessing.get_context("fork")
        self.first = first
        self.queues = [context.Queue(QUEUED) for _ in range(processes)]
        self.processes = [
            context.Process(target=producer, daemon=True,
                            args=(queue, seed, range(first + i, last, processes), shape_of,
                                  tokenizer))
            for i, queue in enumerate(self.queues)]
        for process in self.processes:
            process.start()

    def batch(self, step):
        return self.queues[(step - self.first) % len(self.queues)].get(timeout=120)

    def waiting(self):
        return sum(queue.qsize() for queue in self.queues)

    def close(self):
        for process in self.processes:
            process.terminate()
