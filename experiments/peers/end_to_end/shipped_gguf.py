"""Writes a checkpoint of the Mistral architecture as a GGUF file in f32 or q8_0, with its tokenizer.

    python shipped_gguf.py ../../../models/domino-small small.gguf [q8_0]

Needs gguf and numpy. `llama_cpp quantize` makes q8_0 and q4_k_m of a file in f32.
"""

import json
import pathlib
import sys

import gguf
import numpy as np
from gguf import GGMLQuantizationType, TokenType

NAMES = {
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
}


def weights(path):
    """Names and matrices in f32. numpy has no bf16, so the file is read by hand."""
    data = path.read_bytes()
    length = int.from_bytes(data[:8], "little")
    for name, info in json.loads(data[8 : 8 + length]).items():
        if name == "__metadata__":
            continue
        assert info["dtype"] == "BF16", f"{name} is {info['dtype']}"
        begin, end = (8 + length + offset for offset in info["data_offsets"])
        bits = np.frombuffer(data[begin:end], dtype="<u2").astype("<u4") << 16
        yield name, bits.view("<f4").reshape(info["shape"])


def interleaved(matrix, heads):
    """Rotary pairs side by side, as llama.cpp wants them; the checkpoint has them half a head apart."""
    rows, columns = matrix.shape
    halves = matrix.reshape(heads, 2, rows // heads // 2, columns)
    return halves.swapaxes(1, 2).reshape(rows, columns)


def gguf_name(name):
    if name == "model.embed_tokens.weight":
        return "token_embd.weight"
    if name == "model.norm.weight":
        return "output_norm.weight"
    _, _, layer, part = name.removesuffix(".weight").split(".", 3)
    return f"blk.{layer}.{NAMES[part]}.weight"


def add_tokenizer(writer, folder):
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    vocab = sorted(tokenizer["model"]["vocab"].items(), key=lambda entry: entry[1])
    special = {token["id"] for token in tokenizer["added_tokens"]}
    merges = tokenizer["model"]["merges"]
    ranks = {"".join(merge if isinstance(merge, list) else merge.split(" ")): rank
             for rank, merge in reversed(list(enumerate(merges)))}
    types, scores = [], []
    for token, number in vocab:
        if number in special:
            types.append(TokenType.UNKNOWN if token == "<unk>" else TokenType.CONTROL)
        elif len(token) == 6 and token.startswith("<0x"):
            types.append(TokenType.BYTE)
        else:
            types.append(TokenType.NORMAL)
        scores.append(-float(ranks.get(token, 0 if number in special else len(merges))))
    writer.add_tokenizer_model("llama")
    writer.add_token_list([token.encode() for token, _ in vocab])
    writer.add_token_scores(scores)
    writer.add_token_types(types)
    writer.add_add_bos_token(True)
    writer.add_add_space_prefix(True)
    for name, add in (("<s>", writer.add_bos_token_id), ("</s>", writer.add_eos_token_id),
                      ("<unk>", writer.add_unk_token_id)):
        add(tokenizer["model"]["vocab"][name])


def main(folder, out, numbers="f32"):
    folder = pathlib.Path(folder)
    config = json.loads((folder / "config.json").read_text())
    writer = gguf.GGUFWriter(out, "llama")
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(config["num_attention_heads"])
    writer.add_head_count_kv(config["num_key_value_heads"])
    writer.add_rope_dimension_count(config["head_dim"])
    writer.add_rope_freq_base(config["rope_theta"])
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_vocab_size(config["vocab_size"])
    add_tokenizer(writer, folder)
    heads = {"q_proj": config["num_attention_heads"], "k_proj": config["num_key_value_heads"]}
    for name, matrix in weights(folder / "model.safetensors"):
        count = next((count for part, count in heads.items() if part in name), None)
        matrix = interleaved(matrix, count) if count else matrix
        if numbers == "q8_0" and matrix.ndim == 2:
            kind = GGMLQuantizationType.Q8_0
            writer.add_tensor(gguf_name(name), gguf.quants.quantize(matrix, kind), raw_dtype=kind)
        else:
            writer.add_tensor(gguf_name(name), matrix)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


if __name__ == "__main__":
    main(*sys.argv[1:4])
