"""GLM-5's architecture in PyTorch, small, for training: expanded attention over packed rows.

A batch is B rows of T tokens; a row holds several documents one after another. start[b, t] is the
index in the row at which the document of token t begins; positions, attention and the indexer's
choice never leave the document. Modules carry the names of the hub checkpoint.

Shapes: B rows, T tokens, H heads, D qk_head_dim, V v_head_dim, R sampled query rows, E experts.
"""
import json
import pathlib
import types

import torch
import torch.nn.functional as F
from torch import nn

import select_tokens
from packed_attention import attend, attention_distribution, gather_rows, visible

LAYER_NORM_EPS = 1e-6


def load_config(path):
    """config.json as an object with the same names."""
    raw = json.loads(pathlib.Path(path).read_text())
    config = types.SimpleNamespace(**raw)
    config.rope_theta = raw["rope_parameters"]["rope_theta"]
    config.qk_head_dim = config.qk_nope_head_dim + config.qk_rope_head_dim
    return config


def linear(outputs, inputs):
    return nn.Linear(inputs, outputs, bias=False)


class RMSNorm(nn.Module):
    def __init__(self, size, eps):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))
        self.eps = eps

    def forward(self, x):
        x32 = x.float()
        x32 = x32 * torch.rsqrt(x32.square().mean(-1, keepdim=True) + self.eps)
        return (x32 * self.weight.float()).to(x.dtype)


def rope_tables(positions, dim, theta):
    """cos and sin [..., dim / 2] of each position, fp32."""
    frequency = theta ** (-torch.arange(0, dim, 2, device=positions.device).double() / dim)
    angle = positions[..., None].float() * frequency.float()
    return angle.cos(), angle.sin()


def rotate(x, cos, sin):
    """RoPE on interleaved pairs (2i, 2i + 1) of the last dimension, in fp32."""
    even, odd = x.float().unflatten(-1, (-1, 2)).unbind(-1)
    return torch.stack((even * cos - odd * sin, odd * cos + even * sin), -1).flatten(-2).to(x.dtype)


class Indexer(nn.Module):
    """Scores every earlier token for a query: sum over heads of w_h * relu(q_h . k)."""

    def __init__(self, c):
        super().__init__()
        self.heads, self.dim, self.rope_dim = c.index_n_heads, c.index_head_dim, c.qk_rope_head_dim
        self.wq_b = linear(self.heads * self.dim, c.q_lora_rank)
        self.wk = linear(self.dim, c.hidden_size)
        self.k_norm = nn.LayerNorm(self.dim, eps=LAYER_NORM_EPS)
        self.weights_proj = linear(self.heads, c.hidden_size)

    def rotate_first(self, x, cos, sin):
        head, rest = x.split((self.rope_dim, self.dim - self.rope_dim), -1)
        return torch.cat((rotate(head, cos, sin), rest), -1)

    def keys(self, x, cos, sin):
        """[B, T, dim]"""
        k = F.layer_norm(self.wk(x).float(), (self.dim,), self.k_norm.weight.float(),
                         self.k_norm.bias.float(), LAYER_NORM_EPS).to(x.dtype)
        return self.rotate_first(k, cos, sin)

    def queries(self, x, q_latent, cos, sin):
        """Query heads [B, R, heads, dim] and their weights [B, R, heads], all scales included."""
        q = self.wq_b(q_latent).unflatten(-1, (self.heads, self.dim))
        weights = self.weights_proj(x).float() * (self.heads * self.dim) ** -0.5
        return self.rotate_first(q, cos[:, :, None], sin[:, :, None]), weights


class Attention(nn.Module):
    def __init__(self, c, owns_indexer):
        super().__init__()
        self.c = c
        heads = c.num_attention_heads
        self.q_a_proj = linear(c.q_lora_rank, c.hidden_size)
        self.q_a_layernorm = RMSNorm(c.q_lora_rank, c.rms_norm_eps)
        self.q_b_proj = linear(heads * c.qk_head_dim, c.q_lora_rank)
        self.kv_a_proj_with_mqa = linear(c.kv_lora_rank + c.qk_rope_head_dim, c.hidden_size)
        self.kv_a_layernorm = RMSNorm(c.kv_lora_rank, c.rms_norm_eps)
        self.kv_b_proj = linear(heads * (c.qk_nope_head_dim + c.v_head_dim), c.kv_lora_rank)
        self.o_proj = linear(c.hidden_size, heads * c.v_head_dim)
        self.indexer = Indexer(c) if owns_indexer else None

    def project(self, x, cos, sin):
        """q, k [B, H, T, D], v [B, H, T, V] and the normed query latent [B, T, q_lora_rank]."""
        c = self.c
        heads = c.num_attention_heads
        q_latent = self.q_a_layernorm(self.q_a_proj(x))
        q = self.q_b_proj(q_latent).unflatten(-1, (heads, c.qk_head_dim))
        q_nope, q_rope = q.split((c.qk_nope_head_dim, c.qk_rope_head_dim), -1)
        latent, k_rope = self.kv_a_proj_with_mqa(x).split((c.kv_lora_rank, c.qk_rope_head_dim), -1)
        expanded = self.kv_b_proj(self.kv_a_layernorm(latent))
        expanded = expanded.unflatten(-1, (heads, -1))
        k_nope, v = expanded.split((c.qk_nope_head_dim, c.v_head_dim), -1)
        k_rope = rotate(k_rope, cos, sin)[:, :, None].expand(-1, -1, heads, -1)
        q = torch.cat((q_nope, rotate(q_rope, cos[:, :, None], sin[:, :, None])), -1)
        k = torch.cat((k_nope, k_rope), -1)
        return q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), q_latent


