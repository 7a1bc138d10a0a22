"""The common part of all engines of the comparison: the files they read, and the walk along a text.

An engine is a program that is called `PROGRAM VOCAB GRAMMAR TRACES PASSES FRESH SECONDS` and writes one JSON
object a line: first `{"kind": "setup", ...}`, then its walks. See `walk` and `measure` for what they are; the
programs in other languages do the same.
"""
import gc
import json
import statistics
import time

NS = time.perf_counter_ns


def token_bytes(tokenizer):
    """Bytes of each id of a `tokenizer.json`; None for special tokens and ids without a token."""
    model, added = tokenizer["model"], tokenizer.get("added_tokens", [])
    size = 1 + max([*model["vocab"].values(), *(token["id"] for token in added)])
    spelt = [None] * size
    spell = _byte_level() if "ByteLevel" in json.dumps(tokenizer["decoder"]) else _byte_fallback
    for text, number in model["vocab"].items():
        spelt[number] = spell(text)
    for token in added:
        spelt[token["id"]] = None if token["special"] else token["content"].encode()
    return spelt


def _byte_level():
    """GPT-2's alphabet: a printable character for each byte."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in plain]
    of = {chr(byte): byte for byte in plain} | {chr(256 + at): byte for at, byte in enumerate(others)}
    return lambda text: bytes(of[char] for char in text)


def _byte_fallback(text):
    if len(text) == 6 and text.startswith("<0x") and text.endswith(">"):
        return bytes([int(text[3:5], 16)])
    return text.replace("\u2581", " ").encode()


def write_vocabulary(path, spelt, eos):
    """`size eos` in the first line, then `id bytes-in-hex`; special tokens are left out."""
    lines = [f"{len(spelt)} {eos}"]
    lines += [f"{number} {text.hex()}" for number, text in enumerate(spelt) if text]
    path.write_text("\n".join(lines) + "\n")


def read_vocabulary(path):
    """(bytes by id, end of text)."""
    head, *lines = open(path).read().splitlines()
    size, eos = map(int, head.split())
    spelt = [None] * size
    for line in lines:
        number, text = line.split()
        spelt[int(number)] = bytes.fromhex(text)
    return spelt, eos


def write_traces(path, traces):
    """A text a line, as ids."""
    path.write_text("".join(" ".join(map(str, trace["tokens"])) + "\n" for trace in traces))


def read_traces(path):
    return [[int(token) for token in line.split()] for line in open(path)]


_digests = {}


def digest(mask, eos):
    """(ones, FNV-1a, end of text) of a mask's bytes, in which no other special token is set."""
    if mask not in _digests:
        body = bytearray(mask)
        ends = body[eos >> 3] >> (eos & 7) & 1
        body[eos >> 3] &= ~(1 << (eos & 7))
        value = 0xCBF29CE484222325
        for byte in body:
            value = ((value ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
        _digests[mask] = (int.from_bytes(body, "little").bit_count(), f"{value:016x}", ends)
    return _digests[mask]


def walk(engine, tokens, look):
    """Along a text: a mask before each token and one at the end. Looks at the masks, or takes the time of the calls."""
    begun = NS()
    mask, commit, holds, digest_of = engine.start()
    walked = {"start": NS() - begun, "masks": [], "commits": [], "rejected": None, "digests": []}
    for step in range(len(tokens) + 1):
        begun = NS()
        mask()
        walked["masks"].append(NS() - begun)
        if look:
            walked["digests"].append(digest_of())
        if step == len(tokens):
            break
        if not holds(tokens[step]):
            walked["rejected"] = step
            break
        begun = NS()
        commit(tokens[step])
        walked["commits"].append(NS() - begun)
    return walked


def measure(compile_grammar, texts, passes, fresh, seconds):
    """Yields all walks: of each text on grammars compiled for it alone (one that looks, `fresh` that count), then
    `passes` on one grammar that has met all texts. As many texts as half of `seconds` allows, at least one; then as
    many passes as the rest allows, at least one."""
    gc.disable()  # or it would be at work within the times
    start = NS()
    spent = lambda: (NS() - start) / 1e9
    texts = list(enumerate(texts))
    done = []
    for number, tokens in texts:
        if done and spent() > seconds / 2:
            break
        done.append((number, tokens))
        yield {"kind": "look", "text": number, **walk(compile_grammar(), tokens, True)}
        for time_ in range(fresh):
            if time_ and spent() > seconds / 2:
                break
            begun = NS()
            engine = compile_grammar()
            compiled = NS() - begun
            yield {"kind": "fresh", "text": number, "compile": compiled, **walk(engine, tokens, False)}
    engine = compile_grammar()
    for _, tokens in done:
        walk(engine, tokens, False)
    for pass_ in range(passes):
        if pass_ and spent() > seconds:
            break
        for number, tokens in done:
            yield {"kind": "warm", "text": number, **walk(engine, tokens, False)}


def medians(rows):
    """Column by column, as whole numbers."""
    return [int(statistics.median(column)) for column in zip(*rows)]
