#!/usr/bin/env python3
"""Trains winnow-mini on one GPU, in pieces that can be resumed.

    tools/mini/train.py --recipe first --steps 8000 --stop-at 5861 --state a.pt --output A
    tools/mini/train.py --recipe second --begin A --steps 1850 --state b.pt --output B

A piece ends at its last step or after --minutes, whichever comes first; it writes everything
needed to go on to --state and the weights (bf16) to --output; --resume goes on. With --finish the
recipe itself is shortened so that it ends within --minutes. README.md has the recipe.
"""
import argparse
import functools
import json
import pathlib
import sys
import time

import torch
import torch.nn.functional as F

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import evaluation
import schedule
from batches import Producers
from checkpoints import load_masters, save_masters
from export import load_export
from model import Model, load_config
from optimizer import Optimizer
from packed_attention import Packed

MODEL_DIR = pathlib.Path(__file__).resolve().parents[2] / "models" / "winnow-mini"
INDEXER_WEIGHT = 1.0
DRAFT_WEIGHT = 0.1
BIAS_STEP = 0.002        # of the router's correction, towards equal loads
MOMENTUM = (0.85, 0.95)  # from, to, over
MOMENTUM_STEPS = 300
LAPS = 4                 # of --log-every steps, from which --finish reads the speed


def token_loss(h, head, ids, start, weights, ahead):
    """Weighted mean cross-entropy of the token `ahead` places on, inside the document."""
    positions = torch.arange(ids.shape[1], device=ids.device)
    inside = (start.roll(-ahead, 1) == start) & (positions < ids.shape[1] - ahead)
    weights = weights.roll(-ahead, 1) * inside
    logits = F.linear(h, head).float()
    losses = F.cross_entropy(logits.flatten(0, 1), ids.roll(-ahead, 1).flatten(), reduction="none")
    return (losses * weights.flatten()).sum() / weights.sum().clamp_min(1.0)


def to_device(arrays, device, sparse):
    ids, start, weights, rows = (torch.from_numpy(a).to(device, non_blocking=True) for a in arrays)
    return Packed(ids.long(), start.long(), weights.float(), rows.long(), sparse)


class Trainer:
    def __init__(self, args, recipe, device):
        self.args, self.device = args, device
        config = load_config(args.config)
        self.model = Model(config)
        self.model.initialise(args.seed)
        if args.begin:
            exported = any(args.begin.glob("model-*.safetensors"))
            (load_export if exported else load_masters)(self.model, args.begin)
        self.model.to(device, torch.bfloat16 if device == "cuda" else torch.float32)
        for module in self.model.modules():
            if hasattr(module, "e_score_correction_bias"):
                module.e_score_correction_bias = module.e_score_correction_bias.float()
        self.optimizer = Optimizer(self.model, device, recipe.adam_lr, recipe.muon_lr)
        self.loss = token_loss
        if device == "cuda":
            wrap = functools.partial(torch.compile, dynamic=False)
            self.model.wrap_pieces(wrap)
            self.loss = wrap(token_loss)
        self.step = 0

    def save(self, path):
        torch.save({"step": self.step, "optimizer": self.optimizer.state(),
                    "model": self.model.state_dict()}, path)

    def load(self, path):
        state = torch.load(path, map_location=self.device, weights_only=True)
        self.model.load_state_dict(state["model"])
        self.optimizer.load(state["optimizer"])
        self.step = state["step"]

    def losses(self, batch, draft):
        model = self.model
        h, drafted, state = model(batch, draft)
        main = self.loss(h, model.lm_head.weight, batch.ids, batch.start, batch.weights, 1)
        index = sum(state.losses)
        total = main + INDEXER_WEIGHT * index
        if drafted is not None:
            draft_loss = self.loss(drafted, model.lm_head.weight, batch.ids, batch.start,
                                   batch.weights, 2)
            total = total + DRAFT_WEIGHT * draft_loss
        else:
            draft_loss = torch.zeros_like(main)
        return total, torch.stack((main.detach(), index.detach(), draft_loss.detach())), state.loads

    def train_step(self, arrays, sparse, draft, fp8, factor):
        batch = to_device(arrays, self.device, sparse)
        total, parts, loads = self.losses(batch, draft)
        total.backward()
        ramp = min(1.0, self.step / MOMENTUM_STEPS)
        self.optimizer.step(factor, MOMENTUM[0] + ramp * (MOMENTUM[1] - MOMENTUM[0]), fp8)
        self.model.zero_grad(set_to_none=True)
        for mlp, load in loads:
            mlp.e_score_correction_bias += BIAS_STEP * factor * (load.mean() - load).sign()
        self.step += 1
        return parts


def memory_gb():
    return torch.cuda.max_memory_allocated() / 1e9 if torch.cuda.is_available() else 0


