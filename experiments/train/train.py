#!/usr/bin/env python3
"""Trains models/domino-small from scratch, or models/domino-sums from its weights, on the CPU.

    python experiments/train/train.py --data ../shared/data --out models/domino-small
    python experiments/train/train.py --recipe sums --begin models/domino-small --out FOLDER

Seeded; a checkpoint (weights, optimizer, position) every few minutes and on SIGTERM, taken up again by the same
command. The learning rate warms up, stays, and falls linearly over the last part of --tokens, so --tokens may be
changed while the rate is still level. Most of the run has a sampled softmax: over the tokens that come in the batch,
the most frequent ones, and some others that stand for the rest. Towards the end it covers all tokens that occur in
the corpus (and bytes and specials), last all 32,000: the other rows start at the mean of the rarest ones.
"""
import os

import sys

# Wait without spinning (the cores are shared), and keep freed memory: giving it back costs a fifth of the
# time.
WANT = {"OMP_WAIT_POLICY": "PASSIVE", "MALLOC_MMAP_THRESHOLD_": "4000000000", "MALLOC_TRIM_THRESHOLD_": "8000000000", "MALLOC_TOP_PAD_": "200000000", "MALLOC_ARENA_MAX": "2", "ONEDNN_PRIMITIVE_CACHE_CAPACITY": "8192"}
if __name__ == "__main__" and "MALLOC_TRIM_THRESHOLD_" not in os.environ:
    os.execve(sys.executable, [sys.executable] + sys.argv, {**WANT, **os.environ})
import argparse
import hashlib
import json
import signal
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import numpy as np
import torch

import corpus
from model import Config, Mistral, Plan, load_hf


def arguments():
    here = os.path.dirname(os.path.abspath(__file__))
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--data", default=os.path.join(here, "../../../shared/data"))
    p.add_argument("--out", default=os.path.join(here, "../../models/domino-small"))
    p.add_argument("--cache", default=os.path.join(here, ".cache"), help="corpus and checkpoint (not committed)")
    p.add_argument("--tokens", type=int, default=30_000_000, help="training tokens, padding not counted")
    p.add_argument("--corpus-tokens", type=int, default=27_000_000, help="size of the corpus that is built; no row is used twice")
    p.add_argument("--recipe", choices=corpus.STAGES, default="small", help="what the corpus is made of")
    p.add_argument("--begin", metavar="FOLDER",
                   help="weights to begin with, an exported folder (default: random ones)")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--batch", type=int, default=8, help="rows of 512 tokens")
    p.add_argument("--lr", type=float, default=2e-3, help="AdamW: embedding and norms")
    p.add_argument("--muon-lr", type=float, default=0.02, help="Muon: the other matrices (0: AdamW for all)")
    p.add_argument("--warmup", type=int, default=100, help="steps")
    p.add_argument("--decay", type=float, default=0.25, help="last part of the run in which the rate falls to 0")
    p.add_argument("--sampled", type=int, default=1024, help="most frequent tokens, and as many random ones, in the sampled softmax")
    p.add_argument("--occurring", type=float, default=0.08, help="last part of the run with the softmax over all tokens of the corpus")
    p.add_argument("--full", type=float, default=0.03, help="last part of the run with the softmax over the whole vocabulary")
    p.add_argument("--prompt-weight", type=float, default=0.3)
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--save-every", type=float, default=300, help="seconds")
    p.add_argument("--fresh", action="store_true", help="ignore a checkpoint")
    p.add_argument("--max-steps", type=int, default=0, help="stop early (for measuring); exports nothing")
    return p.parse_args()