class DenseMlp(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.gate_proj = linear(c.intermediate_size, c.hidden_size)
        self.up_proj = linear(c.intermediate_size, c.hidden_size)
        self.down_proj = linear(c.hidden_size, c.intermediate_size)

    def forward(self, x):
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x)), None


class MoeMlp(nn.Module):
    """Every expert is computed for every token and weighted by its gate, mostly 0: at this size
    one wide product is quicker than sorting tokens. The last of the stacked experts is the shared
    one, whose gate is 1."""

    def __init__(self, c):
        super().__init__()
        self.c = c
        stack, width = c.n_routed_experts + 1, c.moe_intermediate_size
        self.gate = linear(c.n_routed_experts, c.hidden_size)
        self.register_buffer("e_score_correction_bias", torch.zeros(c.n_routed_experts))
        self.gate_proj = nn.Parameter(torch.empty(stack, width, c.hidden_size))
        self.up_proj = nn.Parameter(torch.empty(stack, width, c.hidden_size))
        self.down_proj = nn.Parameter(torch.empty(stack, c.hidden_size, width))

    def route(self, x):
        """Gates [B, T, E] with zeros for experts not chosen, and each expert's share of choices."""
        c = self.c
        scores = (x.float() @ self.gate.weight.float().t()).sigmoid()
        choice = scores.detach() + self.e_score_correction_bias
        chosen = choice.topk(c.num_experts_per_tok, -1).indices
        picked = scores.gather(-1, chosen)
        picked = picked / picked.sum(-1, keepdim=True) * c.routed_scaling_factor
        gates = torch.zeros_like(scores).scatter(-1, chosen, picked)
        return gates, (gates.detach() > 0).float().mean((0, 1))

    def forward(self, x):
        gates, load = self.route(x)
        gates = torch.cat((gates, torch.ones_like(gates[..., :1])), -1).to(x.dtype)
        hidden = F.silu(x @ self.gate_proj.flatten(0, 1).t()) * (x @ self.up_proj.flatten(0, 1).t())
        hidden = hidden.unflatten(-1, (gates.shape[-1], -1)) * gates[..., None]
        return hidden.flatten(-2) @ self.down_proj.transpose(1, 2).flatten(0, 1), load


class Layer(nn.Module):
    def __init__(self, c, index):
        super().__init__()
        draft = index >= c.num_hidden_layers
        self.input_layernorm = RMSNorm(c.hidden_size, c.rms_norm_eps)
        self.post_attention_layernorm = RMSNorm(c.hidden_size, c.rms_norm_eps)
        self.self_attn = Attention(c, draft or c.indexer_types[index] == "full")
        self.mlp = DenseMlp(c) if index < c.first_k_dense_replace else MoeMlp(c)
        if draft:
            self.eh_proj = linear(c.hidden_size, 2 * c.hidden_size)
            self.enorm = RMSNorm(c.hidden_size, c.rms_norm_eps)
            self.hnorm = RMSNorm(c.hidden_size, c.rms_norm_eps)
            self.shared_head = nn.ModuleDict({"norm": RMSNorm(c.hidden_size, c.rms_norm_eps)})

    def before(self, h, cos, sin):
        x = self.input_layernorm(h)
        return x, *self.self_attn.project(x, cos, sin)

    def index_vectors(self, x, q_latent, cos, sin):
        indexer = self.self_attn.indexer
        return *indexer.queries(x, q_latent, cos, sin), indexer.keys(x, cos, sin)

    def after(self, h, q, k, v, mask, scale):
        out = attend(q, k, v, mask, scale)
        h = h + self.self_attn.o_proj(out.transpose(1, 2).flatten(2))
        y, load = self.mlp(self.post_attention_layernorm(h))
        return h + y, load


