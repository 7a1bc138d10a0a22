"""Other JSON Schema engines behind one interface, and the bytes of a tokenizer's tokens.

An engine is made of (path of tokenizer.json, {id: bytes}, id of the end of text). `compile` takes a schema or
raises, `start` begins a text, `bits` are the allowed tokens as 32-bit words, `commit` goes on, and `complete`
tells whether the text may end. A package is imported where its engine is made, so only those are needed.
"""
import json


def token_bytes(path):
    """{id: bytes} of the ordinary tokens, and the id of the end of text."""
    with open(path, encoding="utf-8") as file:
        tokenizer = json.load(file)
    added = tokenizer.get("added_tokens", [])
    special = {token["content"]: token["id"] for token in added if token.get("special")}
    names = {**{token["content"]: token["id"] for token in added}, **tokenizer["model"]["vocab"]}
    pipeline = json.dumps([tokenizer.get("decoder"), tokenizer.get("pre_tokenizer")])
    spell = byte_level() if "ByteLevel" in pipeline else by_pieces
    ends = [special[name] for name in ("</s>", "<|endoftext|>", "<|end_of_text|>") if name in special]
    ids = set(special.values())
    return {id: spell(name) for name, id in names.items() if id not in ids}, ends[0]


def byte_level():
    """GPT-2's spelling: bytes that do not show stand as letters from U+0100 on."""
    shown = [*range(33, 127), *range(161, 173), *range(174, 256)]
    letters = {chr(byte): byte for byte in shown}
    letters.update((chr(256 + at), byte) for at, byte in enumerate(b for b in range(256) if b not in shown))
    return lambda name: bytes(map(letters.get, name)) if all(c in letters for c in name) else name.encode()


def by_pieces(name):
    """SentencePiece's spelling: `<0x0A>` is a byte, U+2581 a space."""
    if len(name) == 6 and name.startswith("<0x"):
        return bytes.fromhex(name[3:5])
    return name.replace("\u2581", " ").encode()


class Llguidance:
    def __init__(self, path, tokens, end):
        import llguidance, llguidance.numpy

        self.package, self.fill = llguidance, llguidance.numpy.fill_next_token_bitmask
        self.tokenizer = llguidance.LLTokenizer(path, eos_token=end)
        self.mask = llguidance.numpy.allocate_token_bitmask(1, self.tokenizer.vocab_size)

    def compile(self, schema):
        grammar = self.package.LLMatcher.grammar_from_json_schema(json.dumps(schema, ensure_ascii=False))
        self.fresh = self.package.LLMatcher(self.tokenizer, grammar)
        if self.fresh.is_error():
            raise ValueError(self.fresh.get_error())

    def start(self):
        self.state = self.fresh.deep_copy()

    def bits(self):
        self.fill(self.state, self.mask, 0)
        return self.mask[0]

    def commit(self, token):
        return self.state.consume_token(token)

    def complete(self):
        return self.state.is_accepting()


class Xgrammar:
    def __init__(self, path, tokens, end):
        import xgrammar

        self.package, size = xgrammar, max(*tokens, end) + 1
        vocabulary = [tokens.get(id, b"") for id in range(size)]
        self.tokenizer = xgrammar.TokenizerInfo(
            vocabulary, xgrammar.VocabType.RAW, vocab_size=size, stop_token_ids=[end]
        )
        self.mask = xgrammar.allocate_token_bitmask(1, size)

    def compile(self, schema):
        compiler = self.package.GrammarCompiler(self.tokenizer, max_threads=1, cache_enabled=False)
        text = json.dumps(schema, ensure_ascii=False)
        self.grammar = compiler.compile_json_schema(text, any_whitespace=True, strict_mode=False)

    def start(self):
        self.state = self.package.GrammarMatcher(self.grammar, terminate_without_stop_token=False)

    def bits(self):
        self.state.fill_next_token_bitmask(self.mask, 0)
        return self.mask[0].numpy()

    def commit(self, token):
        return self.state.accept_token(token)

    def complete(self):
        return self.state.is_completed()


class Glrmask:
    def __init__(self, path, tokens, end):
        import glrmask, numpy

        self.package, self.numpy = glrmask, numpy
        self.vocabulary = glrmask.Vocab.from_id_to_bytes({id: text for id, text in tokens.items() if text})

    def compile(self, schema):
        grammar = self.package.Grammar.from_json_schema(json.dumps(schema, ensure_ascii=False))
        self.compiled = grammar.compile(self.vocabulary)
        self.mask = self.numpy.zeros(self.compiled.mask_len(), dtype=self.numpy.int32)

    def start(self):
        self.state = self.compiled.start()

    def bits(self):
        self.state.fill_mask(self.mask)
        return self.mask

    def commit(self, token):
        return self.state.commit_token(token)

    def complete(self):
        return self.state.is_accepting()


ENGINES = {"llguidance": Llguidance, "xgrammar": Xgrammar, "glrmask": Glrmask}
