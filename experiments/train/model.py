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

    def forward(self, x, cos, sin, cache=None):
        c = self.c
        B, T, _ = x.shape
        h = F.rms_norm(x, (c.hidden,), self.n1, c.eps)
        q = self.q(h).view(B, T, c.heads, c.head_dim).transpose(1, 2)
        k = self.k(h).view(B, T, c.kv_heads, c.head_dim).transpose(1, 2)
        v = self.v(h).view(B, T, c.kv_heads, c.head_dim).transpose(1, 2)
        q, k = rotate(q, cos, sin), rotate(k, cos, sin)
        if cache is not None:
            if cache:
                k, v = torch.cat([cache[0], k], 2), torch.cat([cache[1], v], 2)
            cache[:] = [k, v]
        n = c.heads // c.kv_heads
        k, v = k.repeat_interleave(n, 1), v.repeat_interleave(n, 1)
        a = F.scaled_dot_product_attention(q, k, v, is_causal=T > 1)
        x = x + self.o(a.transpose(1, 2).reshape(B, T, -1))
        h = F.rms_norm(x, (c.hidden,), self.n2, c.eps)
        return x + self.down(F.silu(self.gate(h)) * self.up(h))


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
