"""A compact Mistral (RMSNorm, rotary positions, grouped-query attention, SwiGLU, tied embeddings)."""
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass
class Config:
    vocab: int = 32000
    hidden: int = 256
    layers: int = 6
    heads: int = 8
    kv_heads: int = 4
    head_dim: int = 32
    inner: int = 768
    theta: float = 10000.0
    eps: float = 1e-5
    positions: int = 2048


def rotary(cfg):
    inv = 1.0 / cfg.theta ** (torch.arange(0, cfg.head_dim, 2).float() / cfg.head_dim)
    a = torch.outer(torch.arange(cfg.positions).float(), inv)
    a = torch.cat([a, a], -1)
    return a.cos(), a.sin()


def rotate(x, cos, sin):
    h = x.shape[-1] // 2
    return x * cos + torch.cat([-x[..., h:], x[..., :h]], -1) * sin


def attention(q, k, v):
    """Causal attention. Written out for short texts, where the fused kernel's way back takes three times as long."""
    size = q.shape[-2]
    if size > 256:
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)
    later = torch.full((size, size), float("-inf"), dtype=q.dtype).triu(1)
    return ((q @ k.transpose(-1, -2)) * q.shape[-1] ** -0.5 + later).softmax(-1, dtype=q.dtype) @ v


