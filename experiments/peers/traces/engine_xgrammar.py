"""XGrammar as an engine of the comparison.

Timed are `fill_next_token_bitmask` and `accept_token` of the object below the Python class, which spares the
class's own call. What is left of Python is measured as `overhead`: a call through the same binding, with the
same arguments, of a function that does nothing. A compiler without cache and with one thread makes the
grammar from its text.
"""
import importlib.metadata
import json
import statistics
import sys

import torch
import tvm_ffi
import xgrammar

from walks import NS, digest, measure, read_traces, read_vocabulary


class Engine:
    def __init__(self, info, text, eos):
        compiler = xgrammar.GrammarCompiler(info, max_threads=1, cache_enabled=False)
        self.grammar = compiler.compile_grammar(text)
        self.bits = xgrammar.allocate_token_bitmask(1, info.vocab_size)
        self.bytes = self.bits.numpy().view("uint8").reshape(-1)
        self.eos = eos

    def start(self):
        matcher = xgrammar.GrammarMatcher(self.grammar)
        handle, bits, seen, eos = matcher._handle, self.bits, self.bytes, self.eos
        fill, accept = handle.fill_next_token_bitmask, handle.accept_token

        def commit(token):
            if not accept(token, False):
                raise RuntimeError(f"token {token} is in the mask and not accepted")

        return (
            lambda: fill(bits, 0, False),
            commit,
            lambda token: seen[token >> 3] >> (token & 7) & 1,
            lambda: digest(seen.tobytes(), eos),
        )


def overhead(info):
    """Medians of what a call costs that does nothing, as `walk` takes the time of a mask and of a commit."""
    nothing = tvm_ffi.get_global_func("testing.nop")
    bits = xgrammar.allocate_token_bitmask(1, info.vocab_size)

    def commit(token):
        if nothing(token, False):
            raise RuntimeError

    def cost(call):
        times = []
        for _ in range(5000):
            begun = NS()
            call()
            times.append(NS() - begun)
        return statistics.median(times)

    def commits():
        times = []
        for token in range(5000):
            begun = NS()
            commit(token)
            times.append(NS() - begun)
        return statistics.median(times)

    return {"mask": cost(lambda: nothing(bits, 0, False)), "commit": commits()}


def main():
    vocabulary, grammar, traces, passes, fresh, seconds = sys.argv[1:]
    spelt, eos = read_vocabulary(vocabulary)
    torch.set_num_threads(1)
    begun = NS()
    info = xgrammar.TokenizerInfo(
        [text or b"" for text in spelt], xgrammar.VocabType.RAW, vocab_size=len(spelt), stop_token_ids=[eos]
    )
    setup = {"kind": "setup", "version": importlib.metadata.version("xgrammar"), "vocab": NS() - begun}
    print(json.dumps(setup | {"overhead": overhead(info)}))
    text = open(grammar).read()
    for walked in measure(
        lambda: Engine(info, text, eos), read_traces(traces), int(passes), int(fresh), float(seconds)
    ):
        print(json.dumps(walked))


main()