def indexer_loss(indexer, x, q_latent, cos, sin, rows, seen, target):
    """KL(target || softmax of the index logits) over what each sampled row sees, in nats a row.

    x [B, T, hidden], q_latent [B, T, q_lora_rank]: detached. rows [B, R]; seen [B, R, T] bool;
    target [B, R, T]: the attention distribution, mean over heads and over the layers served.
    """
    k = indexer.keys(x, cos, sin)
    q, weights = indexer.queries(gather_rows(x, rows), gather_rows(q_latent, rows),
                                 gather_rows(cos, rows), gather_rows(sin, rows))
    dots = (q.flatten(1, 2) @ k.transpose(1, 2)).unflatten(1, q.shape[1:3])
    logits = (dots.float().relu() * weights[..., None]).sum(2)
    log_q = logits.masked_fill(~seen, float("-inf")).log_softmax(-1)
    ratio = target.clamp_min(1e-9).log() - log_q.masked_fill(~seen, 0)
    return (target * ratio).sum(-1).mean()


class Model(nn.Module):
    """Call with a Packed batch. compile(wrap) replaces the heavy pieces by wrap(piece)."""

    def __init__(self, c):
        super().__init__()
        self.c = c
        self.embed_tokens = nn.Embedding(c.vocab_size, c.hidden_size)
        self.layers = nn.ModuleList(
            Layer(c, i) for i in range(c.num_hidden_layers + c.num_nextn_predict_layers))
        self.norm = RMSNorm(c.hidden_size, c.rms_norm_eps)
        self.lm_head = linear(c.vocab_size, c.hidden_size)
        self.wrap_pieces(lambda piece: piece)

    def wrap_pieces(self, wrap):
        self.before, self.after = wrap(Layer.before), wrap(Layer.after)
        self.index_vectors, self.indexer_loss = wrap(Layer.index_vectors), wrap(indexer_loss)
        self.distribution = wrap(attention_distribution)

    @torch.no_grad()
    def initialise(self, seed):
        generator = torch.Generator().manual_seed(seed)
        for name, p in self.named_parameters():
            if name.endswith(("o_proj.weight", "down_proj.weight", "down_proj")):
                p.zero_()
            elif name == "embed_tokens.weight":
                p.normal_(0, 0.5, generator=generator)
            elif p.ndim > 1:
                p.normal_(0, p.shape[-1] ** -0.5, generator=generator)

    def select(self, layer, x, q_latent, cos, sin, batch):
        """The indexer's choice as a mask [B, T, T], valid where a token is visible."""
        with torch.no_grad():
            q, weights, k = self.index_vectors(layer, x, q_latent, cos, sin)
            return select_tokens.select(q, weights, k, batch.start, self.c.index_topk)

    def run_layer(self, layer, h, cos, sin, batch, state):
        """One layer. state keeps the choice of the nearest full layer and what its loss needs."""
        x, q, k, v, q_latent = self.before(layer, h, cos, sin)
        if layer.self_attn.indexer is not None:
            self.close_indexer(state, cos, sin, batch)
            state.owner = (layer.self_attn.indexer, x.detach(), q_latent.detach())
            if batch.sparse:
                state.chosen = self.select(layer, x, q_latent, cos, sin, batch)
                state.mask = batch.mask_of(state.chosen)
        if batch.rows is not None:
            seen = visible(batch.start, batch.rows)
            if batch.sparse:
                seen = seen & gather_rows(state.chosen, batch.rows)
            with torch.no_grad():
                state.targets.append(
                    self.distribution(q, k, batch.rows, seen, self.c.qk_head_dim ** -0.5))
            state.seen = seen
        h, load = self.after(layer, h, q, k, v, state.mask, self.c.qk_head_dim ** -0.5)
        if load is not None:
            state.loads.append((layer.mlp, load))
        return h

    def close_indexer(self, state, cos, sin, batch):
        """The loss of the indexer whose last layer has just run."""
        if state.targets:
            target = sum(state.targets) / len(state.targets)
            state.losses.append(
                self.indexer_loss(*state.owner, cos, sin, batch.rows, state.seen, target))
        state.targets = []

    def forward(self, batch, draft=False):
        """Hidden states after model.norm [B, T, hidden], those of the draft layer or None, and
        the state, which holds the indexers' losses and the experts' loads."""
        c = self.c
        cos, sin = rope_tables(batch.positions, c.qk_rope_head_dim, c.rope_theta)
        state = types.SimpleNamespace(mask=batch.dense_mask, chosen=None, seen=None, owner=None,
                                      targets=[], losses=[], loads=[])
        h = self.embed_tokens(batch.ids)
        for layer in self.layers[:c.num_hidden_layers]:
            h = self.run_layer(layer, h, cos, sin, batch, state)
        h = self.norm(h)
        drafted = None
        if draft:
            layer = self.layers[c.num_hidden_layers]
            following = self.embed_tokens(batch.ids.roll(-1, 1))
            u = layer.eh_proj(torch.cat((layer.enorm(following), layer.hnorm(h)), -1))
            drafted = layer.shared_head["norm"](self.run_layer(layer, u, cos, sin, batch, state))
        self.close_indexer(state, cos, sin, batch)
        return h, drafted, state
