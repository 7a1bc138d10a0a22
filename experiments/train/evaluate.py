#!/usr/bin/env python3
"""Held-out loss, how often unconstrained output is in the grammar of its task, and how often answers are right.

    python experiments/train/evaluate.py --model models/domino-small --card models/domino-small/README.md

Greedy and at temperature 1, on prompts of held-out documents; word problems greedily, more of them. Shares come with
their 95% intervals (Wilson). `--out` writes every generation as JSON lines.
"""
import argparse
import json
import math
import os
import random
import re
import sys
import time

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import torch
import torch.nn.functional as F

import corpus
import wellformed
from docs_json import gsm_doc
from model import load_hf, rotate

TASKS = ["json", "gsm8k", "gsm8k_made", "xml_person", "rpg", "c"]
LOSS_ONLY = ["real", "small"]
# Word problems: of the held-out part of `docs_math`, and of GSM8K's test set.
PROBLEMS = ["one_step", "two_steps", "gsm8k_made", "gsm8k_steps", "gsm8k, at most two steps", "gsm8k"]


def share(good, of):
    """`good` of `of` with the 95% interval of the share, in percent."""
    z, p = 1.96, good / of
    middle, half = p + z * z / 2 / of, z * math.sqrt(p * (1 - p) / of + z * z / 4 / of / of)
    return "%d of %d (%.0f to %.0f%%)" % (good, of, 100 * (middle - half) / (1 + z * z / of), 100 * (middle + half) / (1 + z * z / of))


def problems(docs, task, many):
    """Prompts and completions of held-out word problems."""
    if task == "gsm8k, at most two steps":
        short = [gsm_doc(random.Random(k), q, o) for k, (q, o) in enumerate(docs.gsm) if len(o["thoughts"]) <= 2]
        return short[:many]
    # Apart from the documents whose loss is measured.
    return [docs.get(task, 100_000 + k) for k in range(min(many, len(docs.gsm)) if task == "gsm8k" else many)]


def answers(m, toks, grammar, made, limit, out, task):
    """Numbers of greedy completions that are in the grammar, and that have the right answer."""
    good = right = 0
    for a in range(0, len(made), 50):
        some = made[a:a + 50]
        ids = [d[0][:d[1]] for d in corpus.encode(toks, some)]
        for (prompt, want), pi, gi in zip(some, ids, generate(m, ids, 0, limit, 1)):
            text = text_of(toks[0], pi, gi)
            ok = gi[-1] == corpus.EOS and grammar.accepts(text)
            is_right = ok and json.loads(text, strict=False)["answer"] == json.loads(want)["answer"]
            good, right = good + ok, right + is_right
            if out:
                out.write(json.dumps({"task": task, "prompt": prompt, "text": text, "want": want, "in_grammar": ok, "right": is_right}, ensure_ascii=False) + "\n")
    return good, right


@torch.no_grad()
def held_out_loss(m, docs):
    """(nats per token, bits per byte, tokens) of the completions."""
    nats = tokens = size = 0
    for ids, p, _ in docs:
        ids = ids[:m.c.positions]
        x = torch.tensor([ids])
        with torch.autocast("cpu", torch.bfloat16):
            h = m.hidden(x[:, :-1])[0, p - 1:]
        each = F.cross_entropy(F.linear(h.float(), m.emb), x[0, p:], reduction="sum")
        nats += float(each)
        tokens += len(ids) - p
    size = sum(b for _, _, b in docs)
    return nats / tokens, nats / math.log(2) / size, tokens


@torch.no_grad()
def generate(m, prompts, temperature, limit, seed):
    """Continues all prompts (lists of ids) together, up to </s> or `limit` tokens."""
    c = m.c
    g = torch.Generator().manual_seed(seed)
    B, P = len(prompts), max(map(len, prompts))
    T = P + limit
    K = torch.zeros(c.layers, B, c.kv_heads, T, c.head_dim)
    V = torch.zeros_like(K)
    n = torch.tensor([len(p) for p in prompts])
    logits = torch.empty(B, c.vocab)
    for b, p in enumerate(prompts):
        caches = [[] for _ in range(c.layers)]
        logits[b] = F.linear(m.hidden(torch.tensor([p]), caches)[0, -1], m.emb)
        for l, (k, v) in enumerate(caches):
            K[l, b, :, :len(p)], V[l, b, :, :len(p)] = k[0], v[0]
    out = [[] for _ in prompts]
    live = [True] * B
    for _ in range(limit):
        t = logits.argmax(-1) if temperature == 0 else torch.multinomial((logits / temperature).softmax(-1), 1, generator=g)[:, 0]
        for b in range(B):
            if live[b]:
                out[b].append(int(t[b]))
                live[b] = out[b][-1] != corpus.EOS
        if not any(live):
            break
        x = F.embedding(t[:, None], m.emb)
        cos, sin = m.cos[n][:, None, None], m.sin[n][:, None, None]
        top = int(n.max()) + 1
        mask = (torch.arange(top) <= n[:, None])[:, None, None]
        row = torch.arange(B)
        for l, y in enumerate(m.blocks):
            h = F.rms_norm(x, (c.hidden,), y.n1, c.eps)
            q = rotate(y.q(h).view(B, 1, c.heads, c.head_dim).transpose(1, 2), cos, sin)
            k = rotate(y.k(h).view(B, 1, c.kv_heads, c.head_dim).transpose(1, 2), cos, sin)
            K[l, row, :, n], V[l, row, :, n] = k[:, :, 0], y.v(h).view(B, c.kv_heads, c.head_dim)
            r = c.heads // c.kv_heads
            a = F.scaled_dot_product_attention(q, K[l, :, :, :top].repeat_interleave(r, 1), V[l, :, :, :top].repeat_interleave(r, 1), attn_mask=mask)
            x = x + y.o(a.transpose(1, 2).reshape(B, 1, -1))
            h = F.rms_norm(x, (c.hidden,), y.n2, c.eps)
            x = x + y.down(F.silu(y.gate(h)) * y.up(h))
        logits = F.linear(F.rms_norm(x, (c.hidden,), m.norm, c.eps), m.emb)[:, 0]
        n = n + 1
    return out


