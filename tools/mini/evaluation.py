"""Held-out skill while training: the share of answers that the model would say word for word.

Each answer is judged with the right text before every token (one pass, no decoding), which comes
near to greedy decoding because the right answers are canonical. The real scores come from score.py
through the server.
"""
import random

import numpy as np
import torch

from batches import WITHOUT_QUESTION, Packer
from data import sample
from data.render import Renderer
from packed_attention import Packed

SEED = 977
MISSES = 12  # documents that fit nowhere before a set is closed
SHORT, LONG = 4096, 16384
# name -> skill, keyword arguments, rows, row length
SETS = {
    "problem": ("problem", {"shots": 0}, 8, SHORT),
    "5 shots": ("problem", {"shots": 5}, 8, SHORT),
    "chat": ("problem_chat", {"thinking": False}, 8, SHORT),
    "thinking": ("problem_chat", {"thinking": True}, 8, SHORT),
    "drill": ("drill", {}, 2, SHORT),
    "needle 1k": ("needle", {"tokens": 1000}, 16, SHORT),
    "needle 4k": ("needle", {"tokens": 4000}, 32, SHORT),
    "needle 8k": ("needle", {"tokens": 8000}, 16, LONG),
    "needle 16k": ("needle", {"tokens": 16000}, 16, LONG),
    "tools": ("tools", {}, 16, SHORT),
    "choices": ("choices", {}, 8, SHORT),
    "talk": ("talk", {}, 4, SHORT),
    "recall": ("recall", {}, 4, SHORT),
    # The same on examples of training: what is missing here was not learnt, the rest not carried
    # over.
    "chat, seen": ("problem_chat", {}, 2, SHORT),
    "needle 4k, seen": ("needle", {"tokens": 4000, "thinking": True}, 16, SHORT),
    "tools, seen": ("tools", {}, 8, SHORT),
    "choices, seen": ("choices", {}, 4, SHORT),
}
ROWS_AT_ONCE = {SHORT: 32, LONG: 4}


def pack(render, skill, split, arguments, rows, length):
    """Rows full of documents of the split; weights are 1 on what the model must say."""
    rng = random.Random(f"{SEED}/{skill}/{arguments}")
    packer, misses = Packer(rows, length), 0
    while misses < MISSES:
        item = sample(skill, rng, split, **arguments)
        if item.kind in WITHOUT_QUESTION:
            continue
        ids, mask = render(item)
        # Only the last thing that the model says counts: shots are examples.
        mask = np.asarray(mask)
        breaks = np.flatnonzero(np.diff(mask) == 1)
        mask[:breaks[-1] + 1 if len(breaks) else 1] = 0
        misses += not packer.add(np.asarray(ids, np.uint16), mask.astype(np.float16))
    return packer.arrays()


def make_sets(tokenizer, device):
    """name -> Packed of whole passes. A shape is always as large as training's, so that nothing
    is compiled anew."""
    render = Renderer(str(tokenizer))
    sets = {}
    for name, (skill, arguments, rows, length) in SETS.items():
        at_once = ROWS_AT_ONCE[length]
        split = "train" if name.endswith(", seen") else "heldout"
        arrays = pack(render, skill, split, arguments, rows, length)
        padded = [np.pad(a, ((0, -rows % at_once), (0, 0))) for a in arrays]
        sets[name] = [
            Packed(*(torch.from_numpy(a[i:i + at_once].astype(kind)).to(device)
                     for a, kind in zip(padded, (np.int64, np.int64, np.float32))), None)
            for i in range(0, len(padded[0]), at_once)]
    return sets


def said_tokens(model, batch):
    """The likeliest token after every token. Gradients stay on: without them every piece would be
    compiled a second time."""
    h, _, _ = model(batch)
    return model.lm_head(h).argmax(-1).detach()


def exact_counts(model, batch):
    """(documents said word for word, documents)."""
    said = said_tokens(model, batch)
    wrong = (said.roll(1, 1) != batch.ids) & (batch.weights > 0)
    length = batch.ids.shape[1]
    document = batch.start + torch.arange(len(batch.ids), device=said.device)[:, None] * length
    counted = torch.zeros(document.numel(), device=said.device)
    missed = counted.scatter_add(0, document.flatten(), wrong.flatten().float()) > 0
    counted = counted.scatter_add(0, document.flatten(), (batch.weights > 0).flatten().float()) > 0
    return (counted & ~missed).sum().item(), counted.sum().item()


def scores(model, sets, sparse):
    """name -> (share, documents)"""
    out = {}
    for name, batches in sets.items():
        if batches[0].ids.shape[1] == LONG and not sparse:
            continue  # training never sees long rows without the choice
        right = total = 0
        for batch in batches:
            batch.sparse = sparse
            good, count = exact_counts(model, batch)
            right, total = right + good, total + count
        out[name] = (right / max(total, 1), total)
    return out


def report(model, sets, sparse):
    found = scores(model, sets, sparse)
    return ", ".join(f"{name} {share:.1%} of {count}" for name, (share, count) in found.items())


def mistakes(model, sets, tokenizer, most=12):
    """For each set lines about its first wrong answers: the end of the prompt, what was said up to
    the first wrong token, the text wanted there and the token said."""
    decode = Renderer(str(tokenizer)).tokenizer.decode
    lines = []
    for name, (batch, *_) in sets.items():
        batch.sparse = True
        said = said_tokens(model, batch).cpu().numpy()
        ids, start, weights = (t.cpu().numpy() for t in (batch.ids, batch.start, batch.weights))
        wrong = (np.roll(said, 1, 1) != ids) & (weights > 0)
        seen = set()
        for row, place in np.argwhere(wrong):
            document = (row, start[row, place])
            if document in seen or len(seen) >= most:
                continue
            seen.add(document)
            first = np.flatnonzero(
                (weights[row] > 0) & (start[row] == start[row, place]))[0]
            texts = [decode(list(map(int, part)), skip_special_tokens=False) for part in (
                ids[row, max(start[row, place], first - 110):first], ids[row, first:place],
                ids[row, place:place + 5], said[row, place - 1:place])]
            lines.append("{}: {!r}\n    said {!r}, wanted {!r}, got {!r}".format(name, *texts))
    return lines
