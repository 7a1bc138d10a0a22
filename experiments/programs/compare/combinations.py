"""Conditions over many keys in several engines: are they taken, and which wrong text is let through?

usage: combinations.py [DOMINO]

Each schema has a text that is an instance and one that is none, which differ by what the condition says. DOMINO is
the program (default: target/release/domino). The others are the packages of requirements.txt, asked by bytes.
"""
import json
import subprocess
import sys

import llguidance
import xgrammar
from xgrammar.testing import _is_grammar_accept_string as xgrammar_takes

INTEGER = {"type": "integer"}


def members(count, **more):
    names = [f"{letter}{number}" for number in range(count) for letter in "ab"]
    return {"type": "object", "properties": dict.fromkeys(names, INTEGER), "additionalProperties": False, **more}


def told_apart(number):
    properties = {"kind": {"const": f"k{number}"}, f"v{number}": INTEGER}
    return {"type": "object", "properties": properties, "additionalProperties": False}


def then(number):
    asked = {"properties": {f"a{number}": {"const": 1}}, "required": [f"a{number}"]}
    return {"if": asked, "then": {"required": [f"b{number}"]}}


def either(number):
    return {"anyOf": [{"required": [f"a{number}"]}, {"required": [f"b{number}"]}]}


def ones(count):
    return json.dumps({f"a{number}": 1 for number in range(count)})


CASES = {
    "`oneOf` of 60 objects, told apart by an optional `const`": (
        {"oneOf": [told_apart(number) for number in range(60)]}, '{"kind":"k3","v3":1}', "{}"),
    "30 `if`/`then` over different keys": (
        members(30, allOf=[then(n) for n in range(30)]), '{"a0":1,"b0":2}', '{"a0":1}'),
    "`dependentRequired` of 40 keys": (
        members(40, dependentRequired={f"a{n}": [f"b{n}"] for n in range(40)}), '{"a1":1,"b1":1}', '{"a1":1}'),
    "`allOf` of 20 `anyOf` over different keys": (
        members(20, allOf=[either(n) for n in range(20)]), ones(20), ones(19)),
}


def domino(program, schema):
    def takes(text):
        row = json.dumps({"schema": schema, "text": text})
        ended = subprocess.run([program, "check", "--batch"], input=row.encode(), capture_output=True)
        answer = json.loads(ended.stdout)
        if answer.get("error"):
            raise ValueError(answer["error"])
        return answer["accepted"]

    return takes


def guidance(schema):
    tokenizer = llguidance.LLTokenizer("byte")
    grammar = llguidance.LLMatcher.grammar_from_json_schema(json.dumps(schema))
    error = llguidance.LLMatcher.validate_grammar(grammar, tokenizer)
    if error:
        raise ValueError(error)

    def takes(text):
        matcher = llguidance.LLMatcher(tokenizer, grammar)
        return matcher.consume_tokens([*text.encode()]) and matcher.is_accepting()

    return takes


def xgrammars(schema):
    grammar = xgrammar.Grammar.from_json_schema(json.dumps(schema), strict_mode=False)
    return lambda text: xgrammar_takes(grammar, text)


def main():
    program = sys.argv[1] if len(sys.argv) > 1 else "target/release/domino"
    engines = {"Domino": lambda schema: domino(program, schema), "llguidance": guidance, "XGrammar": xgrammars}
    print(f"| schema | {' | '.join(engines)} |\n|---|{'---|' * len(engines)}")
    for name, (schema, good, bad) in CASES.items():
        cells = []
        for engine in engines.values():
            try:
                takes = engine(schema)
                cells.append("right" if (takes(good), takes(bad)) == (True, False) else "**wrong**")
            except ValueError as error:
                print(f"{name}: {error}", file=sys.stderr)
                cells.append("refused")
        print(f"| {name} | {' | '.join(cells)} |")


main()
