"""Writes a GGUF file of random weights of a Llama shape, for `domino bench-model` and `llama_cpp.cpp`.

    python random_gguf.py 1b q4_k_m random.gguf

Shapes are those of `domino bench-model --random`; formats are q8_0, q4_k, q6_k, and q4_k_m: llama.cpp's mix
of q4_k and q6_k. Quants are random bytes; the factors make numbers of about -0.1 to 0.1. The file has no
vocabulary.
"""

import os
import struct
import sys

SHAPES = {  # hidden, intermediate, layers, heads, heads of keys
    "110m": (768, 2048, 12, 12, 12),
    "1b": (2048, 5632, 22, 32, 4),
}
VOCABULARY = 32000
# Number among `ggml_type`, numbers in a block, bytes of a block, factors (offset in the block, value).
FORMATS = {
    "f32": (0, 1, 4, []),
    "q8_0": (8, 32, 34, [(0, 8e-4)]),
    "q4_k": (12, 256, 144, [(0, 2e-4), (2, 1.5e-3)]),
    "q6_k": (14, 256, 210, [(208, 2e-5)]),
}
ALIGNMENT = 32


def padded(size):
    return -(-size // ALIGNMENT) * ALIGNMENT


def string(text):
    return struct.pack("<Q", len(text)) + text.encode()


def metadata(hidden, inner, layers, heads, key_heads):
    numbers = {
        "context_length": 4096,
        "embedding_length": hidden,
        "block_count": layers,
        "feed_forward_length": inner,
        "rope.dimension_count": hidden // heads,
        "attention.head_count": heads,
        "attention.head_count_kv": key_heads,
        "vocab_size": VOCABULARY,
    }
    pairs = [
        string("general.architecture") + struct.pack("<I", 8) + string("llama"),
        string("tokenizer.ggml.model") + struct.pack("<I", 8) + string("no_vocab"),
        string("llama.attention.layer_norm_rms_epsilon") + struct.pack("<If", 6, 1e-5),
    ]
    pairs += [string(f"llama.{key}") + struct.pack("<II", 4, value) for key, value in numbers.items()]
    return len(pairs), b"".join(pairs)


def mixed(name, layer, layers):
    """Format of a matrix in llama.cpp's `Q4_K_M`."""
    precise = layer < layers // 8 or layer >= 7 * layers // 8 or (layer - layers // 8) % 3 == 2
    return "q6_k" if name in ("attn_v", "ffn_down") and precise else "q4_k"


def tensors(shape, form):
    """Names, rows, columns and formats."""
    hidden, inner, layers, heads, key_heads = shape
    keys = hidden // heads * key_heads
    yield "token_embd.weight", VOCABULARY, hidden, "q6_k" if form == "q4_k_m" else form
    yield "output_norm.weight", 1, hidden, "f32"
    for layer in range(layers):
        for name in ("attn_norm", "ffn_norm"):
            yield f"blk.{layer}.{name}.weight", 1, hidden, "f32"
        matrices = {
            "attn_q": (hidden, hidden),
            "attn_k": (keys, hidden),
            "attn_v": (keys, hidden),
            "attn_output": (hidden, hidden),
            "ffn_gate": (inner, hidden),
            "ffn_up": (inner, hidden),
            "ffn_down": (hidden, inner),
        }
        for name, (rows, columns) in matrices.items():
            own = mixed(name, layer, layers) if form == "q4_k_m" else form
            yield f"blk.{layer}.{name}.weight", rows, columns, own


def data(rows, columns, form):
    _, block, size, factors = FORMATS[form]
    blocks = rows * columns // block
    if form == "f32":
        return struct.pack("<f", 1.0) * blocks
    stored = bytearray(os.urandom(blocks * size))
    for place, value in factors:
        low, high = struct.pack("<e", value)
        stored[place::size] = bytes([low]) * blocks
        stored[place + 1 :: size] = bytes([high]) * blocks
    return stored


def main(shape, form, path):
    shape = SHAPES[shape]
    all_tensors = list(tensors(shape, form))
    infos, offset = [], 0
    for name, rows, columns, own in all_tensors:
        number, block, size, _ = FORMATS[own]
        sizes = (columns,) if rows == 1 else (columns, rows)
        infos.append(
            string(name)
            + struct.pack(f"<I{len(sizes)}QIQ", len(sizes), *sizes, number, offset)
        )
        offset += padded(rows * columns // block * size)
    count, pairs = metadata(*shape)
    head = b"GGUF" + struct.pack("<IQQ", 3, len(infos), count) + pairs + b"".join(infos)
    with open(path, "wb") as out:
        out.write(head.ljust(padded(len(head)), b"\0"))
        for _, rows, columns, own in all_tensors:
            stored = data(rows, columns, own)
            out.write(stored)
            out.write(b"\0" * (padded(len(stored)) - len(stored)))


if __name__ == "__main__":
    main(*sys.argv[1:4])
