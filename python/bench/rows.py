"""Rows of masks filled through Python: what `rows.rs` does in Rust.

python rows.py TOKENIZER GRAMMAR.gbnf TRACES.json
"""

import json
import statistics
import sys
import time

from domino_decoding import Compiler, Grammar, Mask, Vocabulary, fill_batch

PASSES, BATCH = 7, 256


def masks(vocabulary):
    yield "Mask", Mask(vocabulary)
    try:
        import numpy

        yield "numpy", numpy.zeros((1, vocabulary.words), numpy.int32)
        import torch

        yield "torch", torch.zeros((1, vocabulary.words), dtype=torch.int32)
    except ImportError:
        pass


def main():
    tokenizer, grammar, traces = sys.argv[1:]
    vocabulary = Vocabulary.from_file(tokenizer)
    compiled = Compiler(vocabulary).compile(Grammar.gbnf(open(grammar).read()))
    texts = [trace["tokens"] for trace in json.load(open(traces))["traces"]]
    clock = time.perf_counter_ns
    for name, mask in masks(vocabulary):
        for _ in range(PASSES):
            taken = []
            for text in texts:
                constraint = compiled.constraint()
                fill, advance = constraint.fill, constraint.advance
                for token in text:
                    begun = clock()
                    fill(mask)
                    advance(token)
                    taken.append(clock() - begun)
        taken.sort()
        print(
            f"mask, row and step, {name}: p50 {taken[len(taken) // 2]} ns, p99 {taken[len(taken) * 99 // 100]} ns"
        )
    constraints = []
    for number in range(BATCH):
        text = texts[number % len(texts)]
        constraints.append(compiled.constraint())
        for token in text[: number % len(text)]:
            constraints[-1].advance(token)
    mask, taken = Mask(vocabulary, BATCH), []
    for _ in range(51):
        begun = clock()
        fill_batch(constraints, mask)
        taken.append(clock() - begun)
    print(f"{BATCH} rows on all cores: {statistics.median(taken) / 1000:.0f} us")


if __name__ == "__main__":
    main()
