"""Passes over n tokens of Llama-shaped models of random weights in transformers, eager and by a CUDA graph.

    python3 transformers_passes.py

The shapes, the context and the counts are those of `domino bench-model --random 1b|7b --format bf16`. Prints one
object of JSON: milliseconds, median and least of 15, from tokens known to logits on the card and a wait. Needs
torch with CUDA and transformers; takes nothing from the network.
"""

import json
import statistics
import time

import torch
import transformers

SHAPES = {
    "1b": dict(hidden_size=2048, intermediate_size=5632, num_hidden_layers=22, num_attention_heads=32,
               num_key_value_heads=4, vocab_size=32000),
    "7b": dict(hidden_size=4096, intermediate_size=11008, num_hidden_layers=32, num_attention_heads=32,
               num_key_value_heads=32, vocab_size=32000),
}
CONTEXT, REPEATS, COUNTS = 128, 15, (1, 2, 4, 8, 16)


def timed(run):
    """Milliseconds of `run`, median and least, after three that warm up."""
    times = []
    for _ in range(REPEATS + 3):
        torch.cuda.synchronize()
        start = time.perf_counter()
        run()
        torch.cuda.synchronize()
        times.append(1e3 * (time.perf_counter() - start))
    times = times[3:]
    return {"median": statistics.median(times), "least": min(times)}


def passes(model, config):
    """t(n), eager and by a graph."""
    cache = transformers.StaticCache(config=config, max_batch_size=1, max_cache_len=CONTEXT + 32,
                                     device="cuda", dtype=torch.bfloat16)
    before = torch.randint(config.vocab_size, (1, CONTEXT), device="cuda")
    model(before, past_key_values=cache, cache_position=torch.arange(CONTEXT, device="cuda"))
    results = []
    for count in COUNTS:
        tokens = torch.randint(config.vocab_size, (1, count), device="cuda")
        places = torch.arange(CONTEXT, CONTEXT + count, device="cuda")

        def run():
            return model(tokens, past_key_values=cache, cache_position=places).logits

        row = {"n": count, "eager": timed(run)}
        try:
            stream = torch.cuda.Stream()
            stream.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(stream):
                for _ in range(3):
                    run()
            torch.cuda.current_stream().wait_stream(stream)
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                run()
            row["graph"] = timed(graph.replay)
        except Exception as error:  # Recorded: what a version cannot capture is a result too.
            row["graph_error"] = str(error)[:200]
            results.append(row)
            break
        results.append(row)
    return results


def main():
    record = {"torch": torch.__version__, "transformers": transformers.__version__}
    with torch.no_grad():
        for name, shape in SHAPES.items():
            config = transformers.LlamaConfig(max_position_embeddings=4096, **shape)
            torch.set_default_dtype(torch.bfloat16)
            with torch.device("cuda"):
                model = transformers.LlamaForCausalLM(config).eval()
            record[name] = passes(model, config)
            del model
            torch.cuda.empty_cache()
    print(json.dumps(record))


if __name__ == "__main__":
    main()
