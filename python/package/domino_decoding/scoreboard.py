"""The field's scoreboard of JSON Schema engines: JSONSchemaBench's `maskbench`.

`MaskbenchEngine` has the methods that the harness calls. Without the harness, for a folder of its files (or a
file of rows) and a `tokenizer.json`, this counts right answers and times masks, in both orders of members:

    python -m domino_decoding.scoreboard FOLDER --tokenizer tokenizer.json [--every N] [--json]

Each file is `{"schema": ..., "tests": [{"data": ..., "valid": true}]}`; a row has these keys too. An instance
is written as `json.dumps(data, ensure_ascii=False)` does, and counts as accepted if every token of it, and
then end of text, is in the mask. A schema is right if it compiles and all its instances are decided as they
say. Needs the package `tokenizers`."""

import argparse
import json
import pathlib
import sys
import time

from . import Compiler, Grammar, Mask, Vocabulary, __version__
from .errors import DominoError

ORDERS = ("schema", "any")


class MaskbenchEngine:
    """An engine of the harness: set `tokenizer`, call `init`, then for each schema `compile_grammar`, and for
    each instance `reset` and, token by token, `compute_mask` and `commit_token`. Options are those of
    `Grammar.json_schema`; numbers and escapes may be spelled in all ways, and formats have no bounds, as
    instances are others' texts."""

    def __init__(self, **options):
        self.options = {"numbers": "any", "escapes": "all", "format": "assert"} | options
        self.multi = False
        self.tokenizer = None
        self.tokenizer_model_id = ""

    def get_id(self):
        return "domino"

    def get_name(self):
        return "Domino"

    def get_module(self):
        return "domino_decoding"

    def get_version(self):
        return __version__

    def init(self):
        """Reads the tokenizer. Once for all schemas."""
        self.vocabulary = Vocabulary.from_tokenizer(self.tokenizer)
        self.compiler = Compiler(self.vocabulary)
        self.compiler.prepare(**self.options)
        self.mask = Mask(self.vocabulary)

    def compile_grammar(self, schema):
        """Compiles a schema. Raises `SchemaError` if it cannot be used."""
        self.compiled = self.compiler.compile(Grammar.json_schema(schema, **self.options))
        self.reset()

    def reset(self):
        """Begins an instance."""
        self.constraint = self.compiled.constraint()

    def compute_mask(self):
        """Makes the mask of the next token."""
        self.constraint.fill(self.mask)

    def commit_token(self, token):
        """Goes on by a token if the mask has it. Returns whether it does."""
        allowed = self.mask.allows(token)
        if allowed:
            self.constraint.advance(token)
        return allowed

    def log_single(self, text):
        """Tells of something where one schema is looked at alone."""
        if not self.multi:
            print(text, file=sys.stderr)


def rows_of(path):
    """Names, schemas and tests of a folder of files, or of a file of rows."""
    path = pathlib.Path(path)
    if path.is_dir():
        for file in sorted(path.rglob("*.json")):
            row = json.loads(file.read_text(encoding="utf-8"))
            if isinstance(row, dict) and "schema" in row:
                yield str(file.relative_to(path)), row["schema"], row.get("tests") or []
        return
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            row = json.loads(line)
            yield str(row.get("id", number)), row["schema"], row.get("tests") or []


def judged(engine, encode, end, schema, tests):
    """What comes of a schema: its status, and the times in us of the first mask and of each step."""
    begun = time.perf_counter_ns()
    try:
        engine.compile_grammar(schema)
        engine.compute_mask()
    except (DominoError, ValueError) as error:
        return {"status": "refused", "error": str(error).split("\n")[0]}
    found = {"status": "right", "first": (time.perf_counter_ns() - begun) / 1e3, "steps": []}
    for test in tests:
        engine.reset()
        accepted = True
        for token in [*encode(json.dumps(test["data"], ensure_ascii=False)), end]:
            begun = time.perf_counter_ns()
            engine.compute_mask()
            accepted = engine.commit_token(token)
            found["steps"].append((time.perf_counter_ns() - begun) / 1e3)
            if not accepted:
                break
        if accepted != test["valid"]:
            found["status"] = "invalid accepted" if accepted else "valid refused"
    return found


def at(values, share):
    """The value at a share of sorted ones."""
    return values[min(len(values) - 1, int(share * len(values)))] if values else float("nan")


def summary(order, found):
    """A row of the table."""
    steps = sorted(step for one in found for step in one.get("steps", ()))
    first = sorted(one["first"] for one in found if "first" in one)
    count = {
        name: sum(one["status"] == name for one in found)
        for name in ("right", "valid refused", "invalid accepted", "refused")
    }
    mean = sum(steps) / len(steps) if steps else float("nan")
    return {
        "order": order,
        "schemas": len(found),
        **count,
        "first mask p50, us": round(at(first, 0.5), 1),
        "first mask p99, us": round(at(first, 0.99), 1),
        "steps": len(steps),
        "step mean, us": round(mean, 3),
        "step p50, us": round(at(steps, 0.5), 3),
        "step p99, us": round(at(steps, 0.99), 3),
    }


def main(arguments=None):
    parser = argparse.ArgumentParser(
        prog="python -m domino_decoding.scoreboard", description=__doc__.split("\n")[0]
    )
    parser.add_argument("folder", help="a folder of files of maskbench, or a file of rows in JSON")
    parser.add_argument("--tokenizer", required=True, help="a tokenizer.json")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="only each N-th schema")
    parser.add_argument("--json", action="store_true", help="rows of JSON, one for each order of members")
    options = parser.parse_args(arguments)
    try:
        import tokenizers
    except ImportError:
        parser.error("the package `tokenizers` is needed: pip install tokenizers")
    tokenizer = tokenizers.Tokenizer.from_file(options.tokenizer)
    rows = [row for row in rows_of(options.folder) if row[2]][:: max(1, options.every)]
    table = []
    for order in ORDERS:
        engine = MaskbenchEngine(order=order)
        engine.tokenizer = tokenizer
        engine.init()
        encode = encoder(tokenizer, engine.vocabulary)
        end = engine.vocabulary.end_of_text[0]
        table.append(
            summary(order, [judged(engine, encode, end, schema, tests) for _, schema, tests in rows])
        )
        if options.json:
            print(json.dumps(table[-1]))
    if not options.json:
        print("| " + " | ".join(table[0]) + " |\n|" + "---|" * len(table[0]))
        for row in table:
            print("| " + " | ".join(str(value) for value in row.values()) + " |")


def encoder(tokenizer, vocabulary):
    """Tokens of a text, without a space that some tokenizers put before it."""
    by_bytes = {vocabulary.bytes(token): token for token in reversed(range(vocabulary.size))}

    def encode(text):
        tokens, wanted = tokenizer.encode(text, add_special_tokens=False).ids, text.encode()
        if vocabulary.concat(tokens) == b" " + wanted:
            first = vocabulary.bytes(tokens[0])[1:]
            tokens = [*([by_bytes[first]] if first else []), *tokens[1:]]
        return tokens

    return encode


if __name__ == "__main__":
    main()