def run(trainer, plan, producers, deadline, log):
    """Steps until the last or the deadline."""
    args = trainer.args
    began, tokens, sums, count = time.time(), 0, torch.zeros(3, device=trainer.device), 0
    lap, laps = time.time(), []
    while trainer.step < min(plan.steps, args.stop_at) and time.time() < deadline:
        step, factor = trainer.step, plan.learning_rate(trainer.step)
        arrays = producers.batch(step)
        parts = trainer.train_step(arrays, plan.is_sparse(step), plan.has_draft(step),
                                   plan.is_fp8(step), factor)
        tokens += arrays[0].size
        if not plan.is_long(step):
            sums, count = sums + parts, count + 1
        if trainer.step % args.log_every == 0:
            main, index, drafted = (sums / max(count, 1)).tolist()
            seconds = time.time() - began
            log(f"step {trainer.step} lr {factor:.3f} loss {main:.4f} indexers {index:.3f} draft "
                f"{drafted:.3f} tokens {tokens / 1e6:.1f}M at {tokens / seconds / 1e3:.0f}k/s, "
                f"{producers.waiting()} batches wait, {memory_gb():.0f} GB")
            sums, count = torch.zeros_like(sums), 0
            laps.append(time.time() - lap)
            if args.finish and len(laps) > LAPS:
                # The quickest of the last laps: others may have compiled something.
                speed = args.log_every / min(laps[-LAPS:])
                plan.shorten(trainer.step, int((deadline - time.time()) * speed))
            lap = time.time()
        if trainer.step % args.eval_every == 0:
            log("  " + evaluation.report(trainer.model, trainer.eval_sets, plan.is_sparse(step)))
            began, tokens = time.time(), 0
            lap = time.time()


def arguments():
    ap = argparse.ArgumentParser(description=__doc__,
                                 formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--config", type=pathlib.Path, default=MODEL_DIR / "config.json")
    ap.add_argument("--tokenizer", type=pathlib.Path, default=MODEL_DIR / "tokenizer.json")
    ap.add_argument("--recipe", choices=schedule.RECIPES, required=True)
    ap.add_argument("--begin", type=pathlib.Path, help="folder of weights to begin from, "
                    "of this program or exported")
    ap.add_argument("--steps", type=int, required=True, help="of the whole recipe")
    ap.add_argument("--stop-at", type=int, default=1 << 30, help="end the piece at this step")
    ap.add_argument("--minutes", type=float, default=1e9, help="limit of this piece")
    ap.add_argument("--finish", action="store_true", help="end the recipe within --minutes")
    ap.add_argument("--state", type=pathlib.Path, required=True, help="file to resume from")
    ap.add_argument("--resume", action="store_true")
    ap.add_argument("--output", type=pathlib.Path, required=True, help="folder for the weights")
    ap.add_argument("--seed", type=int, default=1)
    ap.add_argument("--processes", type=int, default=14, help="that make batches")
    ap.add_argument("--log-every", type=int, default=50)
    ap.add_argument("--eval-every", type=int, default=500)
    return ap.parse_args()


def main():
    args = arguments()
    started = time.time()

    def log(line):
        print(f"[{time.time() - started:6.1f}] {line}", flush=True)

    recipe = schedule.RECIPES[args.recipe]
    plan = schedule.Schedule(recipe, args.steps)
    first = 0
    if args.resume:
        first = torch.load(args.state, map_location="cpu", weights_only=True)["step"]
    # Before CUDA starts: the processes are forked.
    batches_of = schedule.Schedule(recipe, args.steps)  # never shortened
    producers = Producers(args.seed, first, args.steps, batches_of.shape_of, str(args.tokenizer),
                          args.processes)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch._dynamo.config.recompile_limit = 128
    trainer = Trainer(args, recipe, device)
    if args.resume:
        trainer.load(args.state)
    trainer.eval_sets = evaluation.make_sets(args.tokenizer, device)
    log(f"{sum(p.numel() for p in trainer.model.parameters()) / 1e6:.2f}M parameters, from step "
        f"{trainer.step}")
    try:
        run(trainer, plan, producers, started + 60 * args.minutes, log)
    finally:
        producers.close()
    args.output.mkdir(parents=True, exist_ok=True)
    trainer.save(args.state)
    trainer.optimizer.set_weights(fp8=False)
    save_masters(trainer.model, args.output)
    (args.output / "progress.json").write_text(json.dumps({"step": trainer.step}) + "\n")
    trainer.optimizer.set_weights(fp8=True)
    log("as exported: " + evaluation.report(trainer.model, trainer.eval_sets, True))
    lines = evaluation.mistakes(trainer.model, trainer.eval_sets, args.tokenizer)
    (args.output / "mistakes.txt").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
