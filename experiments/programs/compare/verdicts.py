"""The same schemas and texts in several engines: which texts does each let a model write?

usage: verdicts.py [DOMINO [LLAMA_CPP]]

A text is taken if each of its tokens, as the tokenizer of models/domino-small cuts it, is in the mask before
it, and if the text may end behind the last one. DOMINO is the program (default: target/release/domino), which
is asked by `check --batch`; LLAMA_CPP is the program of llama_cpp.cpp, which makes grammars of schemas, and
these are read by Domino. The other engines are Python packages. One that is not there is left out.
"""
import importlib.metadata
import json
import pathlib
import subprocess
import sys

import tokenizers

HERE = pathlib.Path(__file__).parent
ROOT = HERE.parents[2]
TOKENIZER = ROOT / "models" / "domino-small" / "tokenizer.json"


def token_bytes(tokenizer):
    """The bytes of each token, by SentencePiece's marks for spaces and bytes; empty for special ones."""
    special = {token["id"] for token in json.loads(TOKENIZER.read_text())["added_tokens"]}
    spelt = [b""] * tokenizer.get_vocab_size()
    for text, token in tokenizer.get_vocab().items():
        if token not in special:
            byte = len(text) == 6 and text.startswith("<0x")
            spelt[token] = bytes([int(text[3:5], 16)]) if byte else text.replace("\u2581", " ").encode()
    return spelt


class Vocabulary:
    def __init__(self):
        self.tokenizer = tokenizers.Tokenizer.from_file(str(TOKENIZER))
        self.eos = self.tokenizer.token_to_id("</s>")
        self.bytes = token_bytes(self.tokenizer)

    def tokens(self, text):
        """The text's tokens behind a line feed, as SentencePiece puts a space before the first one."""
        ids = self.tokenizer.encode("\n" + text, add_special_tokens=False).ids
        found = ids[[self.bytes[token] for token in ids].index(b"\n") + 1 :]
        assert b"".join(self.bytes[token] for token in found) == text.encode(), text
        return found


class Llguidance:
    package = "llguidance"

    def __init__(self, vocabulary):
        import llguidance
        import llguidance.numpy

        self.module = llguidance
        self.tokenizer = llguidance.LLTokenizer(str(TOKENIZER), eos_token=vocabulary.eos)
        self.bits = llguidance.numpy.allocate_token_bitmask(1, self.tokenizer.vocab_size)

    def start(self, schema):
        grammar = self.module.LLMatcher.grammar_from_json_schema(schema)
        self.matcher = self.module.LLMatcher(self.tokenizer, grammar)
        if self.matcher.is_error():
            raise ValueError(self.matcher.get_error())

    def allows(self, token):
        self.module.numpy.fill_next_token_bitmask(self.matcher, self.bits, 0)
        return bool(self.bits[0][token >> 5] >> (token & 31) & 1)

    def advance(self, token):
        return self.matcher.consume_token(token)

    def complete(self):
        return self.matcher.is_accepting()