class Loss(torch.autograd.Function):
    """Weighted sum of cross-entropies; the logits are made, and differentiated, a few hundred rows at a time.

    `shift` is added to the logits: 0, or for a row that stands for n rows not looked at, the logarithm of n.
    """

    @staticmethod
    def forward(ctx, h, emb, shift, target, weight):
        e, hb = emb.bfloat16(), h.bfloat16()
        dh = torch.empty_like(hb)
        de = torch.zeros_like(emb)
        each = torch.empty(len(h))
        for a in range(0, len(h), 512):
            b = min(a + 512, len(h))
            x, t = (hb[a:b] @ e.T).float().add_(shift), target[a:b, None]
            at = x.gather(1, t)
            lse = x.logsumexp(1, keepdim=True)
            each[a:b] = (lse - at)[:, 0]
            x.sub_(lse).exp_()
            x.scatter_add_(1, t, torch.full_like(at, -1.0))
            g = x.mul_(weight[a:b, None]).bfloat16()
            dh[a:b] = g @ e
            de += g.T @ hb[a:b]
        ctx.save_for_backward(dh, de)
        ctx.mark_non_differentiable(each)
        return (each * weight).sum(), each

    @staticmethod
    def backward(ctx, up, _):
        dh, de = ctx.saved_tensors
        return dh.float() * up, de * up, None, None, None


class Muon:
    """Momentum, orthogonalised by five Newton-Schulz steps: for the 2-D weights inside the layers."""

    def __init__(self, params, momentum=0.95, decay=0.01):
        self.params, self.momentum, self.decay = list(params), momentum, decay
        self.buf = [torch.zeros_like(p) for p in self.params]
        self.groups = {}
        for i, p in enumerate(self.params):
            self.groups.setdefault(tuple(sorted(p.shape)), []).append(i)

    @torch.no_grad()
    def step(self, lr):
        for shape, idx in self.groups.items():
            gs = []
            for i in idx:
                g, b = self.params[i].grad, self.buf[i]
                b.lerp_(g, 1 - self.momentum)
                u = g.lerp(b, self.momentum)
                gs.append(u.T if u.shape[0] > u.shape[1] else u)
            x = torch.stack(gs)
            x = (x / (x.norm(dim=(1, 2), keepdim=True) + 1e-7)).bfloat16()
            for _ in range(5):
                a = x @ x.mT
                x = 3.4445 * x + (-4.7750 * a + 2.0315 * a @ a) @ x
            for i, u in zip(idx, x.float()):
                p = self.params[i]
                u = u.T if p.shape[0] > p.shape[1] else u
                p.mul_(1 - lr * self.decay).add_(u, alpha=-lr * max(1.0, p.shape[0] / p.shape[1]) ** 0.5)

    def state_dict(self):
        return self.buf

    def load_state_dict(self, s):
        for a, b in zip(self.buf, s):
            a.copy_(b)


# What a run may differ in from the one that it goes on from: --tokens decides only when the rate begins to
# fall.
FREE = {"data", "out", "cache", "tokens", "threads", "save_every", "fresh", "max_steps"}


def digest(folder):
    """SHA-256 of a folder's weights."""
    if folder is None:
        return None
    missing = [f for f in ("config.json", "model.safetensors") if not os.path.exists(folder + "/" + f)]
    if missing:
        lacks = " and no ".join(missing)
        sys.exit("--begin %s: it has no %s; a folder that train.py exported is expected" % (folder, lacks))
    with open(folder + "/model.safetensors", "rb") as f:
        return hashlib.file_digest(f, "sha256").hexdigest()


def recipe(a, stats):
    """Identity of a run: a checkpoint of another recipe is not resumed."""
    mine = {k: v for k, v in vars(a).items() if k not in FREE}
    return {**mine, "begin": digest(a.begin), "model": vars(Config()), "corpus": stats}


def the_corpus(a, tok):
    """Rows, kinds and stats of the corpus; built if it is not there, or not of this recipe."""
    needed = [tok] + [a.data + "/" + f for f in corpus.FILES]
    missing = [f for f in needed if not os.path.exists(f)]
    if missing:
        sys.exit("missing: %s (--data names the folder they are in)" % ", ".join(missing))
    path = a.cache + "/stats.json"
    asked = {"seed": a.seed, "asked": a.corpus_tokens, "stages": corpus.STAGES[a.recipe]}
    if not os.path.exists(path) or any(json.load(open(path)).get(k) != v for k, v in asked.items()):
        corpus.build(a.data, tok, a.cache, a.corpus_tokens, a.seed, a.recipe)
    return np.load(a.cache + "/rows.npy", mmap_mode="r"), np.load(a.cache + "/kinds.npy", mmap_mode="r"), json.load(open(path))


