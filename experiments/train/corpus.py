"""The training corpus: documents `<s> prompt completion </s>`, tokenised and packed into rows.

A generated document is a function of (seed, split, task, number), so the corpus is too. The share of each
task is a share of tokens; it changes where a stage begins. Real documents and GSM8K rows are split by
document.
"""
import json
import os
import random
import zlib

import numpy as np
from tokenizers import Tokenizer

from docs_c import c_doc
from docs_json import gsm_convert, gsm_doc, gsm_made, json_doc, rpg_doc
from docs_math import ONE, TWO, gsm_step, gsm_steps, made, sums_doc, uses_held
from docs_misc import c_real, json_real, real_doc, rows, small_doc, xml_doc, xml_real

# Of the second stage, from row SECOND on: more problems, and more of what had become worse.
SECOND = 21_232
FIRST_SHARES = {"json": 15, "gsm8k": 12, "gsm8k_made": 3, "one_step": 15, "two_steps": 14, "sums": 4, "gsm8k_steps": 6, "xml_person": 8, "rpg": 6, "c": 11, "real": 6, "small": 4}
SECOND_SHARES = {"json": 11, "gsm8k": 9, "gsm8k_made": 2, "one_step": 22, "two_steps": 20, "sums": 5, "gsm8k_steps": 5, "xml_person": 6, "rpg": 5, "c": 10, "real": 10, "small": 6}
SUMS_SHARES = {"json": 4, "gsm8k": 6, "gsm8k_made": 2, "one_step": 36, "two_steps": 27, "sums": 16,
               "gsm8k_steps": 4, "xml_person": 2, "rpg": 1, "c": 2}
# By recipe, its stages: the first row, the stage of `docs_math`, the shares.
STAGES = {"small": [[0, 1, FIRST_SHARES], [SECOND, 2, SECOND_SHARES]], "sums": [[0, 3, SUMS_SHARES]]}
MADE = ["gsm8k_made", "one_step", "two_steps", "gsm8k_steps"]
# What `Docs` reads, in the data folder.
FILES = ["gsm8k/train.jsonl", "gsm8k/test_first400.jsonl", "json/realworld.jsonl", "xml/realworld.jsonl", "c/realworld.jsonl"]
BOS, EOS = 1, 2
ROW = 512


def tokenizers(path):
    """The tokenizer as it is (for prompts), and one that adds no leading space (for what follows a prompt)."""
    with open(path, encoding="utf-8") as f:
        t = json.load(f)
    plain = Tokenizer.from_str(json.dumps(t))
    norm = t["normalizer"]
    assert norm["type"] == "Sequence", norm
    norm["normalizers"] = [n for n in norm["normalizers"] if n["type"] != "Prepend"]
    return plain, Tokenizer.from_str(json.dumps(t))


class Docs:
    """Documents of one split: get(task, number, stage) -> (prompt, completion).

    No training document uses a held-out calculation of `docs_math`, so some GSM8K solutions are left out of it.
    """

    def __init__(self, data, split, seed=1):
        self.seed, self.split = seed, split
        held = split != "train"
        src = data + ("/gsm8k/test_first400.jsonl" if held else "/gsm8k/train.jsonl")
        self.gsm = []
        for row in rows(src):
            o = gsm_convert(row["answer"])
            if o and (held or not uses_held(o["thoughts"])):
                self.gsm.append((" ".join(row["question"].split()), o))
        self.steps = gsm_steps(self.gsm)
        self.gsm_short = [x for x in self.gsm if len(x[0]) < 180 and len(x[1]["thoughts"]) <= 2]
        mine = lambda d: (zlib.crc32(d.encode()) % 10 == 0) == held
        self.real = {"json": [x for x in json_real(data) if mine(x[0])], "xml": [x for x in xml_real(data) if mine(x[0])], "c": [x for x in c_real(data) if mine(x[0])]}
        order = random.Random("%d gsm8k %s" % (seed, split))
        order.shuffle(self.gsm)

    def made(self, task, r, stage):
        """A made-up word problem: (question, thoughts and answer)."""
        held = self.split != "train"
        if task == "gsm8k_made":
            problem = gsm_made(r)
            return problem if held or not uses_held(problem[1]["thoughts"]) else self.made(task, r, stage)
        if task == "gsm8k_steps":
            return gsm_step(r, self.steps, held)
        return made(r, ONE if task == "one_step" else TWO, held, stage)

    def get(self, task, n, stage=1):
        r = random.Random("%d %s %s %d" % (self.seed, self.split, task, n))
        if task == "gsm8k":
            q, o = self.gsm[n % len(self.gsm)]
            shots = []
            if r.random() < 0.15 and len(q) < 260:
                shots = [r.choice(self.gsm_short)]
            return gsm_doc(r, q, o, shots)
        if task in MADE:
            problem = lambda: self.made(task, r, stage)
            return gsm_doc(r, *problem(), [problem() for _ in range(r.choice([0, 0, 0, 0, 1, 2, 3]) if task == "gsm8k_made" else r.choice([0] * 11 + [1]))])
        if task == "sums":
            return sums_doc(r, stage)
        if task == "real":
            kind = r.choice(["json", "json", "xml", "c", "c"])
            xs = self.real[kind]
            _, name, body = xs[int(r.random() * len(xs))]
            return real_doc(r, kind, name, body)
        return {"json": json_doc, "xml_person": xml_doc, "rpg": rpg_doc, "c": c_doc, "small": small_doc}[task](r)


