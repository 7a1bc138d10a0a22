#!/usr/bin/env python3
"""Writes the checkpoint as a Hugging Face folder (bf16): `python experiments/train/export.py --cache ...
--out ...`."""
import argparse
import json
import os
import shutil

import torch
from safetensors.torch import save_file

from model import Config, hf_name


def export(cache, out, data):
    c = torch.load(cache + "/checkpoint.pt", weights_only=True)
    k = Config()
    os.makedirs(out, exist_ok=True)
    save_file({hf_name(n): w.bfloat16().contiguous() for n, w in c["model"].items()}, out + "/model.safetensors", metadata={"format": "pt"})

    def write(name, value):
        with open(os.path.join(out, name), "w", encoding="utf-8") as f:
            json.dump(value, f, indent=2, ensure_ascii=False)
            f.write("\n")

    write("config.json", {
        "architectures": ["MistralForCausalLM"], "model_type": "mistral", "vocab_size": k.vocab, "hidden_size": k.hidden,
        "intermediate_size": k.inner, "num_hidden_layers": k.layers, "num_attention_heads": k.heads, "num_key_value_heads": k.kv_heads,
        "head_dim": k.head_dim, "hidden_act": "silu", "max_position_embeddings": k.positions, "rms_norm_eps": k.eps, "rope_theta": k.theta,
        "sliding_window": None, "attention_dropout": 0.0, "initializer_range": 0.02, "tie_word_embeddings": True, "use_cache": True,
        "bos_token_id": 1, "eos_token_id": 2, "torch_dtype": "bfloat16"})
    write("generation_config.json", {"bos_token_id": 1, "eos_token_id": 2})
    special = lambda t: {"content": t, "lstrip": False, "normalized": False, "rstrip": False, "single_word": False, "special": True}
    write("tokenizer_config.json", {
        "add_bos_token": True, "add_eos_token": False, "added_tokens_decoder": {str(i): special(t) for i, t in enumerate(["<unk>", "<s>", "</s>"])},
        "bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>", "pad_token": None, "clean_up_tokenization_spaces": False, "legacy": True,
        "model_max_length": k.positions, "tokenizer_class": "LlamaTokenizerFast", "use_default_system_prompt": False,
        "chat_template": "{{ bos_token }}{% for message in messages %}{{ message['content'] }}{% endfor %}"})
    write("special_tokens_map.json", {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"})
    shutil.copyfile(data + "/tokenizers/mistral-v1-32k/tokenizer.json", out + "/tokenizer.json")
    os.chmod(out + "/model.safetensors", 0o644)
    print("exported step %d, %d tokens, %.1f MB" % (c["step"], c["tokens"], os.path.getsize(out + "/model.safetensors") / 1e6), flush=True)


if __name__ == "__main__":
    here = os.path.dirname(os.path.abspath(__file__))
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--data", default=os.path.join(here, "../../../shared/data"))
    p.add_argument("--out", default=os.path.join(here, "../../models/domino-small"))
    p.add_argument("--cache", default=os.path.join(here, ".cache"))
    a = p.parse_args()
    export(a.cache, a.out, a.data)