class Softmax:
    """Tokens that the softmax is over, in the three parts of a run."""

    def __init__(self, a, rows):
        counts = np.bincount(rows[:].reshape(-1), minlength=32000)
        counts[:259] += 1
        counts = torch.from_numpy(counts)
        self.a = a
        self.occurring, self.unseen = (counts > 0).nonzero()[:, 0], (counts == 0).nonzero()[:, 0]
        order = counts.argsort(descending=True, stable=True)
        self.frequent, self.rare = order[:a.sampled], order[:len(self.occurring)][-1000:]
        self.place = torch.empty(32000, dtype=torch.long)

    def over(self, part, step, targets):
        """(rows of the embedding or None for all, what is added to their logits, the targets among them)."""
        if part == "full":
            return None, torch.zeros(32000), targets
        if part == "occurring":
            ids, shift = self.occurring, torch.zeros(len(self.occurring))
        else:
            seen = torch.zeros(32000, dtype=torch.bool)
            seen[self.frequent] = seen[targets] = True
            rest = self.occurring[~seen[self.occurring]]
            g = torch.Generator().manual_seed(self.a.seed * 1_000_003 + step)
            some = rest[torch.randint(len(rest), (self.a.sampled,), generator=g)]
            ids = torch.cat([seen.nonzero()[:, 0], some])
            shift = torch.zeros(len(ids))
            shift[-len(some):] = float(np.log(len(rest) / len(some)))
            ids_of_targets = ids[:-len(some)]
            self.place[ids_of_targets] = torch.arange(len(ids_of_targets))
            return ids, shift, self.place[targets]
        self.place[ids] = torch.arange(len(ids))
        return ids, shift, self.place[targets]


def documents(rows, kinds):
    """The documents in these rows one after the other: (inputs, targets, kinds of the targets, lengths)."""
    ids, what, lengths = [], [], []
    for row, kind in zip(rows, kinds):
        starts = np.flatnonzero(row == corpus.BOS).tolist() + [int((kind > 0).sum())]
        for start, end in zip(starts, starts[1:]):
            ids.append(row[start:end])
            what.append(kind[start + 1:end])
            lengths.append(end - start - 1)
    # Few shapes, since kernels are made for each: a multiple of 64 tokens, the last ones no target.
    fill = -sum(lengths) % 64
    if fill:
        ids.append(np.zeros(fill + 1, row.dtype))
        what.append(np.zeros(fill, kind.dtype))
        lengths.append(fill)
    flat = lambda parts: torch.from_numpy(np.concatenate(parts).astype(np.int64))
    return flat([d[:-1] for d in ids]), flat([d[1:] for d in ids]), flat(what), lengths