def encode(toks, docs):
    """[(ids, length of `<s>` + prompt, bytes of the completion)]"""
    plain, bare = toks
    ps = plain.encode_batch([p for p, _ in docs], add_special_tokens=False)
    cs = bare.encode_batch([c for _, c in docs], add_special_tokens=False)
    return [([BOS] + p.ids + c.ids + [EOS], 1 + len(p.ids), len(d[1].encode())) for p, c, d in zip(ps, cs, docs)]


def build(data, tok, out, tokens, seed=1, recipe="small", log=print):
    """Writes out/rows.npy (R x 512 ids), out/kinds.npy (0 padding, 1 prompt, 2 completion) and out/stats.json."""
    docs = Docs(data, "train", seed)
    toks = tokenizers(tok)
    have, count, queue, number = ({t: start() for t in FIRST_SHARES} for start in (int, int, list, int))
    stages = list(STAGES[recipe])
    R = tokens // ROW + 1
    ids = np.zeros((R, ROW), np.uint16)
    kinds = np.zeros((R, ROW), np.uint8)
    pool = []
    row = at = said = 0
    r = random.Random("%d packing" % seed)
    while row < R:
        if stages and row == stages[0][0]:
            _, stage, shares = stages.pop(0)
            before = dict(have)
            queue = {t: [] for t in have}
        while len(pool) < 256:
            lack = lambda t: shares[t] / sum(shares.values()) * (sum(have.values()) - sum(before.values())) - (have[t] - before[t])
            t = max(shares, key=lack)
            if not queue[t]:
                queue[t] = encode(toks, [docs.get(t, number[t] + k, stage) for k in range(1000)])[::-1]
                number[t] += 1000
            x = queue[t].pop()
            have[t] += min(len(x[0]), ROW)
            count[t] += 1
            pool.insert(int(r.random() * (len(pool) + 1)), (x[0][:ROW], x[1]))
        # first document of the pool that fits, else close the row; the first of a row is the oldest one
        room = ROW - at
        k = 0 if at == 0 else next((k for k, x in enumerate(pool) if len(x[0]) <= room and (len(x[0]) > room // 3 or room < 96)), None)
        if k is None:
            k = max((k for k, x in enumerate(pool) if len(x[0]) <= room), key=lambda k: len(pool[k][0]), default=None)
        if k is None:
            row, at = row + 1, 0
            if row * 10 // R > said:
                said = row * 10 // R
                log("corpus: %d%% of %d rows" % (said * 10, R), flush=True)
            continue
        x, p = pool.pop(k)
        ids[row, at:at + len(x)] = x
        kinds[row, at:at + len(x)] = 2
        kinds[row, at:at + min(p, len(x))] = 1
        at += len(x)
    os.makedirs(out, exist_ok=True)
    np.save(out + "/rows.npy", ids)
    np.save(out + "/kinds.npy", kinds)
    seen = np.bincount(ids[kinds > 0].astype(np.int64), minlength=32000)
    stats = {"rows": R, "row": ROW, "seed": seed, "asked": tokens, "stages": STAGES[recipe], "tokens": int((kinds > 0).sum()), "filled": float((kinds > 0).mean()), "documents": count, "task_tokens": have, "gsm8k_rows": len(docs.gsm), "distinct_tokens": int((seen > 0).sum())}
    with open(out + "/stats.json", "w") as f:
        json.dump(stats, f, indent=1)
    log("corpus:", json.dumps(stats), flush=True)


if __name__ == "__main__":
    import sys
    build(sys.argv[1], sys.argv[1] + "/tokenizers/mistral-v1-32k/tokenizer.json", sys.argv[2], int(sys.argv[3]), recipe=(sys.argv + ["small"])[4])