def text_of(tok, prompt, ids):
    """The text that `ids` add to the prompt."""
    a = tok.decode(prompt, skip_special_tokens=True)
    return tok.decode(prompt + [i for i in ids if i != corpus.EOS], skip_special_tokens=True)[len(a):]


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--model", default=os.path.join(here, "../../models/domino-small"))
    p.add_argument("--data", default=os.path.join(here, "../../../shared/data"))
    p.add_argument("--grammars", default=os.path.join(here, "../../grammars"), help="folder with json, gsm8k, xml_person, rpg and c .gbnf")
    p.add_argument("--prompts", type=int, default=24, help="per task")
    p.add_argument("--problems", type=int, default=400, help="word problems of each kind")
    p.add_argument("--documents", type=int, default=100, help="held-out documents per task for the loss")
    p.add_argument("--limit", type=int, default=384, help="tokens generated at most")
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--out")
    p.add_argument("--write-problems", metavar="FILE",
                   help="write the made-up word problems of one and two steps with their answers, as JSON "
                   "lines, and do nothing else")
    p.add_argument("--card", help="README.md whose evaluation section is replaced")
    a = p.parse_args()
    if a.write_problems:
        docs = corpus.Docs(a.data, "held")
        with open(a.write_problems, "w") as f:
            for task in PROBLEMS[:2]:
                for prompt, want in problems(docs, task, a.problems):
                    problem = {"task": task, "prompt": prompt, "answer": json.loads(want)["answer"]}
                    f.write(json.dumps(problem) + "\n")
        return
    torch.set_num_threads(a.threads)
    m = load_hf(a.model)
    toks = corpus.tokenizers(a.model + "/tokenizer.json")
    grammars = wellformed.load(a.grammars)
    docs = corpus.Docs(a.data, "held")
    out = open(a.out, "w") if a.out else None
    lines = ["| task | nats/token | bits/byte | in the grammar, greedy | in the grammar, temperature 1 | tokens a completion (greedy) |", "|---|---|---|---|---|---|"]
    for task in TASKS + LOSS_ONLY:
        began = time.time()
        made = [docs.get(task, k) for k in range(a.documents)]
        nats, bits, _ = held_out_loss(m, [d for d in corpus.encode(toks, made) if len(d[0]) <= corpus.ROW])
        row = [task, "%.3f" % nats, "%.3f" % bits]
        if task in TASKS:
            few = made[:a.prompts]
            ids = [d[0][:d[1]] for d in corpus.encode(toks, few)]
            for temperature in (0, 1):
                good = 0
                gen = generate(m, ids, temperature, a.limit, 1)
                for (prompt, want), pi, gi in zip(few, ids, gen):
                    text = text_of(toks[0], pi, gi)
                    ended = gi[-1] == corpus.EOS
                    ok = ended and grammars[task.split("_made")[0]].accepts(text)
                    good += ok
                    if out:
                        out.write(json.dumps({"task": task, "temperature": temperature, "prompt": prompt, "text": text, "ended": ended, "in_grammar": ok, "tokens": len(gi)}, ensure_ascii=False) + "\n")
                row.append(share(good, len(few)))
                if temperature == 0:
                    length = "%.0f" % (sum(map(len, gen)) / len(gen))
            row.append(length)
        else:
            row += ["", "", ""]
        lines.append("| " + " | ".join(row) + " |")
        print(lines[-1], "  (%.0f s)" % (time.time() - began), flush=True)
    lines += ["", "| word problems, greedy, unconstrained | in the grammar | right |", "|---|---|---|"]
    for task in PROBLEMS:
        made = problems(docs, task, a.problems)
        good, right = answers(m, toks, grammars["gsm8k"], made, a.limit, out, task)
        lines.append("| %s | %s | %s |" % (task, share(good, len(made)), share(right, len(made))))
        print(lines[-1], flush=True)
    print("\n".join(lines))
    if a.card:
        with open(a.card, encoding="utf-8") as f:
            s = f.read()
        s = re.sub(r"(<!-- evaluation -->\n).*?(<!-- /evaluation -->)", lambda x: x.group(1) + "\n".join(lines) + "\n" + x.group(2), s, flags=re.S)
        with open(a.card, "w", encoding="utf-8") as f:
            f.write(s)


if __name__ == "__main__":
    main()