def main():
    a = arguments()
    torch.set_num_threads(a.threads)
    torch.manual_seed(a.seed)
    digest(a.begin)  # A folder that is none is told before the corpus is built.
    rows, kinds, stats = the_corpus(a, a.data + "/tokenizers/mistral-v1-32k/tokenizer.json")
    softmax = Softmax(a, rows)

    m = load_hf(a.begin).train() if a.begin else Mistral(Config())
    mats = [p for n, p in m.named_parameters() if p.dim() == 2 and n != "emb"]
    rest = [p for n, p in m.named_parameters() if p.dim() != 2 or n == "emb"]
    if not a.muon_lr:
        rest, mats = rest + mats, []
    opt = torch.optim.AdamW(rest, lr=a.lr, betas=(0.9, 0.95), eps=1e-10, weight_decay=0.0, fused=True)
    muon = Muon(mats) if mats else None
    step = row = tokens = pieces = 0
    part = "sampled"
    took = 0.0
    mine = json.loads(json.dumps(recipe(a, stats)))
    ckpt = a.cache + "/checkpoint.pt"
    if os.path.exists(ckpt) and not a.fresh:
        c = torch.load(ckpt, weights_only=True)
        theirs = c.get("recipe", {})
        differ = sorted(k for k in mine.keys() | theirs.keys() if mine.get(k) != theirs.get(k))
        if differ:
            sys.exit("%s is of another recipe (%s): run with that one, or --fresh, or another --cache" % (ckpt, ", ".join(differ)))
        m.load_state_dict(c["model"])
        opt.load_state_dict(c["adam"])
        if muon:
            muon.load_state_dict(c["muon"])
        step, row, tokens, part, took, pieces = c["step"], c["row"], c["tokens"], c["part"], c["seconds"], c["pieces"]
        print("resumed at step %d, %d tokens" % (step, tokens), flush=True)
    pieces += 1
    print("parameters %d, %d of 32000 tokens occur, goal %d tokens, %d rows" % (sum(p.numel() for p in m.parameters()), len(softmax.occurring), a.tokens, len(rows)), flush=True)

    def save():
        state = {"model": m.state_dict(), "adam": opt.state_dict(), "muon": muon.state_dict() if muon else [], "step": step, "row": row, "tokens": tokens, "part": part,
                 "seconds": took + time.time() - began, "pieces": pieces, "recipe": mine}
        try:
            torch.save(state, ckpt + ".new")
            os.replace(ckpt + ".new", ckpt)
        except (OSError, RuntimeError) as e:
            if os.path.exists(ckpt + ".new"):
                os.remove(ckpt + ".new")
            sys.exit("step %d could not be saved (%s); the checkpoint before it is kept, and the same command goes on from there" % (step, e))

    stop = []
    signal.signal(signal.SIGTERM, lambda *_: stop.append(1))
    signal.signal(signal.SIGINT, lambda *_: stop.append(1))
    began = saved = said = time.time()
    loss_sum = weight_sum = 0.0
    at_said = tokens
    while tokens < a.tokens and row + a.batch <= len(rows):
        done = tokens / a.tokens
        now_part = "full" if done >= 1 - a.full else "occurring" if done >= 1 - a.occurring else "sampled"
        if now_part != part:
            if now_part == "full":
                with torch.no_grad():
                    m.emb[softmax.unseen] = m.emb[softmax.rare].mean(0)
            part = now_part
            print("softmax from here: %s" % part, flush=True)
        scale = min(1.0, (step + 1) / a.warmup, max(0.0, (1 - done) / a.decay))
        x, y, ky, lengths = documents(rows[row:row + a.batch], kinds[row:row + a.batch])
        with torch.autocast("cpu", torch.bfloat16):
            h = m.packed(x, Plan(lengths))
        w = torch.where(ky == 2, 1.0, torch.where(ky == 1, a.prompt_weight, 0.0))
        ids, shift, t = softmax.over(part, step, y)
        loss, each = Loss.apply(h.float(), m.emb if ids is None else m.emb[ids], shift, t, w / w.sum())
        loss.backward()
        torch.nn.utils.clip_grad_norm_(rest, 1.0)
        for g in opt.param_groups:
            g["lr"] = a.lr * scale
        opt.step()
        if muon:
            muon.step(a.muon_lr * scale)
        m.zero_grad(set_to_none=True)
        completion = ky == 2
        loss_sum += float(each[completion].sum())
        weight_sum += int(completion.sum())
        # The first token of a document is not a target, and counts all the same.
        step, row, tokens = step + 1, row + a.batch, tokens + int((ky > 0).sum() + (x == corpus.BOS).sum())
        now = time.time()
        if step <= 3 or step % 20 == 0 or tokens >= a.tokens:
            rate = (tokens - at_said) / (now - said)
            print("step %5d  %5.1f%%  %9d tokens  loss %.4f  lr x%.2f  %5.0f tok/s  %s left" % (step, 100 * tokens / a.tokens, tokens, loss_sum / max(1, weight_sum), scale, rate, "%d:%02d" % divmod(max(0, a.tokens - tokens) / rate / 60 * 60 // 1, 60) if rate else "?"), flush=True)
            loss_sum = weight_sum = 0.0
            said, at_said = now, tokens
        if a.max_steps and step >= a.max_steps:
            return
        if stop or now - saved > a.save_every:
            save()
            saved = now
            if stop:
                print("stopped at step %d; the same command goes on from here" % step, flush=True)
                return
    save()
    print("trained %d tokens in %.0f minutes and %d pieces" % (tokens, (took + time.time() - began) / 60, pieces), flush=True)
    import export
    export.export(a.cache, a.out, a.data)


if __name__ == "__main__":
    main()