class Layer(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.c = c
        self.q = nn.Linear(c.hidden, c.heads * c.head_dim, bias=False)
        self.k = nn.Linear(c.hidden, c.kv_heads * c.head_dim, bias=False)
        self.v = nn.Linear(c.hidden, c.kv_heads * c.head_dim, bias=False)
        self.o = nn.Linear(c.heads * c.head_dim, c.hidden, bias=False)
        self.gate = nn.Linear(c.hidden, c.inner, bias=False)
        self.up = nn.Linear(c.hidden, c.inner, bias=False)
        self.down = nn.Linear(c.inner, c.hidden, bias=False)
        self.n1 = nn.Parameter(torch.ones(c.hidden))
        self.n2 = nn.Parameter(torch.ones(c.hidden))

    def heads(self, x, cos, sin):
        """Queries, keys and values of the first norm's output, positions turned in: (B, T, heads, head_dim) each."""
        c = self.c
        h = F.rms_norm(x, (c.hidden,), self.n1, c.eps)
        q, k, v = (w(h).view(*x.shape[:-1], -1, c.head_dim) for w in (self.q, self.k, self.v))
        return rotate(q, cos, sin), rotate(k, cos, sin), v

    def rest(self, x, attended):
        """The rest of the layer, after attention."""
        c = self.c
        x = x + self.o(attended)
        h = F.rms_norm(x, (c.hidden,), self.n2, c.eps)
        return x + self.down(F.silu(self.gate(h)) * self.up(h))

    def forward(self, x, cos, sin, cache=None):
        c = self.c
        B, T, _ = x.shape
        q, k, v = (y.transpose(1, 2) for y in self.heads(x, cos[:, None], sin[:, None]))
        if cache is not None:
            if cache:
                k, v = torch.cat([cache[0], k], 2), torch.cat([cache[1], v], 2)
            cache[:] = [k, v]
        n = c.heads // c.kv_heads
        k, v = k.repeat_interleave(n, 1), v.repeat_interleave(n, 1)
        a = F.scaled_dot_product_attention(q, k, v, is_causal=T > 1)
        return self.rest(x, a.transpose(1, 2).reshape(B, T, -1))

    def packed(self, x, cos, sin, plan):
        """The layer over documents one after the other (N, hidden), each of which sees only itself."""
        c = self.c
        q, k, v = self.heads(x, cos[:, None], sin[:, None])
        n, split = c.heads // c.kv_heads, [c.heads, c.kv_heads, c.kv_heads]
        # Autocast leaves what was multiplied by f32 tables in f32.
        all_ = torch.cat([q.to(v.dtype), k.to(v.dtype), v], 1)
        out = []
        for places in plan.buckets:
            some = all_.index_select(0, places.view(-1)).view(*places.shape, *all_.shape[1:])
            q, k, v = some.transpose(1, 2).split(split, 1)
            k, v = k.repeat_interleave(n, 1), v.repeat_interleave(n, 1)
            a = attention(q, k, v)
            out.append(a.transpose(1, 2).reshape(-1, c.heads * c.head_dim))
        return self.rest(x, torch.cat(out).index_select(0, plan.back))


class Plan:
    """Groups documents of these lengths, which follow one another, for attention: in buckets by length.

    A document is filled up to a multiple of 64 with copies of its last token, which nothing before can see.
    """

    STEP = 64

    def __init__(self, lengths):
        buckets = {}
        start = 0
        for length in lengths:
            buckets.setdefault(-(-length // self.STEP) * self.STEP, []).append((start, length))
            start += length
        self.positions = torch.cat([torch.arange(length) for length in lengths])
        self.back = torch.empty(start, dtype=torch.long)
        self.buckets = []
        at = 0
        for size, documents in sorted(buckets.items()):
            # Few shapes, since kernels are made for each: a multiple of four documents, the last one
            # repeated.
            documents += documents[-1:] * (-len(documents) % 4)
            first, length = torch.tensor(documents).T[:, :, None]
            places = torch.minimum(torch.arange(size), length - 1)
            real = torch.arange(size) < length
            self.buckets.append(first + places)
            self.back[(first + places)[real]] = at + torch.arange(real.numel()).view(real.shape)[real]
            at += real.numel()


class Mistral(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.c = c
        self.emb = nn.Parameter(torch.empty(c.vocab, c.hidden))
        self.blocks = nn.ModuleList(Layer(c) for _ in range(c.layers))
        self.norm = nn.Parameter(torch.ones(c.hidden))
        cos, sin = rotary(c)
        self.register_buffer("cos", cos, persistent=False)
        self.register_buffer("sin", sin, persistent=False)
        nn.init.normal_(self.emb, std=0.02)
        for n, p in self.named_parameters():
            if p.dim() == 2 and n != "emb":
                nn.init.normal_(p, std=0.02 / (2 * c.layers) ** 0.5 if n.endswith(("o.weight", "down.weight")) else 0.03)

    def hidden(self, ids, caches=None):
        """Final hidden states (B, T, hidden); `caches`: one list per layer, filled and extended (T > 1 only when empty)."""
        at = caches[0][0].shape[2] if caches and caches[0] else 0
        x = F.embedding(ids, self.emb)
        cos, sin = self.cos[at:at + ids.shape[1]].to(x.dtype), self.sin[at:at + ids.shape[1]].to(x.dtype)
        for i, b in enumerate(self.blocks):
            x = b(x, cos, sin, caches[i] if caches else None)
        return F.rms_norm(x, (self.c.hidden,), self.norm, self.c.eps)

    def packed(self, ids, plan):
        """Final hidden states (N, hidden) of documents one after the other, each of which sees only itself."""
        x = F.embedding(ids, self.emb)
        cos, sin = self.cos[plan.positions], self.sin[plan.positions]
        for b in self.blocks:
            x = b.packed(x, cos, sin, plan)
        return F.rms_norm(x, (self.c.hidden,), self.norm, self.c.eps)

    def forward(self, ids, caches=None):
        return F.linear(self.hidden(ids, caches), self.emb)


HF = {"q": "self_attn.q_proj", "k": "self_attn.k_proj", "v": "self_attn.v_proj", "o": "self_attn.o_proj", "gate": "mlp.gate_proj", "up": "mlp.up_proj", "down": "mlp.down_proj", "n1": "input_layernorm", "n2": "post_attention_layernorm"}


def hf_name(n):
    if n == "emb":
        return "model.embed_tokens.weight"
    if n == "norm":
        return "model.norm.weight"
    _, i, part = n.split(".")[:3]
    return "model.layers.%s.%s.weight" % (i, HF[part])


def load_hf(folder):
    """The model from an exported folder, in f32."""
    import json
    from safetensors.torch import load_file
    with open(folder + "/config.json") as f:
        j = json.load(f)
    m = Mistral(Config(j["vocab_size"], j["hidden_size"], j["num_hidden_layers"], j["num_attention_heads"], j["num_key_value_heads"], j["head_dim"], j["intermediate_size"], j["rope_theta"], j["rms_norm_eps"], j["max_position_embeddings"]))
    w = load_file(folder + "/model.safetensors")
    with torch.no_grad():
        for n, p in m.named_parameters():
            p.copy_(w[hf_name(n)].float())
    return m.eval()