class XGrammar:
    package = "xgrammar"
    options = {}

    def __init__(self, vocabulary):
        import numpy
        import xgrammar

        self.module, size = xgrammar, len(vocabulary.bytes)
        kind = xgrammar.VocabType.RAW
        self.info = xgrammar.TokenizerInfo(
            vocabulary.bytes, kind, vocab_size=size, stop_token_ids=[vocabulary.eos]
        )
        self.bits, self.eos = numpy.zeros((1, (size + 31) // 32), dtype=numpy.int32), vocabulary.eos

    def start(self, schema):
        compiler = self.module.GrammarCompiler(self.info)
        self.matcher = self.module.GrammarMatcher(compiler.compile_json_schema(schema, **self.options))

    def allows(self, token):
        self.matcher.fill_next_token_bitmask(self.bits)
        return bool(self.bits[0][token >> 5] >> (token & 31) & 1)

    def advance(self, token):
        return self.matcher.accept_token(token)

    def complete(self):
        return self.allows(self.eos)


class XGrammarLoose(XGrammar):
    """Objects are open unless the schema closes them, and members come in any order."""

    options = {"strict_mode": False, "any_order": True}


class Outlines:
    package = "outlines-core"

    def __init__(self, vocabulary):
        import outlines_core

        self.module = outlines_core
        ids = {}
        for token, spelt in enumerate(vocabulary.bytes):
            if spelt:
                ids.setdefault(spelt, []).append(token)
        self.vocabulary = outlines_core.Vocabulary(vocabulary.eos, ids)

    def start(self, schema):
        regex = self.module.json_schema.build_regex_from_schema(schema)
        self.guide = self.module.Guide(self.module.Index(regex, self.vocabulary))

    def allows(self, token):
        return token in self.guide.get_tokens()

    def advance(self, token):
        self.guide.advance(token)
        return True

    def complete(self):
        return self.guide.is_finished()


class Enforcer:
    package = "lm-format-enforcer"

    def __init__(self, vocabulary):
        import lmformatenforcer

        self.module = lmformatenforcer
        regular = []
        for token, spelt in enumerate(vocabulary.bytes):
            text = spelt.decode(errors="replace")
            if text and "\ufffd" not in text:
                regular.append((token, text, text.startswith(" ")))

        def decode(tokens):
            return b"".join(vocabulary.bytes[token] for token in tokens).decode(errors="replace")

        size, self.eos = len(vocabulary.bytes), vocabulary.eos
        self.data = lmformatenforcer.TokenEnforcerTokenizerData(regular, decode, self.eos, False, size)

    def start(self, schema):
        parser = self.module.JsonSchemaParser(json.loads(schema))
        self.enforcer, self.tokens = self.module.TokenEnforcer(self.data, parser), []

    def allows(self, token):
        return token in self.enforcer.get_allowed_tokens(self.tokens).allowed_tokens

    def advance(self, token):
        self.tokens.append(token)
        return True

    def complete(self):
        return self.allows(self.eos)


def verdict(engine, vocabulary, schema, text):
    try:
        engine.start(json.dumps(schema))
    except Exception as error:  # every engine has its own kinds
        return "refused", str(error).splitlines()[0]
    for token in vocabulary.tokens(text):
        if not engine.allows(token) or not engine.advance(token):
            return "no", ""
    return ("yes" if engine.complete() else "no"), ""


def check(program, rows, flags):
    """Domino's verdicts of rows for `check --batch`, by their ids."""
    lines = "\n".join(json.dumps(row) for row in rows)
    run = subprocess.run(
        [program, "check", "--batch", "-", *flags], input=lines, text=True, capture_output=True
    )
    answers = {}
    for line in run.stdout.splitlines():
        answer = json.loads(line)
        kind = {True: "yes", False: "no", None: "refused"}[answer["accepted"]]
        answers[answer["id"]] = kind, answer.get("error") or ""
    assert len(answers) == len(rows), run.stderr
    return answers


def domino(program, cases, flags):
    rows = [{"id": at, "schema": case["schema"], "text": case["text"]} for at, case in enumerate(cases)]
    answers = check(program, rows, flags)
    return [answers[at] for at in range(len(cases))]


def llama_cpp(program, converter, cases):
    """The verdicts of the grammars that llama.cpp makes of the schemas."""
    answers, rows = {}, []
    for at, case in enumerate(cases):
        schema = json.dumps(case["schema"])
        run = subprocess.run([converter], input=schema, text=True, capture_output=True)
        if run.returncode == 0:
            rows.append({"id": at, "grammar": run.stdout, "syntax": "gbnf", "text": case["text"]})
        else:
            answers[at] = "refused", " ".join(run.stderr.split())
    answers |= check(program, rows, [])
    return [answers[at] for at in range(len(cases))]


def main():
    program = sys.argv[1] if len(sys.argv) > 1 else ROOT / "target" / "release" / "domino"
    cases = [json.loads(line) for line in (HERE / "cases.jsonl").read_text().splitlines()]
    vocabulary = Vocabulary()
    written = ["--order", "schema", "--whitespace", "flexible", "--escapes", "minimal", "--numbers", "plain"]
    columns = {"Domino": domino(program, cases, written), "any order": domino(program, cases, [])}
    for kind, name in (
        (Llguidance, "llguidance"),
        (XGrammar, "XGrammar"),
        (XGrammarLoose, "loose"),
        (Outlines, "outlines-core"),
        (Enforcer, "lm-format-enforcer"),
    ):
        try:
            engine = kind(vocabulary)
        except ImportError as error:
            print(f"{name} is left out: {error}", file=sys.stderr)
            continue
        print(f"{name}: {kind.package} {importlib.metadata.version(kind.package)}")
        columns[name] = [verdict(engine, vocabulary, case["schema"], case["text"]) for case in cases]
    if len(sys.argv) > 2:
        columns["llama.cpp"] = llama_cpp(program, sys.argv[2], cases)
    print("\n| case | valid | " + " | ".join(columns) + " |")
    print("|---" * (len(columns) + 2) + "|")
    for number, case in enumerate(cases):
        cells = [answers[number][0] for answers in columns.values()]
        right = (case["valid"], "refused")
        marked = [cell if cell in right else f"**{cell}**" for cell in cells]
        print(f"| {case['case']} | {case['valid']} | " + " | ".join(marked) + " |")
    for name, answers in columns.items():
        reasons = {}
        for case, (kind, reason) in zip(cases, answers):
            if kind == "refused":
                reasons.setdefault(reason, []).append(case["case"])
        for reason, names in reasons.items():
            print(f"\n{name} refuses the schema of {', '.join(names)}: {reason}")


main()
