#!/usr/bin/env python3
"""Log-probabilities of a GGUF file's model by transformers, from the weights that the file's blocks mean, in f32.

Usage: experiments/real/reference.py FILE > OUT.json

Needs torch, transformers, gguf and accelerate. For each of some prompts there are rows (positions), and of each row
the 20 likeliest tokens with their log-probabilities. The second prompt is 701 tokens long, drawn at random: longer
than Gemma's window. `tests/fixtures/model/gemma-3-270m.json` is what this wrote for `experiments/real/fetch gemma`.
"""

import json
import sys
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM

LIKELIEST = 20


def main():
    file = Path(sys.argv[1])
    model = AutoModelForCausalLM.from_pretrained(file.parent, gguf_file=file.name, dtype=torch.float32,
                                                 attn_implementation="eager").eval()
    drawn = torch.randint(300, 200_000, (700,), generator=torch.Generator().manual_seed(1)).tolist()
    found = []
    # The first is "The capital of France is".
    for tokens in [2, 818, 5279, 529, 7001, 563], [2, *drawn]:
        with torch.no_grad():
            logits = model(input_ids=torch.tensor([tokens]), use_cache=False).logits[0]
        rows = [len(tokens) - 1, len(tokens) // 2, 3]
        best = [torch.log_softmax(logits[row], -1).topk(LIKELIEST) for row in rows]
        top = [[[token, round(value, 6)] for token, value in zip(one.indices.tolist(), one.values.tolist())]
               for one in best]
        found.append({"tokens": tokens, "rows": rows, "top": top})
    print("[" + ",\n".join(json.dumps(one) for one in found) + "]")


if __name__ == "__main__":
    main()
