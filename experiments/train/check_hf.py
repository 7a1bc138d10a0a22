#!/usr/bin/env python3
"""The exported folder in transformers gives the logits of our own module, and unseen tokens stay improbable."""
import sys

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from model import load_hf

folder = sys.argv[1]
m = load_hf(folder)
hf = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
tok = AutoTokenizer.from_pretrained(folder)
for text in ["A JSON file describing a person: ", "C program that prints fibonacci numbers:\n", "Q: Anna has 3 apples and buys 4 more. How many apples does she have?\nA: "]:
    ids = tok(text, return_tensors="pt").input_ids
    assert ids[0, 0] == 1, ids
    with torch.no_grad():
        a, b = m(ids), hf(ids).logits
        g = hf.generate(ids, max_new_tokens=120, do_sample=False)
    print(ids[0].tolist(), "largest difference of logits %.2e" % (a - b).abs().max())
    assert torch.allclose(a, b, atol=1e-3)
    print(tok.decode(g[0]))
print("chat template:", repr(tok.apply_chat_template([{"role": "user", "content": "A JSON person:"}], tokenize=False)))
