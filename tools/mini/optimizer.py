"""Muon for the matrices, AdamW for the rest; masters in fp32, the model's own weights in bf16.

The model computes with what set_weights writes: the master rounded to bf16, or near the end to
the FP8 values that the export will hold, so that training sees the rounding it will be served with.
"""
import torch

from fp8 import fake_quantise

# Sizes an update like AdamW's, so that one learning rate serves both (Liu et al. 2025).
UPDATE_SCALE = 0.2
NEWTON_SCHULZ = ((3.4445, -4.7750, 2.0315),) * 5


def orthogonalise(g):
    """Nearest semi-orthogonal matrices of a stack [K, M, N], M <= N, roughly (Jordan 2024)."""
    x = g.bfloat16()
    x = x / (x.norm(dim=(1, 2), keepdim=True) + 1e-7)
    for a, b, c in NEWTON_SCHULZ:
        s = x @ x.mT
        x = a * x + (b * s + c * s @ s) @ x
    return x


class MuonStack:
    """All matrices of one shape, up to transposition, as one stack."""

    def __init__(self, views, shape):
        self.views = views  # (tensor [M, N] inside a parameter, the parameter, index, transposed)
        self.momentum = None
        self.master = torch.stack([self.oriented(v, t) for v, _, _, t in views]).float()
        self.shape = shape

    @staticmethod
    def oriented(matrix, transposed):
        return matrix.mT if transposed else matrix

    def gradients(self):
        parts = []
        for view, parameter, index, transposed in self.views:
            grad = parameter.grad
            if grad is None:  # the draft layer before its time
                grad = torch.zeros_like(view)
            elif index is not None:
                grad = grad[index]
            parts.append(self.oriented(grad, transposed))
        return torch.stack(parts).float()

    def step(self, lr, momentum, decay):
        grad = self.gradients()
        if self.momentum is None:
            self.momentum = torch.zeros_like(grad)
        self.momentum.lerp_(grad, 1 - momentum)
        update = orthogonalise(grad.lerp_(self.momentum, momentum))
        self.master.mul_(1 - lr * decay)
        self.master.add_(update, alpha=-lr * UPDATE_SCALE * max(self.shape) ** 0.5)

    def set_weights(self, fp8):
        values = fake_quantise(self.master) if fp8 else self.master
        for (view, _, _, transposed), value in zip(self.views, values):
            view.copy_(self.oriented(value, transposed))


def is_matrix(name, parameter):
    """Whether Muon trains it: what the export stores in FP8, and eh_proj."""
    return parameter.ndim > 1 and not name.startswith(("embed_tokens", "lm_head")) \
        and not name.endswith(("mlp.gate.weight", "weights_proj.weight"))


class Optimizer:
    def __init__(self, model, device, adam_lr=0.003, muon_lr=0.004, decay=0.05):
        self.adam_lr, self.muon_lr, self.decay = adam_lr, muon_lr, decay
        shapes, rest = {}, []
        for name, p in model.named_parameters():
            if not is_matrix(name, p):
                rest.append(p)
                continue
            slices = [(p.data, p, None)]
            if p.ndim == 3:  # stacked experts
                slices = [(p.data[i], p, i) for i in range(len(p))]
            for view, parameter, index in slices:
                transposed = view.shape[0] > view.shape[1]
                shape = tuple(sorted(view.shape))
                # eh_proj stays bf16 in the export: a stack of its own, never quantised.
                key = (shape, name.endswith("eh_proj.weight"))
                shapes.setdefault(key, []).append((view, parameter, index, transposed))
        self.stacks = [MuonStack(views, shape) for (shape, _), views in shapes.items()]
        self.quantised = [not plain for _, plain in shapes]
        self.rest = rest
        self.masters = [p.data.float().clone() for p in rest]
        for master in self.masters:
            master.grad = torch.zeros_like(master)
        self.adam = torch.optim.AdamW(self.masters, lr=adam_lr, betas=(0.9, 0.97), eps=1e-10,
                                      weight_decay=0.0, fused=torch.device(device).type == "cuda")

    @torch.no_grad()
    def step(self, factor, momentum, fp8):
        """One update with learning rates times factor, from the gradients in the model."""
        for master, p in zip(self.masters, self.rest):
            if p.grad is None:
                master.grad.zero_()
            else:
                master.grad.copy_(p.grad)
        for group in self.adam.param_groups:
            group["lr"] = self.adam_lr * factor
        self.adam.step()
        for stack in self.stacks:
            stack.step(self.muon_lr * factor, momentum, self.decay)
        self.set_weights(fp8)

    @torch.no_grad()
    def set_weights(self, fp8):
        for stack, quantised in zip(self.stacks, self.quantised):
            stack.set_weights(fp8 and quantised)
        for master, p in zip(self.masters, self.rest):
            p.copy_(master)

    def state(self):
        return {"masters": self.masters, "adam": self.adam.state_dict(),
                "stacks": [(s.master, s.momentum) for s in self.stacks]}

    def load(self, state):
        for mine, saved in zip(self.masters, state["masters"]):
            mine.copy_(saved)
        self.adam.load_state_dict(state["adam"])
        for stack, (master, momentum) in zip(self.stacks, state["stacks"]):
            stack.master.copy_(master)
            stack.momentum = momentum
